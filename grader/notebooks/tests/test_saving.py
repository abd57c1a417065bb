"""A lesson that was opened, run and saved in Lab is the built one again, to the byte."""

import nbformat

from grader.notebooks import saving, text

LESSON = "# A lesson\n\n```python locked=one\n1 + 1\n```\n"


def _used(notebook):
    """What Lab makes of a notebook that somebody ran."""
    notebook.metadata["language_info"] = {
        "name": "python",
        "version": "3.12.1",
        "codemirror_mode": {"version": 3},
    }
    for cell in notebook.cells:
        cell.metadata |= {"execution": {"shell.execute_reply": "now"}, "jp-MarkdownHeadingCollapsed": True}
    code = notebook.cells[-1]
    code.execution_count = 3
    code.outputs = [nbformat.v4.new_output("execute_result", {"text/plain": "2"}, execution_count=3)]
    return notebook


def test_what_running_left_is_not_saved_into_built_notebooks():
    built = text.write(text.read(LESSON)[0])
    for path in ("course/01_toy.ipynb", "/labs/01_toy/concepts.ipynb"):
        model = {"type": "notebook", "content": _used(text.read(LESSON)[0])}
        assert text.write(model["content"]) != built
        saving.keep_built(path=path, model=model, contents_manager=None)
        assert text.write(model["content"]) == built


def test_a_learners_copy_is_saved_as_it_is():
    model = {"type": "notebook", "content": _used(text.read(LESSON)[0])}
    before = text.write(model["content"])
    saving.keep_built(path="work/01_toy/concepts.ipynb", model=model)
    saving.keep_built(path="course/notes.txt", model={"type": "file", "content": "x"})
    assert text.write(model["content"]) == before
