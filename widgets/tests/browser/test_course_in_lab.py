"""The course as `make lab` opens it, in a real JupyterLab: a learner's view, and an instructor's."""

import json
import os
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import expect

from kernels import texts
from widgets.registry import every
from widgets.tests.browser import in_lab, lab

pytestmark = pytest.mark.browser
RECORD = {"verdict": "PASS", "points": 1, "of": 1}
ITEMS = ".jp-DirListing-item"
ROWS = f"""() => [...document.querySelectorAll('{ITEMS}')]
  .sort((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top)
  .map(item => item.querySelector('.jp-DirListing-itemText').textContent)"""


def passed(folder: Path) -> str:
    """A Record of the first check of the first lab; its title."""
    first = sorted((folder / "labs").glob("*/concepts.ipynb"))[0]
    cells = json.loads(first.read_text(encoding="utf-8"))["cells"]
    name = next(cell["id"] for cell in cells if cell["id"].startswith("check_")).removeprefix("check_")
    place = folder / "work/records" / f"{first.parent.name.partition('_')[2]}.{name}"
    place.mkdir(parents=True)
    (place / "20260101T000000.json").write_text(json.dumps(RECORD))
    return cells[0]["source"][0].removeprefix("# ").strip()


@pytest.fixture(scope="module")
def learner(served, browser):
    page = browser.new_context(viewport={"width": 1920, "height": 1000}, reduced_motion="reduce").new_page()
    page.base, page.project = served.base, served.project
    yield page
    page.context.close()


def open_tree(page, path: str) -> None:
    """As a learner who follows the link that `make lab` prints."""
    page.goto(f"{page.base}/lab/tree/{path}?reset")
    page.wait_for_function(lab.OPENED, timeout=60_000)
    page.evaluate(lab.READY)
    page.wait_for_function(f"path => {lab.PANEL}.context.path === path", arg=path)
    page.locator(ITEMS).first.wait_for()


def open_here(page, path: str) -> None:
    """As a learner who is in Lab already."""
    if page.url.startswith(page.base):
        lab.open_instead(page, path)
    else:
        open_tree(page, path)


def panel(page):
    return page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")


def test_the_list_on_the_left_is_the_courses_order(learner):
    open_tree(learner, "course/start.ipynb")
    rows = learner.evaluate(ROWS)
    lessons = [name for name in rows if name[:2].isdigit()]
    assert rows[0] == "start.ipynb" and lessons == sorted(lessons) and len(lessons) >= 3
    assert set(rows) == {"start.ipynb", "simulators", "glossary.ipynb", "from_the_sources.ipynb", *lessons}, (
        rows
    )
    assert all("…" not in name for name in rows)
    folder = next((learner.project / "course").glob("[0-9][0-9]_*/"))
    open_tree(learner, f"course/{folder.name}/review.ipynb")
    wanted = [page.with_suffix(".ipynb").name for page in texts.pages(folder)]
    assert learner.evaluate(ROWS) == wanted
    learner.locator(".jp-BreadCrumbs-home").click()
    expect(learner.locator(ITEMS)).to_have_count(2)
    assert learner.evaluate(ROWS) == ["course", "work"]


def test_instructors_tools_are_out_of_sight(learner):
    open_here(learner, "course/start.ipynb")
    expect(learner.locator(".lm-MenuBar-itemLabel", has_text="Help")).to_be_visible()
    expect(learner.get_by_text("Nbgrader", exact=True)).to_have_count(0)
    expect(learner.get_by_text("Validate", exact=True)).to_have_count(0)
    expect(learner.locator('[title="Create Assignment"], [data-id*="create_assignment"]')).to_have_count(0)


