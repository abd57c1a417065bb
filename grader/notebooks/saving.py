"""Let JupyterLab save only a built notebook's cells and opening pictures, without the results of running them.

So lessons can be opened and run where they are, and an update of the course finds them unchanged.
"""

from .opening import fold, stored
from .text import METADATA

BUILT = ("course", "solutions", "labs")
KEPT = ("nbgrader", "tags", "deletable", "editable")


def keep_built(path: str, model: dict, **_) -> None:
    """Clean a notebook as a pre_save_hook of Jupyter's contents manager. work/ belongs to the learner and is saved as
    it is."""
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
