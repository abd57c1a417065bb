"""Open a lesson with a still picture under each simulator's cell and with its setup code folded away."""

import ast

import nbformat

FOLDED = "folded"  # the tag of a cell that formats and explains nothing
FOLDER = "pictures"  # in course/, drawn by `python -m widgets.lab_pages`
NOTE = "Run this cell (Shift+Enter) and it comes alive. What you run in a lesson is not kept when you save."


def _call(source: str) -> tuple[str, list, dict] | None:
    """Return (function, arguments, keywords) of the call that ends a cell, if the text holds all its arguments."""
    try:
        body = ast.parse(source).body
        call = body[-1].value if body and isinstance(body[-1], ast.Expr) else None
        if not isinstance(call, ast.Call):
            return None
        given = {k.arg: ast.literal_eval(k.value) for k in call.keywords if k.arg != "measured"}
        return ast.unparse(call.func), [ast.literal_eval(one) for one in call.args], given
    except (SyntaxError, ValueError):
        return None


def picture(source: str) -> str | None:
    """Return the file of a cell's opening picture: 'simulators/tile_walk-asked.svg', 'recorded/gemm_tiling.svg'."""
    function, words, given = _call(source) or ("", [], {})
    function = function.removeprefix("widgets.").removeprefix("measured.")
    if function == "show" and len(words) == 1:
        asked = ["asked"] * bool(given.pop("predict", False))
        words = [words[0].rpartition(".")[2], *(f"{key}-{value}" for key, value in given.items()), *asked]
        return f"simulators/{file(words)}"
    if function == "recorded" and words and not given:
        return f"recorded/{file(words)}"
    return None


def file(words: list[str]) -> str:
    """Return the picture's name, the same as in widgets/lab_pages.py."""
    return "-".join(words).replace(" ", "_").replace("/", "_") + ".svg"


def stored(source: str, path: str) -> list:
    """The outputs that a cell of `course/05_flash_attention/a_online.ipynb` carries on disk."""
    found, up = picture(source), "../" * (path.strip("/").count("/") - 1)
    if not found:
        return []
    plain = "What this cell opens with, as a still picture"
    html = f'<p><img src="{up}{FOLDER}/{found}" alt="{plain}" width="720"></p><p><i>{NOTE}</i></p>'
    return [nbformat.v4.new_output("display_data", {"text/html": html, "text/plain": plain})]


def is_setup(source: str) -> bool:
    """Return whether a cell holds imports and the names given right after them, nothing that a reader reads."""
    try:
        body = ast.parse(source).body
    except SyntaxError:
        return False
    kinds = (ast.Import, ast.ImportFrom, ast.Assign)
    return bool(body) and isinstance(body[0], kinds[:2]) and all(isinstance(one, kinds) for one in body)


def fold(cell) -> None:
    """Fold a code cell of a lesson that sets up, or that its author tagged. Its output stays visible."""
    if is_setup(cell["source"]) or FOLDED in cell["metadata"].get("tags", ()):
        cell["metadata"]["jupyter"] = {"source_hidden": True}


def open_lesson(notebook, path: str) -> None:
    """Give a lesson's code cells the outputs that it opens with, and fold those that only set up or format."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = stored(cell.source, path)
            fold(cell)
