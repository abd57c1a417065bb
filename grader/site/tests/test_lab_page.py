"""A lab in a browser's tab: written, run, checked green and red, kept, and handed out as a notebook, without any server."""

import json
import time

import pytest
from playwright.sync_api import expect

from grader import questions
from grader.__main__ import main as grader
from grader.judge import referee
from grader.paths import ROOT
from grader.proofs import wrong
from grader.proofs.right import right
from grader.site.inside import PART
from grader.site.tab import processor_s
from grader.site.tests.conftest import tab_on

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("no_jails_left")]
LAB, NUMPY = "00_roofline/first_kernels", "00_roofline/concepts"
STUB = "raise NotImplementedError"
MOST_BYTES = 15e6  # of a first visit, compressed
needs_answers = pytest.mark.skipif(
    not (ROOT / "solutions").exists(), reason="solutions/, which is not handed out"
)


@pytest.fixture(scope="module")
def tab(sample, chromium):
    with tab_on(chromium, sample[0]) as found:
        yield found


@needs_answers
def test_a_first_visit_leads_to_a_green_check(tab, sample, record_property):
    """From an empty cache. What it fetches is bounded, and what it takes is told."""
    browser, sent, started = tab.page.context.browser, sample[1], time.monotonic()
    computed = processor_s(browser)
    tab.open(LAB)
    green = tab.answered("doubled", right("roofline.doubled"))
    first, size = time.monotonic() - started, sum(sent.values())
    computed = processor_s(browser) - computed
    assert green["verdict"] == "PASS" and "3 of 3 points" in green["text"], green
    assert 3e6 < size <= MOST_BYTES
    started, before = time.monotonic(), processor_s(browser)
    tab.open(LAB)
    assert tab.press("doubled", "check")["verdict"] == "PASS"
    again, computed_again = time.monotonic() - started, processor_s(browser) - before
    record_property(
        "said",
        f"the tab's first green check came {first:.0f} s after its page, with {size / 1e6:.1f} MB and {computed:.0f} "
        "processor seconds of the browser, "
        f"and {again:.0f} s after the page's second visit, with {computed_again:.0f} processor seconds",
    )


def test_the_page_holds_the_whole_lab(tab):
    tab.at(LAB)
    assert tab.page.locator(".lab-cell[data-kind=answer]").count() == 10
    assert tab.page.locator("html").get_attribute("data-editor") == "codemirror"
    assert tab.page.locator("article .drawn svg").count() >= 5


@pytest.mark.slow  # a wrong answer below is red, too
def test_the_stub_is_red(tab):
    tab.at(LAB)
    tab.write("differences", (stub := cell_of(LAB, "differences")))
    assert STUB in stub and tab.press("differences", "check")["verdict"] == "NOT STARTED"


def cell_of(lab: str, name: str) -> str:
    notebook = json.loads((ROOT / "labs" / f"{lab}.ipynb").read_text(encoding="utf-8"))
    return "".join(next(cell for cell in notebook["cells"] if cell["id"] == name)["source"])


@needs_answers
def test_a_wrong_answer_is_told_as_in_a_notebook(tab):
    """Sentence by sentence; ten of them in test_newcomer.py."""
    question = questions.find("roofline.doubled")
    source = wrong.source(question, next(iter(wrong.table(question).values())))
    verdict = referee.grade_one(source, question, seed=28)
    tab.at(LAB)
    told = tab.ask(what="check", question=question.id, source=source, seed=28)
    assert told["parts"] == [{key: getattr(part, key) for key in PART} for part in verdict.parts]
    assert verdict.verdict == told["verdict"] == "FAIL"


@needs_answers
def test_run_tries_a_case_and_cells_share_their_names(tab):
    tab.at(LAB)
    tab.write("doubled", right("roofline.doubled"))
    assert "every element agrees" in tab.press("doubled", "run")["text"]
    assert "every element agrees" in tab.press("cell_06", "run")["text"]  # run(launch_doubled, 1)
    tab.write("cell_09", "my_masked = 28, 29")
    assert "you said (28, 29)" in tab.press("cell_13", "run")["text"]


def test_hints_come_one_by_one(tab):
    tab.at(LAB)
    hints = questions.find("roofline.doubled").hints
    for many in (1, 2):
        tab.cell("doubled").locator("button.hint").click()
        assert tab.cell("doubled").locator(".lab-hints li").all_inner_texts() == list(hints[:many])


def test_python_reaches_no_other_origin(tab):
    """The worker is under the page's policy; without it the request would leave and the tab's guard would see it."""
    tab.at(LAB)
    tab.live()
    (worker,) = tab.page.workers
    assert worker.evaluate("fetch('https://elsewhere.test/').then(() => 'left', () => 'kept')") == "kept"
    policy = tab.page.locator("meta[http-equiv=Content-Security-Policy]").get_attribute("content")
    assert "default-src 'none'" in policy and "unsafe-eval" not in policy.replace("wasm-unsafe-eval", "")
    assert "script-src 'self' 'wasm-unsafe-eval';" in policy


def anew(tab):
    """Close the page and open its lab in another."""
    page = tab.page
    tab.page = page.context.new_page()
    page.close()
    tab.open(LAB)