def test_the_start_page_leads_to_every_simulator(learner):
    open_here(learner, "course/start.ipynb")
    links = panel(learner).locator('a[href*="simulators/"]')
    expect(links).to_have_count(len(every()))
    one = next(d for d in every() if d.name == "tile_walk")
    links.filter(has_text=one.title).click()
    learner.wait_for_function(f"() => {lab.PANEL}.context.path === 'course/simulators/01_tile_walk.ipynb'")
    learner.evaluate(lab.READY)
    still = panel(learner).locator(".jp-OutputArea-output img")
    expect(still).to_be_visible()
    expect(still).not_to_have_js_property("naturalWidth", 0)
    expect(panel(learner).get_by_text("not kept when you save")).to_be_visible()
    learner.wait_for_function(lab.IDLE, timeout=60_000)
    lab.run_all(learner)
    alive = panel(learner).locator(".tbt[data-revision]")
    expect(alive).to_be_visible(timeout=60_000)
    expect(still).to_have_count(0)
    lab.save_and_stop(learner)
    now = json.loads((learner.project / "course/simulators/01_tile_walk.ipynb").read_text())
    assert now == json.loads((lab.ROOT / "course/simulators/01_tile_walk.ipynb").read_text())


def test_the_start_page_says_how_far_one_is_and_no_cell_need_be_run(learner):
    title = passed(learner.project)
    open_here(learner, "course/start.ipynb")
    row = panel(learner).locator("tr", has=learner.locator("progress")).filter(has_text=title)
    expect(row).to_contain_text("1 of ", timeout=60_000)
    expect(panel(learner).get_by_text("not started").first).to_be_visible()


def test_a_lesson_opens_with_its_pictures_and_readable_lines(learner):
    open_here(learner, "course/01_gemm_tiling/a_reuse.ipynb")
    stills = panel(learner).locator('.jp-OutputArea-output img[src*="pictures/"]')
    expect(stills.first).to_be_attached()
    expect(stills.first).not_to_have_js_property("naturalWidth", 0)
    widest = learner.evaluate(
        "() => Math.max(...[...document.querySelectorAll('.jp-MarkdownOutput > p')].map(p => p.clientWidth))"
    )
    size = learner.evaluate(
        "() => parseFloat(getComputedStyle(document.querySelector('.jp-MarkdownOutput > p')).fontSize)"
    )
    assert 0 < widest <= 42 * size
    lab.set_theme(learner, dark=True)
    assert "invert" in stills.first.evaluate("one => getComputedStyle(one).filter")
    lab.set_theme(learner, dark=False)
    assert stills.first.evaluate("one => getComputedStyle(one).filter") == "none"


@pytest.fixture(scope="module")
def instructor(served, browser):
    """A page over a server with the instructors' setting; page.stop() ends the server."""
    paths = os.pathsep.join(str(lab.ROOT / name) for name in (".jupyter/instructor", ".jupyter"))
    variables = {"INSTRUCTOR": "1", "JUPYTER_CONFIG_PATH": paths}
    with ExitStack() as running:
        page = browser.new_context(viewport=in_lab.WINDOW, reduced_motion="reduce").new_page()
        page.base = running.enter_context(lab.server(served.project, variables))
        page.stop = running.close
        yield page
    page.context.close()


def test_one_setting_brings_an_instructors_tools_and_folders_back(instructor):
    page = instructor
    assert ".jupyter/instructor$(AND)" in (lab.ROOT / "Makefile").read_text(encoding="utf-8")
    open_tree(page, "course/start.ipynb")
    expect(page.locator(".lm-MenuBar-itemLabel", has_text="Nbgrader")).to_be_visible()
    page.locator(".jp-BreadCrumbs-home").click()
    expect(page.locator(ITEMS).filter(has_text="solutions")).to_be_visible()


def test_a_server_that_is_gone_is_said(instructor, served):
    """The last of this file, for it ends that server."""
    page = instructor
    open_here(page, lab.notebook(served.folder, [in_lab.STEPS]))
    in_lab.run_one(page)
    page.evaluate(in_lab.SAID, "server no longer answers")
    page.stop()
    page.evaluate("() => window.said")
    expect(page.locator(".tbt-over")).to_contain_text("make lab")
    expect(page.get_by_role("slider", name="Mantissa bits of the sum", exact=True)).to_be_disabled()
