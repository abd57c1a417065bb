"""What a learner may do in a lab's page besides reading, writing and waiting: keys twice, two tabs, other files, Python's end."""

import json

import pytest
from playwright.sync_api import expect

from grader.paths import ROOT
from grader.site.tests.conftest import tab_on

pytestmark = pytest.mark.browser
LAB, NUMPY = "00_roofline/first_kernels", "00_roofline/concepts"
BUSY = """
import time
times, until = globals().get('times', 0) + 1, time.time() + 1
while time.time() < until:
    pass
f'{times} times'
"""
ABORTED = """() => {
  const put = IDBObjectStore.prototype.put;
  IDBObjectStore.prototype.put = function (...given) {
    const request = put.apply(this, given);
    request.addEventListener('success', () => this.transaction.abort());
    return request;
  };
}"""
TOLD = """([lab, name, points]) =>
  new BroadcastChannel('tile-by-tile').postMessage([lab, 'result', `roofline.${name}`, points])"""
NOTED = "name => Object.keys(localStorage).some(key => key.endsWith(`/text/${name}`))"


@pytest.fixture(scope="module")
def tab(sample, chromium):
    with tab_on(chromium, sample[0]) as found:
        yield found


@pytest.fixture
def second(tab):
    """The same lab in another tab of the same browser."""
    first = tab.page
    tab.at(NUMPY)
    page = first.context.new_page()
    other = type(tab)(page, tab.base)
    other.open(NUMPY)
    yield other
    page.close()


def notebook(lab: str) -> dict:
    return json.loads((ROOT / "labs" / f"{lab}.ipynb").read_text(encoding="utf-8"))


def given(tab, content, name: str = "mine (2).ipynb") -> str:
    """Open a file in the lab, and return what the page says."""
    told = tab.page.locator(".lab-told")
    tab.page.evaluate("document.querySelector('.lab-told').textContent = ''")
    file = {"name": name, "mimeType": "application/json", "buffer": json.dumps(content).encode()}
    tab.page.locator(".lab-open").set_input_files(file)
    expect(told).not_to_be_empty()
    return told.inner_text()


def test_a_key_pressed_twice_runs_a_cell_once_and_the_keyboard_stays(tab):
    tab.at(LAB)
    tab.live()
    tab.write("cell_06", BUSY)
    cell = tab.cell("cell_06")
    cell.locator(".cm-content").click()
    tab.page.keyboard.press("Shift+Enter")
    tab.page.keyboard.press("Shift+Enter")
    done = cell.locator("button.stop[hidden]")
    done.wait_for(state="attached")
    cell.locator("button.run").focus()
    tab.page.keyboard.press("Enter")
    cell.locator("button.stop:not([hidden])").wait_for()
    done.wait_for(state="attached")
    assert cell.locator(".lab-out").inner_text() == "'2 times'"
    expect(cell.locator("button.run")).to_be_focused()


def test_the_page_says_which_keys_lead_out_of_a_cell(tab):
    tab.open(LAB)
    assert "Escape and then Tab" in tab.page.locator(".lab-told").inner_text()
    tab.cell("doubled").locator(".cm-content").focus()
    tab.page.keyboard.press("Escape")
    tab.page.keyboard.press("Tab")
    expect(tab.cell("doubled").locator("button.run")).to_be_focused()


def test_a_cell_that_changes_while_it_runs_says_which_text_ran(tab):
    tab.at(LAB)
    tab.live()
    tab.write("cell_06", BUSY)
    cell = tab.cell("cell_06")
    cell.locator("button.run").click()
    tab.write("cell_06", "'another'")
    cell.locator("button.stop[hidden]").wait_for(state="attached")
    expect(cell.locator(".lab-out")).to_contain_text("the text before your change")
    assert "another" in tab.press("cell_06", "run")["text"]
    assert "your change" not in cell.locator(".lab-out").inner_text()


def test_stop_by_key_leaves_the_keyboard_in_its_cell(tab):
    tab.at(LAB)
    tab.live()
    tab.write("cell_06", "while True:\n    pass")
    cell = tab.cell("cell_06")
    cell.locator("button.run").click()
    cell.locator("button.stop").press("Enter")
    expect(cell.locator(".lab-out")).to_contain_text("Stopped. Python starts anew")
    expect(cell.locator("button.run")).to_be_focused()


def test_python_starts_anew_after_a_cell_ended_it(tab):
    tab.at(LAB)
    tab.live()
    tab.write("cell_06", "import os\nos._exit(3)")
    assert "Python ended in this cell and starts anew" in tab.press("cell_06", "run")["text"]
    tab.write("cell_06", "40 + 2")
    assert tab.press("cell_06", "run")["text"] == "42"


