"""One JupyterLab for all files that a worker runs, and a browser for each file: starting either takes seconds."""

from pathlib import Path
from typing import NamedTuple

import pytest

from widgets.browser import chromium as chromium_at
from widgets.tests.browser import lab


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
