"""A sentence in JupyterLab's Markdown sets the simulator, and Lab's own links stay Lab's."""

import pytest
from playwright.sync_api import expect

from widgets.tests.browser import lab

pytestmark = pytest.mark.browser
WORDS = "[never promote it](#set/fp8_accumulator?promote_every=0&step=3)"
CELLS = [
    "from widgets import show\nshow('fp8_accumulator')",
    f"from IPython.display import Markdown\nMarkdown({WORDS!r})",
]


def test_a_sentence_sets_the_simulator_in_lab(lab_page):
    page = lab_page
    lab.open_instead(page, lab.notebook(page.folder, CELLS))
    lab.run_all(page)
    root = page.locator(".tbt[data-revision]")
    expect(root).to_be_visible(timeout=60_000)
    page.get_by_role("link", name="never promote it").click()
    promote = page.get_by_role("slider", name="Promote after", exact=True)
    expect(promote).to_have_attribute("aria-valuetext", "never", timeout=30_000)
    expect(root).to_have_attribute("data-step", "3")
    assert "#set" not in page.url