def test_python_that_did_not_come_is_asked_for_again(tab):
    page = tab.page
    page.route("**/judge.zip", lambda route: route.abort())
    try:
        tab.open(LAB)
        page.locator("html[data-judge=failed]").wait_for(state="attached")
        tab.write("cell_06", "40 + 2")
        assert "could not start" in tab.press("cell_06", "run")["text"]
    finally:
        page.unroute("**/judge.zip")
    assert tab.press("cell_06", "run")["text"] == "42"


def test_a_lab_that_shares_a_cells_name_is_another_lab(tab):
    tab.at(NUMPY)
    other = notebook("07_next_bottleneck/concepts")
    shared = next(cell for cell in other["cells"] if cell["id"] == "dispatch")
    shared["id"] = "roof"  # as two labs share dispatch
    before = tab.text("roof")
    assert "must be the notebook of this lab, got another one" in given(tab, other)
    assert tab.text("roof") == before


@pytest.mark.parametrize("content", [{"cells": 5}, {"cells": [None, {"id": "roof"}]}, []])
def test_a_damaged_notebook_is_told(tab, content):
    tab.at(NUMPY)
    before = tab.text("roof")
    assert "must be the notebook of this lab" in given(tab, content)
    assert tab.text("roof") == before


def test_a_file_of_any_name_changes_what_may_be_written(tab):
    tab.at(NUMPY)
    mine = notebook(NUMPY)
    for cell in mine["cells"]:
        if cell["cell_type"] == "code":
            cell["source"] = f"# mine\n{''.join(cell['source'])}"
    assert "cells are now as in" in given(tab, mine, "renamed by me.ipynb")
    assert tab.text("roof").startswith("# mine")
    imports = next(cell["id"] for cell in mine["cells"] if cell["metadata"].get("nbgrader", {}).get("locked"))
    assert not tab.text(imports).startswith("# mine")


def test_two_tabs_of_a_lab_show_the_last_word(tab, second):
    tab.write("roof", "# first")
    second.page.wait_for_function("tileLab.editors.get('roof').text === '# first'")
    second.write("roof", "# second")
    tab.page.wait_for_function("tileLab.editors.get('roof').text === '# second'")
    tab.write("tile_sectors", "# a word of the first tab")
    second.page.wait_for_function("tileLab.editors.get('tile_sectors').text.endsWith('first tab')")
    second.open(NUMPY)
    assert [second.text(name) for name in ("roof", "tile_sectors")] == ["# second", tab.text("tile_sectors")]


def test_points_of_another_tab_are_counted(tab, second):
    second.answered("roof", "def roof(*given):\n    return 0")
    expect(tab.page.locator(".lab-total")).to_have_text(second.page.locator(".lab-total").inner_text())
    assert "points in this lab" in tab.page.locator(".lab-total").inner_text()


def test_points_of_a_question_that_the_lab_no_longer_asks_are_not_counted(tab):
    tab.at(NUMPY)
    total = tab.page.locator(".lab-total")
    tab.page.evaluate(TOLD, [NUMPY, "roof", {"points": 1, "of": 2, "open": 0}])
    expect(total).to_contain_text("So far 1 of 12 points")
    tab.page.evaluate(TOLD, [NUMPY, "gone", {"points": 20, "of": 20, "open": 0}])
    tab.page.evaluate(TOLD, [NUMPY, "roof", {"points": 2, "of": 2, "open": 0}])
    expect(total).to_contain_text("So far 2 of 12 points")


def test_no_key_is_lost_before_the_page_is_ready(tab):
    """A page whose script is still under way takes none, because what this browser kept comes with the script."""
    tab.page.route("**/assets/lab.js", lambda route: route.abort())
    try:
        tab.page.goto("about:blank")
        tab.page.goto(f"{tab.base}/labs/{NUMPY}.html")
        expect(tab.cell("roof").locator("textarea")).not_to_be_editable()
    finally:
        tab.page.unroute("**/assets/lab.js")
    tab.open(NUMPY)
    expect(tab.cell("roof").locator(".cm-content")).to_be_editable()


def test_a_notebook_that_does_not_come_is_told(tab):
    tab.open(NUMPY)
    tab.page.route("**/*.ipynb", lambda route: route.abort())
    try:
        tab.page.locator(".lab-save").click()
        expect(tab.page.locator(".lab-told")).to_contain_text("nothing was saved")
    finally:
        tab.page.unroute("**/*.ipynb")


def test_work_that_the_database_took_back_is_told_and_held(tab):
    tab.open(NUMPY)
    tab.page.evaluate(ABORTED)
    tab.write("roof", "# not written")
    expect(tab.page.locator(".lab-told")).to_contain_text("keeps nothing for this page")
    assert tab.page.evaluate(NOTED, "roof")
    tab.open(NUMPY)
    assert tab.text("roof") == "# not written"
