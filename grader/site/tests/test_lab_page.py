"""A lab in a browser's tab: written, run, checked green and red, kept, and handed out as a notebook, without any server."""

import json
import os
import threading
import time
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import expect

from grader import questions
from grader.judge import referee, report
from grader.places import ROOT
from grader.proofs import right
from grader.site import build, ranged
from widgets.browser import chromium as chromium_at
from widgets.site import npm

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("no_jails_left")]
START_MS = 240_000  # Python in a page, on a machine that does much else
PAGE = "labs/00_roofline/first_kernels.html"
STUB = "raise NotImplementedError"
FIRST = [
    one.name for one in questions.load().values() if one.notebook_path == "00_roofline/first_kernels.ipynb"
]
LATER = FIRST[1:]


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """The labs' part of the site, with Pyodide and numpy; where they can't be had, not run, and under CI an error."""
    out = tmp_path_factory.mktemp("site")
    try:
        build.put(out, build.make())
        npm.unpack(out)
    except (npm.NotFetched, ranged.NotFetched) as problem:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"needs Pyodide and its numpy: {problem}")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=out))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.fixture(scope="module")
def page(base, chromium):
    """The lab's page; whatever it asks of another server is kept from it and told at the end."""
    elsewhere = []

    def guard(route):
        ours = route.request.url.startswith((base + "/", "blob:"))
        if not ours:
            elsewhere.append(route.request.url)
        route.continue_() if ours else route.abort()

    with chromium_at(chromium) as browser:
        context = browser.new_context(accept_downloads=True)
        context.route("**/*", guard)
        one = context.new_page()
        one.goto(f"{base}/{PAGE}")
        yield one
        context.close()
    assert elsewhere == []


def answered(page, name: str, source: str, button: str) -> dict:
    """What the page says once an answer was written and a button pressed."""
    cell = page.locator(f'.lab-cell[data-cell="{name}"]')
    cell.locator("textarea").fill(source)
    cell.locator(f"button.{button}").click()
    expect(cell.locator(".stop")).to_be_hidden(timeout=START_MS)
    out = cell.locator(".lab-out")
    return {
        "text": out.inner_text(),
        "verdict": out.get_attribute("data-verdict"),
        "seconds": out.get_attribute("data-seconds"),
    }


def correct(name: str) -> str:
    if not (ROOT / "solutions").exists():
        pytest.skip("solutions/, which is not handed out")
    return right.right(f"roofline.{name}")


def test_python_starts_in_the_page(page, record_property):
    started = time.monotonic()
    expect(page.locator("html")).to_have_attribute("data-judge", "live", timeout=START_MS)
    record_property(
        "said", f"the judge was ready in the tab {time.monotonic() - started:.0f} s after its page"
    )
    assert page.locator(".lab-cell").count() == len(FIRST) == 10
    assert page.locator("article img").first.evaluate("picture => picture.naturalWidth") > 0


def test_the_stub_is_red_and_the_solution_green(page, record_property):
    stub = page.locator('.lab-cell[data-cell="doubled"] textarea').input_value()
    assert STUB in stub
    assert answered(page, "doubled", stub, "check")["verdict"] == "NOT STARTED"
    green = answered(page, "doubled", correct("doubled"), "check")
    assert green["verdict"] == "PASS" and "3 of 3 points" in green["text"], green
    record_property("said", f"roofline.doubled was checked in the tab in {green['seconds']} s")


@pytest.mark.slow
@pytest.mark.parametrize("name", LATER)
def test_every_step_is_judged_in_the_tab(page, name, record_property):
    stub = page.locator(f'.lab-cell[data-cell="{name}"] textarea').input_value()
    assert answered(page, name, stub, "check")["verdict"] == "NOT STARTED"
    green = answered(page, name, correct(name), "check")
    assert green["verdict"] == ("OPEN" if name == "tile_settings" else "PASS"), green
    record_property("said", f"roofline.{name} was checked in the tab in {green['seconds']} s")


def test_a_wrong_answer_is_told_as_in_a_notebook(page):
    wrong = correct("doubled").replace("2 * x", "3 * x")
    told = answered(page, "doubled", wrong, "check")
    verdict = referee.grade_one(wrong, questions.find("roofline.doubled"), seed=3)
    lost = verdict.parts[0]
    assert told["verdict"] == report.title(verdict)[0] == "FAIL"
    assert lost.asked in told["text"] and lost.look in told["text"]


def test_run_shows_a_case(page):
    assert "y" in answered(page, "doubled", correct("doubled"), "run")["text"]


def test_hints_come_one_by_one(page):
    cell = page.locator('.lab-cell[data-cell="doubled"]')
    hints = questions.find("roofline.doubled").hints
    for many in (1, 2):
        cell.locator("button.hint").click()
        assert cell.locator(".lab-hints li").all_inner_texts() == list(hints[:many])


def test_work_is_kept_and_handed_out_as_the_notebook(page):
    area = page.locator('.lab-cell[data-cell="doubled"] textarea')
    area.fill("# mine\n" + correct("doubled"))
    page.wait_for_timeout(500)  # what was written last is stored last
    assert int(page.locator("html").get_attribute("data-kept")) > 0
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-lab", "ready")
    assert area.input_value().startswith("# mine\n")
    with page.expect_download() as download:
        page.locator(".lab-save").click()
    made = json.loads(download.value.path().read_text(encoding="utf-8"))
    plain = json.loads((ROOT / "labs/00_roofline/first_kernels.ipynb").read_text(encoding="utf-8"))
    assert [cell["id"] for cell in made["cells"]] == [cell["id"] for cell in plain["cells"]]
    (mine,) = (cell for cell in made["cells"] if cell["id"] == "doubled")
    assert mine["source"] == "# mine\n" + correct("doubled")
    area.fill("# gone")
    page.locator(".lab-open").set_input_files(download.value.path())
    expect(area).to_have_value("# mine\n" + correct("doubled"))


@pytest.mark.slow  # Python starts anew
def test_stop_really_stops(page):
    cell = page.locator('.lab-cell[data-cell="doubled"]')
    cell.locator("textarea").fill("while True:\n    pass\n\n\ndef launch_doubled(p):\n    pass")
    cell.locator("button.check").click()
    cell.locator("button.stop").click()
    expect(cell.locator(".lab-out")).to_have_text("Stopped.")
    assert answered(page, "doubled", correct("doubled"), "check")["verdict"] == "PASS"


def test_no_solution_is_in_the_bundle():
    from io import BytesIO
    from zipfile import ZipFile

    from grader.site.bundle import bundle

    if not (ROOT / "solutions").exists():
        pytest.skip("solutions/, which is not handed out")
    with ZipFile(BytesIO(bundle(["roofline"]))) as file:
        held = {name: file.read(name).decode() for name in file.namelist() if not name.startswith("triton/")}
    assert not [
        name for name in held if "/answers/" in name or "/cells/" in name or name.startswith("solutions")
    ]
    lines = {line.strip() for line in correct("doubled").splitlines() if "tl.store" in line}
    assert lines and not [name for name, text in held.items() if any(line in text for line in lines)]
