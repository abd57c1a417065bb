"""Collect the outputs of a lesson's code from one run when the site is built."""

import os
import subprocess
import tempfile
from pathlib import Path

from widgets import static
from widgets.site.lessons import Text
from widgets.site.listing import printed

ROOT = Path(__file__).parents[2]
CELL_SECONDS = 120
STYLE = f"<style>{static.css()}</style>"  # the page has it already


def _html(output) -> str:
    if output.output_type == "stream":
        return printed(output.text, "Printed")
    data = output.get("data", {})
    if "text/html" in data:
        return f'<div class="printed">{data["text/html"].replace(STYLE, "")}</div>\n'
    if "image/png" in data:
        source = data["image/png"].replace("\n", "")
        return f'<img class="printed" alt="The plot that this code draws" src="data:image/png;base64,{source}">\n'
    text = data.get("text/plain", "")
    return printed(text, "Result") if text.strip() else ""


def outputs(text: Text) -> tuple[list[str], str]:
    """Return (the outputs of each cell as HTML, the error). A cell that fails shows only its code."""
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellTimeoutError, DeadKernelError

    make = {"markdown": nbformat.v4.new_markdown_cell, "code": nbformat.v4.new_code_cell}
    book = nbformat.v4.new_notebook(cells=[make[cell.kind](cell.text) for cell in text.cells])
    place, wrong = {"metadata": {"path": str(text.path.parent)}}, ""
    with tempfile.TemporaryDirectory(prefix="lesson_") as folder:
        paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        own = {"PYTHONPATH": paths, "TILE_RECORDS": str(Path(folder) / "records"), "IPYTHONDIR": folder}
        client = NotebookClient(
            book,
            timeout=CELL_SECONDS,
            kernel_name="python3",
            resources=place,
            allow_errors=True,
            coalesce_streams=True,  # a kernel sends a slow cell's lines in several messages
        )
        try:
            client.execute(env={**os.environ, **own}, stderr=subprocess.DEVNULL)
        except (CellTimeoutError, DeadKernelError) as error:
            wrong = str(error).strip().splitlines()[0]
    found = []
    for cell in book.cells:
        made = [o for o in cell.get("outputs", ()) if o.get("name") != "stderr"]
        failed = [o for o in made if o.output_type == "error"]
        if failed:
            wrong = wrong or f"{failed[0].ename}: {failed[0].evalue}"
        found.append("".join(_html(o) for o in made if o.output_type != "error"))
    return found, wrong
