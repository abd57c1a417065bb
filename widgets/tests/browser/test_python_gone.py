"""A kernel that was restarted, one that was shut down, one that died: said within a second, with what to do.

A server that is gone is said at the end of test_course_in_lab.py, which has one to lose.
"""

import pytest
from playwright.sync_api import expect

from widgets.tests.browser import in_lab, lab

pytestmark = pytest.mark.browser
SECOND = 1_000


@pytest.fixture
def page(lab_page):
    """A notebook and a kernel of its own, run."""
    lab.open_instead(lab_page, lab.notebook(lab_page.folder, [in_lab.STEPS]))
    in_lab.run_one(lab_page)
    return lab_page


def said_at_once(page, words: str) -> None:
    assert (
        page.evaluate("() => Promise.race([window.said, new Promise(late => setTimeout(late, 5000, 5000))])")
        < SECOND
    )
    over = page.locator(".tbt-over")
    expect(over).to_contain_text(words)
    expect(page.locator(".tbt [role=status]").last).to_contain_text(words)
    expect(page.get_by_role("slider", name="Mantissa bits of the sum", exact=True)).to_be_disabled()
    scrub = page.get_by_role("slider", name="Step through each term")
    scrub.press("Home")
    expect(page.locator(".tbt[data-revision]")).to_have_attribute("data-step", "0")


@pytest.mark.parametrize("way", ["restartKernel", "shutdown"])
def test_a_restarted_kernel_is_said(page, way):
    page.evaluate(in_lab.SAID, "run the cell again")
    page.evaluate(f"() => {{ {lab.PANEL}.sessionContext.{way}(); }}")
    said_at_once(page, "run the cell again")


def test_a_kernel_that_died_is_said_and_the_controls_show_the_picture(page):
    """The kernel kills itself in the middle of an answer: the slider goes back to what is drawn."""
    slider = page.get_by_role("slider", name="Mantissa bits of the sum", exact=True)
    page.evaluate(in_lab.SAID, "run the cell again")
    page.evaluate(
        f"() => {{ {lab.PANEL}.sessionContext.session.kernel.requestExecute({{ code: 'import os; os._exit(1)' }}); }}"
    )
    slider.press("End")
    page.wait_for_function("() => document.querySelector('.tbt-over').checkVisibility()", timeout=60_000)
    expect(slider).to_have_value("3")