def test_work_is_typed_kept_and_found_again(tab):
    tab.open(LAB)
    tab.write("doubled", "")
    tab.cell("doubled").locator(".cm-content").click()
    tab.page.keyboard.type("def mine():\nreturn 1")  # the editor indents
    assert tab.text("doubled") == "def mine():\n    return 1"
    anew(tab)
    assert tab.text("doubled") == "def mine():\n    return 1"


def test_work_is_found_again_where_the_database_was_too_slow(tab):
    """A tab may close between a key and its transaction's end."""
    tab.open(LAB)
    tab.page.evaluate("IDBObjectStore.prototype.put = () => ({})")  # a request that never ends
    tab.write("doubled", "the last word")
    anew(tab)
    assert tab.text("doubled") == "the last word"
    tab.write("doubled", "a later word")
    tab.page.wait_for_function("!Object.keys(localStorage).some(key => key.startsWith('tile-by-tile/'))")
    anew(tab)
    assert tab.text("doubled") == "a later word"


@needs_answers
@pytest.mark.slow
def test_the_notebook_that_is_saved_gets_the_same_points(tab, tmp_path, capsys):
    tab.at(NUMPY)
    plain = json.loads((ROOT / "labs" / f"{NUMPY}.ipynb").read_text(encoding="utf-8"))
    tab.write("roof", right("roofline.roof"))
    tab.write("tile_sectors", "def tile_sectors(rows, cols, row_length, elem_bytes):\n    return 1")
    tab.write("reflect", "My words.")
    here = {name: tab.press(name, "check") for name in ("roof", "tile_sectors")}
    assert [row["verdict"] for row in here.values()] == ["PASS", "FAIL"]
    assert "So far 2 of 12 points" in tab.page.locator(".lab-total").inner_text()
    with tab.page.expect_download() as download:
        tab.page.locator(".lab-save").click()
    saved = tmp_path / "concepts.ipynb"
    download.value.save_as(saved)
    made = json.loads(saved.read_text(encoding="utf-8"))
    assert [cell["metadata"] for cell in made["cells"]] == [cell["metadata"] for cell in plain["cells"]]
    assert next(cell for cell in made["cells"] if cell["id"] == "reflect")["source"] == "My words."
    for name in here:
        grader(["check", f"roofline.{name}", str(saved), "--json"])
        verdict = json.loads(capsys.readouterr().out)
        assert f"{verdict['points']:g} of {verdict['of']:g} points" in here[name]["text"]
    tab.write("roof", "# gone")
    tab.page.locator(".lab-open").set_input_files(saved)
    expect(tab.page.locator(".lab-told")).to_contain_text("cells are now as in concepts.ipynb")
    assert tab.text("roof") == right("roofline.roof")


@pytest.mark.parametrize(("text", "said"), [("{}", "another one"), ("no", "a file that is no notebook")])
def test_a_file_of_another_kind_changes_nothing(tab, tmp_path, text, said):
    tab.at(NUMPY)
    before = tab.text("roof")
    (tmp_path / "other.ipynb").write_text(text)
    tab.page.locator(".lab-open").set_input_files(tmp_path / "other.ipynb")
    expect(tab.page.locator(".lab-told")).to_contain_text(f"must be the notebook of this lab, got {said}")
    assert tab.text("roof") == before


def test_a_link_brings_a_text_that_the_reader_may_take(tab):
    tab.at(NUMPY)
    cell, theirs = tab.cell("tile_sectors"), "\n".join(8 * ["# a friend's é"])
    tab.write("tile_sectors", theirs)
    cell.locator("button.link").click()
    expect(cell.locator("button.link")).to_contain_text("ink")
    packed = tab.page.evaluate("text => tileLab.packed(text)", theirs)
    tab.write("tile_sectors", "# mine")
    for button, left in (("Keep mine", "# mine"), ("Use the link’s text", theirs)):
        follow(tab, f"cell=tile_sectors&text={packed}")
        expect(cell.locator(".lab-offer pre")).to_have_text(theirs)
        expect(cell.locator(".lab-offer pre")).to_be_in_viewport(ratio=1)
        assert tab.text("tile_sectors") == "# mine"  # nothing is taken unasked
        cell.get_by_role("button", name=button).click()
        assert tab.text("tile_sectors") == left
    follow(tab, "cell=tile_sectors&text=broken")
    expect(tab.page.locator(".lab-told")).to_contain_text("is damaged")


def follow(tab, part: str) -> None:
    tab.page.evaluate("part => { location.hash = part; }", part)


@needs_answers
@pytest.mark.slow  # Python starts anew
def test_stop_really_stops(tab):
    tab.at(LAB)
    tab.live()
    tab.write("doubled", "while True:\n    pass\n\n\ndef launch_doubled(p):\n    pass")
    cell = tab.cell("doubled")
    cell.locator("button.check").click()
    cell.locator("button.stop").click()
    expect(cell.locator(".lab-out")).to_contain_text("Stopped. Python starts anew")
    assert tab.answered("doubled", right("roofline.doubled"))["verdict"] == "PASS"
