"""One JupyterLab for all files, which one worker runs, and a browser for each: starting either takes seconds."""

from pathlib import Path
from typing import NamedTuple

import pytest

from widgets.browser import ORIGIN, open_page
from widgets.browser import chromium as chromium_at
from widgets.tests.browser import lab
from widgets.tests.browser.sink import SINK


class Served(NamedTuple):
    base: str
    folder: Path


@pytest.fixture(scope="session")
def served(tmp_path_factory) -> Served:
    folder = tmp_path_factory.mktemp("lab")
    with lab.server(folder) as base:
        yield Served(base, folder)


@pytest.fixture(scope="module")
def browser(chromium):
    with chromium_at(chromium) as browser:
        yield browser


@pytest.fixture(scope="module")
def bare(browser):
    """One bare page for the tests of a file: a page of its own would cost each a second and a half of both cores."""
    page = open_page(browser, [(SINK, {})])
    yield page
    page.context.close()


@pytest.fixture
def sink(bare):
    """The invented simulator as it opens, and nothing under the pointer."""
    bare.mouse.move(0, 0)
    bare.goto(f"{ORIGIN}/")
    bare.locator("html[data-mounted]").wait_for(state="attached")
    return bare
