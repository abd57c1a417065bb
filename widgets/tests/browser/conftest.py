"""For all files, which one worker runs: a browser, a JupyterLab, a page of it, a bare page. Each takes seconds to make."""

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from widgets.browser import BarePage, window
from widgets.browser import chromium as chromium_at
from widgets.tests.browser import in_lab, lab
from widgets.tests.browser.sink import SINK


class Served(NamedTuple):
    base: str
    project: Path  # as a learner has it
    folder: Path  # where tests put notebooks


@pytest.fixture(scope="package")
def served(tmp_path_factory) -> Served:
    """JupyterLab over some of the project's folders, labs copied to work/."""
    project = tmp_path_factory.mktemp("project")
    for name, to in (("course", "course"), ("labs", "work"), ("labs", "labs")):
        shutil.copytree(lab.ROOT / name, project / to)
    for name in ("grader", "kernels", "solutions", "widgets"):
        (project / name).mkdir()
    shutil.copy(lab.ROOT / "README.md", project)
    variables = {"TILE_RECORDS": str(project / "work/records"), "INSTRUCTOR": ""}
    with lab.server(project, variables) as base:
        yield Served(base, project, project / "work")


@pytest.fixture(scope="package")
def browser(chromium):
    with chromium_at(chromium) as browser:
        yield browser


@pytest.fixture(scope="package")
def lab_page(browser, served):
    """The one page of Lab: a file opens its notebook there instead of what was open."""
    page = in_lab.new_page(browser, served)
    yield page
    page.context.close()


@pytest.fixture(scope="package")
def only_bare_page(browser):
    bare = BarePage(browser, viewport=window(1130))
    yield bare
    bare.page.context.close()


@pytest.fixture
def bare(only_bare_page):
    """bare(shown, ...): the one bare page, loaded anew with these simulators, as open_page gives one of its own."""

    def load(shown: list, width: int = 1130, ahead: bool = False, viewport: dict | None = None, **media):
        page = only_bare_page.page
        page.mouse.up()  # whatever a test left there
        page.mouse.move(0, 0)
        page.set_viewport_size(viewport or window(width))
        page.emulate_media(**{"reduced_motion": "reduce", "forced_colors": "none", **media})
        only_bare_page.show(shown, "light", width, ahead)
        return page

    return load


@pytest.fixture
def sink(bare):
    """The invented simulator as it opens."""
    return bare([(SINK, {})])
