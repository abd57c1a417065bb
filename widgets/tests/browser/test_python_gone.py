"""A kernel that was restarted, one that was shut down, a server that is gone: said within a second, with what to do."""

import pytest
from playwright.sync_api import expect

from widgets.tests.browser import lab

pytestmark = pytest.mark.browser
SECOND = 1_000
CELL = "from widgets import show\nshow('fp8_accumulator')"
# The clock starts when Lab itself has heard of it: how long a server takes to stop a kernel is not ours.
SAID = """(words) => { let began = performance.now(); const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
  for (const signal of [kernel.statusChanged, kernel.disposed]) signal.connect(() => { began = performance.now(); });
  window.said = new Promise(done => {
  const look = () => (document.querySelector('.tbt-over')?.checkVisibility() && document.querySelector('.tbt-over').textContent.includes(words)
    ? done(performance.now() - began) : setTimeout(look, 20));
  look();
}); }"""


def on_a_page(browser):
    return browser.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce").new_page()


def run(page) -> None:
    lab.run_all(page)
    expect(page.locator(".tbt[data-revision]")).to_be_visible(timeout=30_000)


@pytest.fixture(scope="module")
def in_lab(browser, served):
    """One page of Lab for all tests of this file."""
    page = on_a_page(browser)
    lab.open_notebook(page, served.base, lab.notebook(served.folder, [CELL]))
    yield page
    page.context.close()


@pytest.fixture
def page(in_lab, served):
    """A notebook and a kernel of its own."""
    lab.open_instead(in_lab, lab.notebook(served.folder, [CELL]))
    run(in_lab)
    return in_lab


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
    page.evaluate(SAID, "run the cell again")
    page.evaluate(f"() => {{ {lab.PANEL}.sessionContext.{way}(); }}")
    said_at_once(page, "run the cell again")


def test_a_kernel_that_died_is_said_and_the_controls_show_the_picture(page):
    """The kernel kills itself in the middle of an answer: the slider goes back to what is drawn."""
    slider = page.get_by_role("slider", name="Mantissa bits of the sum", exact=True)
    page.evaluate(SAID, "run the cell again")
    page.evaluate(
        f"() => {{ {lab.PANEL}.sessionContext.session.kernel.requestExecute({{ code: 'import os; os._exit(1)' }}); }}"
    )
    slider.press("End")
    page.wait_for_function("() => document.querySelector('.tbt-over').checkVisibility()", timeout=15_000)
    expect(slider).to_have_value("3")


def test_a_server_that_is_gone_is_said(browser, tmp_path):
    with lab.server(tmp_path) as base:
        page = on_a_page(browser)
        lab.open_notebook(page, base, lab.notebook(tmp_path, [CELL]))
        run(page)
        page.evaluate(SAID, "server no longer answers")
    page.evaluate("() => window.said")
    expect(page.locator(".tbt-over")).to_contain_text("make lab")
    expect(page.get_by_role("slider", name="Mantissa bits of the sum", exact=True)).to_be_disabled()
    page.context.close()
