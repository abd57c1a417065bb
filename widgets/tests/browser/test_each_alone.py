"""Every simulator alone on a bare page: what its own words, controls and marks must not break in a browser.

How the view answers is one code for all, tried in JupyterLab on a sample.
"""

import pytest
from playwright.sync_api import expect

from widgets.browser import open_page
from widgets.registry import every
from widgets.tests.accessible import broken_rules
from widgets.tests.browser import seen
from widgets.tests.browser.in_lab import drawn, expected, figures, open_more, scene_shown

pytestmark = pytest.mark.browser
ROLES = {"slider": ("slider",), "toggle": ("checkbox",), "number": ("spinbutton",)}
CHOICE = ("radiogroup", "combobox")


@pytest.mark.parametrize("simulator", every(), ids=lambda d: d.id)
def test_a_simulator_opens_with_its_story(browser, simulator):
    complaints = []
    page = open_page(browser, [(simulator, {})])
    page.on("pageerror", lambda problem: complaints.append(str(problem)))
    root = page.locator(".tbt[data-revision]")
    first = scene_shown(root, simulator)
    expect(root).to_have_accessible_name(simulator.title)
    assert figures(root) == expected(root, simulator)
    assert drawn(root) == [mark["id"] for mark in first.marks]
    seen.controls_and_picture_are_seen_together(root, simulator)
    seen.a_screen_reader_is_told_the_story(root, simulator)
    if any(control.more for control in simulator.controls):
        open_more(root)
    for control in simulator.controls:
        named = [
            root.get_by_role(role, name=control.label, exact=control.kind != "number")
            for role in ROLES.get(control.kind, CHOICE)
        ]
        assert sum(one.count() for one in named) == 1, f"{control.label} is one control by its name"
    root.get_by_text("Show as data", exact=True).press("Enter")
    assert broken_rules(page, ".tbt[data-revision]") == []
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    assert broken_rules(page, ".tbt[data-revision]", colour_alone=True) == []
    page.emulate_media(forced_colors="active")
    assert broken_rules(page, ".tbt[data-revision]", colour_alone=True) == []
    assert not complaints
    page.context.close()
