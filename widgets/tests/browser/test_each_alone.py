"""Every simulator on a bare page: what its own words, controls and marks must not break in a browser.

How the view answers, and its other looks, are one code for all, tried in JupyterLab on a sample.
"""

import pytest
from playwright.sync_api import expect

from widgets.browser import open_page
from widgets.registry import every
from widgets.tests.accessible import broken_rules
from widgets.tests.browser import seen
from widgets.tests.browser.in_lab import drawn, expected, figures, open_more, scene_shown, shown

pytestmark = pytest.mark.browser
EVERY = every()
A_SHEET = 8  # simulators: to open a page takes longer than to look at one
SHEETS = [EVERY[at : at + A_SHEET] for at in range(0, len(EVERY), A_SHEET)]
ROLES = {"slider": ("slider",), "toggle": ("checkbox",), "number": ("spinbutton",)}
CHOICE = ("radiogroup", "combobox")


@pytest.fixture(scope="module")
def pages(browser):
    """pages(simulator): the page that shows it among others, opened when it is first asked for."""
    opened = {}

    def page_of(simulator):
        at = next(i for i, sheet in enumerate(SHEETS) if simulator in sheet)
        if at not in opened:
            page = opened[at] = open_page(browser, [(one, {}) for one in SHEETS[at]])
            page.simulators, page.complaints = SHEETS[at], []
            page.on("pageerror", lambda problem: page.complaints.append(str(problem)))
        return opened[at]

    return page_of


def smallest_text(root) -> float:
    """px, as it is seen."""
    return root.locator("svg.tbt-scene text").evaluate_all(
        "all => Math.min(...all.map(node => parseFloat(getComputedStyle(node).fontSize) * node.getScreenCTM().a))"
    )


@pytest.mark.parametrize("simulator", EVERY, ids=lambda d: d.id)
def test_it_opens_with_its_story_and_every_control_by_its_name(pages, simulator):
    page = pages(simulator)
    root = shown(page, simulator)
    expect(root).to_have_accessible_name(simulator.title)
    assert figures(root) == expected(root, simulator)
    assert drawn(root) == [mark["id"] for mark in scene_shown(root, simulator).marks]
    seen.a_screen_reader_is_told_the_story(root, simulator)
    folds = root.locator("details[open] > summary")
    while folds.count():
        folds.first.press("Enter")
    seen.question_and_answer_are_seen_together(root, simulator)
    if any(control.more for control in simulator.controls):
        open_more(root)
    for control in simulator.controls:
        named = [
            root.get_by_role(role, name=control.label, exact=control.kind != "number")
            for role in ROLES.get(control.kind, CHOICE)
        ]
        assert sum(one.count() for one in named) == 1, f"{control.label!r} must name one control"
    assert page.complaints == []


@pytest.mark.parametrize("sheet", SHEETS, ids=lambda sheet: f"from {sheet[0].id}")
def test_it_fits_in_lab_with_its_list_of_files_open(pages, sheet):
    """In the column that a window of 1280 leaves beside Lab's files, the figures stand at the picture's left."""
    page = pages(sheet[0])
    page.evaluate(
        "() => { document.body.style.width = '848px'; for (const one of document.querySelectorAll('details')) one.open = false; }"
    )
    for simulator in sheet:
        root = shown(page, simulator)
        expect(root).to_have_attribute("data-room", "margin")
        seen.question_and_answer_are_seen_together(root, simulator)
        assert smallest_text(root) >= 11
    page.evaluate("() => { document.body.style.width = '1130px'; }")


@pytest.mark.parametrize("sheet", SHEETS, ids=lambda sheet: f"from {sheet[0].id}")
def test_no_accessibility_rule_is_broken(pages, sheet):
    page = pages(sheet[0])
    for summary in page.locator(".tbt[data-revision] summary").all():
        if summary.locator("xpath=..").get_attribute("open") is None:
            summary.press("Enter")
    assert broken_rules(page, ".tbt[data-revision]") == []
