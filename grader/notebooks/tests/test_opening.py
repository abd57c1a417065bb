"""A lesson's simulators open with their stored pictures, and saving in Lab leaves them as they were."""

import nbformat
import pytest

from grader.notebooks import command, opening, saving, text

LESSON = '# A lesson\n\n```python\nfrom widgets import show\n\nshow("tile_walk", m=1)\n```\n\n```python\n1 + 1\n```\n'
PATH = "course/01_toy.ipynb"


@pytest.mark.parametrize(
    "source, wanted",
    [
        ('show("tile_walk")', "simulators/tile_walk.svg"),
        ('x = 1\nshow("a.b",\n     k=2, s="to x")', "simulators/b-k-2-s-to_x.svg"),
        ('show("a", measured=last_record("x.y"))', "simulators/a.svg"),
        ('show("a", predict=True)', "simulators/a-asked.svg"),
        ('widgets.show("a", predict=False)', "simulators/a.svg"),
        ('recorded("gemm_tiling")', "recorded/gemm_tiling.svg"),
        ('recorded("gemm_tiling", "ladder/h200")', "recorded/gemm_tiling-ladder_h200.svg"),
        ('show("a", m=size)', None),
        ("show(name)", None),
        ('w = show("a")', None),
        ('show("a"); 1', None),
        ('print("a")', None),
        ("%timeit f()", None),
        ("show()", None),
        ("", None),
    ],
)
def test_which_cells_open_with_a_picture(source, wanted):
    assert opening.picture(source) == wanted


@pytest.mark.parametrize(
    "path, source",
    [(PATH, "pictures/simulators/a-k-2.svg"), ("course/deep/x.ipynb", "../pictures/simulators/a-k-2.svg")],
)
def test_a_picture_is_a_link_and_no_bytes(path, source):
    (output,) = opening.stored('show("a", k=2)', path)
    assert f'src="{source}"' in output.data["text/html"] and "not kept" in output.data["text/html"]
    assert (
        len(nbformat.writes(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(outputs=[output])])))
        < 1500
    )


def built():
    notebook, _ = text.read(LESSON)
    opening.open_lesson(notebook, PATH)
    return notebook


def test_saving_in_lab_keeps_the_picture_and_nothing_that_running_left():
    first = text.write(built())
    assert text.write(built()) == first and b"tile_walk-m-1.svg" in first
    used = built()
    for cell in used.cells:
        if cell.cell_type == "code":
            cell.execution_count = 3
            cell.outputs = [nbformat.v4.new_output("execute_result", {"text/plain": "2"}, execution_count=3)]
    saving.keep_built(path=PATH, model={"type": "notebook", "content": used})
    assert text.write(used) == first


def test_labs_carry_no_pictures():
    notebook, _ = text.read(LESSON)
    saving.keep_built(path="labs/01_toy/x.ipynb", model={"type": "notebook", "content": notebook})
    assert all(not cell.get("outputs") for cell in notebook.cells)


@pytest.mark.parametrize(
    "source, folded",
    [
        ("import json", True),
        ("import json\nfrom a import b\n\nx, y = b(1), b(2)\nGB, TB = 1e9, 1e12", True),
        ("import json\nprint(1)", False),
        ("import json\ndef f(): ...", False),
        ("x = 1", False),
        ("%matplotlib inline\nimport json", False),
        ("", False),
    ],
)
def test_imports_are_folded_and_what_is_read_is_not(source, folded):
    assert opening.is_setup(source) == folded


def test_setup_and_tagged_cells_are_folded_and_stay_so_when_they_are_saved(tmp_path):
    (tmp_path / "course").mkdir()
    words = '# A\n\n```python\nimport json\n```\n\n```python tags=["folded"]\nprint(1)\n```\n\n```python\nprint(2)\n```\n'
    (tmp_path / "course/01_toy.md").write_text(words)
    assert command.main([], tmp_path) == 0
    built = nbformat.read(tmp_path / "course/01_toy.ipynb", as_version=4)

    def hidden(notebook):
        cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        return [cell["metadata"].get("jupyter", {}).get("source_hidden", False) for cell in cells]

    assert hidden(built) == [True, True, False]
    for cell in built["cells"]:
        cell["metadata"]["jupyter"] = {"source_hidden": False}  # a reader opened it
    saving.keep_built(path="course/01_toy.ipynb", model={"type": "notebook", "content": built})
    assert hidden(built) == [True, True, False]
