"""What JupyterLab may save into a built notebook: its cells and opening pictures, and nothing that running them left.

So lessons can be opened and run where they lie, and an update of the course finds them as it left them.
"""

from .opening import fold, stored
from .text import METADATA

BUILT = ("course", "solutions", "labs")
KEPT = ("nbgrader", "tags", "deletable", "editable")


def keep_built(path: str, model: dict, **_) -> None:
    """A pre_save_hook of Jupyter's contents manager; work/ is the learner's and is saved as it is."""
    room = path.strip("/").partition("/")[0]
    if model["type"] != "notebook" or room not in BUILT:
        return
    notebook = model["content"]
    notebook["metadata"] = dict(METADATA)
    for cell in notebook["cells"]:
        cell["metadata"] = {key: value for key, value in cell["metadata"].items() if key in KEPT}
        if cell["cell_type"] == "code":
            cell["outputs"] = stored(cell["source"], path) if room == "course" else []
            if room == "course":
                fold(cell)
            cell["execution_count"] = None
