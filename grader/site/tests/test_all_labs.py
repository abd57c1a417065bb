"""Every lab in the tab: each question red as it comes and green with its answer, and every other cell runs."""

import pytest

from grader.paths import ROOT
from grader.site import build, times
from grader.site.bundle import questions_of
from grader.site.tests.conftest import tab_on

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(not (ROOT / "solutions").exists(), reason="solutions/, which is not handed out"),
]

MOST_MEMORY = 1e9  # bytes; tiled products at the size that is compiled take some 0.6 of it


@pytest.fixture(scope="module")
def tab(whole, chromium):
    with tab_on(chromium, whole[0]) as found:
        yield found


@pytest.mark.parametrize("lab", build.labs())
def test_a_lab_is_red_then_green_in_the_tab(tab, lab, record_property):
    rows = times.of_lab(tab, lab)
    for question in questions_of(lab):
        row, compiled = rows[question.id], any(part.judged_by("cpu") == "compiled" for part in question.parts)
        assert row["stub"] == "NOT STARTED", row
        assert row["right"] == ("OPEN" if compiled else "PASS"), row
        record_property("said", f"{question.id} took {row['seconds']:.1f} processor seconds in the tab")
    memory = tab.memory_bytes()
    assert memory < MOST_MEMORY
    record_property("said", f"all questions of {lab} took {memory / 1e6:.0f} MB of memory in the tab")
    if tab.page.get_by_text("which no browser runs").count():
        return
    for cell in tab.page.locator(".lab-cell[data-kind=plain]").all():
        tab.press(cell.get_attribute("data-cell"), "run")
        assert cell.locator(".lab-out").get_attribute("data-failed") == "false", cell.inner_text()
