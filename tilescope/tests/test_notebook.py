"""In a notebook: the cell magic, the widget's answers, and the page as a browser shows it."""

import json
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell

pytest.importorskip("anywidget")

from tilescope import notebook, page, saved, show, texts
from tilescope.findings import Finding
from tilescope.steps import Steps

CELL = """
import torch
import triton
import triton.language as tl

@triton.jit
def total(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    values = tl.load(x + i, mask=i < n, other=0.0)
    so_far = tl.load(out)
    tl.store(out, so_far + tl.sum(values, 0))

total[(4,)](torch.ones(1000), torch.zeros(1), 1000, B=256)
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """What one cell under the magic displays and keeps."""
    folder, shown = tmp_path_factory.mktemp("cells"), []
    (folder / "total.py").write_text(CELL)
    shell = InteractiveShell.instance()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(notebook, "display", lambda one, **how: shown.append(one))
        shell.run_line_magic("load_ext", "tilescope")
        cell = f"import sys\nsys.path.insert(0, {str(folder)!r})\nimport total"
        shell.run_cell_magic("tilescope", f"--texts --save {folder / 'kept'}", cell)
        none = len(shown)
        shell.run_cell_magic("tilescope", "", "2 + 2")
        assert len(shown) == none
    name = shell.compile.cache("1 + 1", 6)
    assert Finding("race", "", "total", name, 3).place == "Cell In[6], line 3"
    InteractiveShell.clear_instance()
    assert Finding("race", "", "total", name, 3).place == f"{name}:3"
    return shown[0], folder


@pytest.fixture(scope="module")
def recording(ran):
    return ran[0].recording


def test_a_finding_opens_the_stepper_at_its_program(ran):
    stepper, _ = ran
    assert isinstance(stepper, notebook.Stepper)
    assert stepper.recording.kernel == "total" and stepper.recording.ids == [0, 0, 0]
    assert stepper.answer["first"] == 3 and stepper.answer["frames"][3]["line"] == 11


def test_what_was_saved_opens_as_the_same_stepper(ran):
    stepper, folder = ran
    assert show(folder / "kept").answer == stepper.answer
    run, _ = saved.load(folder / "kept")
    assert [finding["kind"] for finding in run["findings"]] == ["race", "race"]
    with pytest.raises(ValueError, match="show needs a recording"):
        show(object())


def test_one_request_has_one_answer(ran):
    stepper, _ = ran
    names = [control["name"] for control in stepper.spec["controls"]]
    assert names == ["row", "block"]
    stepper.request = {"view": "v", "revision": 3, "values": {"row": 8, "block": 0}}
    assert (stepper.answer["view"], stepper.answer["revision"]) == ("v", 3)
    frames = stepper.answer["frames"]
    assert frames[1]["table"]["rows"][0][:3] == ["64", "1", "x[64]"]  # the ninth line of eight lanes
    stepper.request = {"view": "v", "revision": 4, "values": {"row": -1, "block": 0}, "narrow": True}
    assert stepper.answer["frames"][0]["w"] == 340 and stepper.answer["revision"] == 4
    stepper.request = {"view": "v", "revision": 5, "values": {"row": -1, "block": 1}}
    assert stepper.answer["frames"][1]["table"]["header"] == ["lane", "value"]


def test_a_saved_notebook_shows_the_step_and_its_data(ran):
    bundle, _ = ran[0]._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert "<table>" in bundle["text/html"] and "nothing orders the two" in bundle["text/html"]
    assert "<script" not in bundle["text/html"] and "tbt-saved" in bundle["text/html"]


def test_a_wrong_word_is_the_cells_error(ran):
    with pytest.raises(notebook.UsageError, match="must be a number such as 5"):
        notebook.parser().parse_args(["--program", "five"])


def test_three_texts_have_the_lines_of_the_source(recording):
    source, ir, ptx = page.code(recording)
    assert (source["label"], ir["label"], ptx["label"]) == ("total.py", "Triton IR", "PTX")
    for text, word in ((ir, "tt.store"), (ptx, "st.global")):
        assert len(text["lines"]) == len(text["of"])
        found = [of for line, of in zip(text["lines"], text["of"], strict=True) if word in line]
        assert found == [11], (text["label"], found)
    assert not any("loc(" in line for line in ir["lines"]) and not any(
        ".loc" in line for line in ptx["lines"]
    )
    loads = [of for line, of in zip(ir["lines"], ir["of"], strict=True) if "tt.load" in line]
    assert loads == [9, 10]


def test_a_loops_line_is_where_its_text_begins():
    text = '#loc = loc("k.py":3:0)\n#loc1 = loc("k.py":4:8)\nmodule {\n  scf.for %k {\n    op.a loc(#loc)\n  } loc(#loc1)\n} loc(#loc)\n'
    lines, of = texts.located(text, "k.py")
    assert list(zip(lines, of, strict=True)) == [
        ("module {", 3),
        ("  scf.for %k {", 4),
        ("    op.a", 3),
        ("  }", 0),
        ("}", 0),
    ]


@pytest.mark.browser
def test_the_page_in_a_browser(recording, chromium, tmp_path):
    from playwright.sync_api import sync_playwright

    (tmp_path / "page.html").write_text(page.page(recording), encoding="utf-8")
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for scheme in ("light", "dark"):
            context = browser.new_context(
                color_scheme=scheme, reduced_motion="reduce", viewport={"width": 1280, "height": 900}
            )
            tab, complaints = context.new_page(), []
            tab.on("pageerror", lambda error, said=complaints: said.append(str(error)))
            tab.goto((tmp_path / "page.html").as_uri())
            look(tab, Steps(recording))
            assert complaints == []
            context.close()


def look(tab, steps) -> None:
    """Race, lit lines, a lane that is picked by key and by hand, back to a line, and the data."""
    root = tab.locator(".tbt[data-revision]")
    lit = root.locator("[aria-current=step]")
    assert root.locator("line.hot").count() == 2
    assert {text.split()[0] for text in lit.all_inner_texts()[:1]} == {"11"} and lit.count() > 3
    root.locator(".tbt-listing").first.get_by_text("values = tl.load").click()
    assert root.get_attribute("data-step") == "1"
    root.locator('[data-id="l0-3"]').click()
    picked = root.locator(".tbt-picked")
    assert picked.locator(".tbt-picked-name").inner_text() == "lane 3 = 1: x[3] at byte 12, sector 0"
    assert picked.locator("li").first.inner_text().split("\n") == ["line 9", "values = 1, from x[3]"]
    walk = root.get_by_role("slider", name="Read the picture, mark by mark")
    walk.focus()
    walk.press("Home")
    walk.press("Enter")
    assert picked.locator(".tbt-picked-name").inner_text() == "lane 0 = 1: x[0] at byte 0, sector 0"
    picked.get_by_role("button", name="line 8").click()
    assert root.get_attribute("data-step") == "0"
    root.get_by_text("Show as data").click()
    root.locator(".tbt-data tbody tr").nth(63).wait_for()
    assert root.locator(".tbt-data tbody tr").count() == 64
    background = root.evaluate("node => getComputedStyle(node).backgroundColor")
    dark = tab.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    assert (background == "rgb(33, 33, 33)") == dark


def test_the_page_holds_its_own_data(recording):
    text = page.page(recording)
    held = text.split("const given = {", 1)[1].split(", hearing = new Set();")[0]
    given = json.loads("{" + held.replace("<\\/", "</"))
    assert given["wide"]["frames"][0]["w"] == 720 and given["narrow"]["frames"][0]["w"] == 340
    assert [one["label"] for one in given["spec"]["code"]] == ["total.py", "Triton IR", "PTX"]
    assert Path(recording.file).name == "total.py"
