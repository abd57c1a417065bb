"""A class on a real JupyterHub: released, fetched, answered, handed in, collected, graded and looked at, by real users."""

import json
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from grader.classroom.hub.tests import machine

LAB = "01_gemm_tiling"
RIGHT = "def reuse(bm, bn):\n    return 2 * bm * bn / (bm + bn)\n"
WRONG = "def reuse(bm, bn):\n    return bm + bn\n"
HERE = "tile-by-tile/" + LAB

pytestmark = [
    pytest.mark.skipif(bool(machine.missing()), reason=f"needs {machine.missing()}"),
    pytest.mark.browser,
]


@pytest.fixture(scope="module")
def hub():
    """A hub with three students and an instructor, in a folder that all may pass through."""
    place = Path(tempfile.mkdtemp(prefix="hub", dir="/srv"))
    place.chmod(0o755)
    one = machine.Machine(place)
    try:
        one.make([one.user(name) for name in ("ada", "bob", "cleo")], one.user("teacher"))
        one.lay_out(one.user("teacher"))
        one.start()
        yield one
    except BaseException:
        print(one.log.read_text()[-6000:] if one.log else "the hub was not started")
        raise
    finally:
        one.end()
        shutil.rmtree(place, ignore_errors=True)


class Person:
    """A user in a browser of their own."""

    def __init__(self, hub, browser, name):
        self.hub, self.name, self.base = hub, name, f"{hub.url}/user/{name}"
        self.context = browser.new_context(viewport={"width": 1280, "height": 860})
        self.page = self.context.new_page()
        self.page.set_default_timeout(60_000)
        self.page.goto(f"{hub.url}/hub/login")
        self.page.fill("input[name=username]", name)
        self.page.fill("input[name=password]", hub.users[name])
        self.page.press("input[name=password]", "Enter")
        self.page.wait_for_url(f"{self.base}/**", timeout=150_000)

    def ask(self, path: str, method: str = "GET", body=None, form=None):
        """(status, answer) of the user's own server, as its pages ask it."""
        return self.page.evaluate(
            """async ([url, method, body, form]) => {
                const token = (document.cookie.match(/(?:^|; )_xsrf=([^;]*)/) || [])[1];
                const sent = form ? new URLSearchParams(form) : body ? JSON.stringify(body) : undefined;
                const reply = await fetch(url, {method, body: sent, headers: {"X-XSRFToken": token || ""}});
                const text = await reply.text();
                try { return [reply.status, JSON.parse(text)]; } catch { return [reply.status, text]; }
            }""",
            [f"{self.base}/{path}", method, body, form],
        )

    def notebook(self, name: str):
        status, found = self.ask(f"api/contents/{HERE}/{name}.ipynb?content=1")
        assert status == 200, found
        return found["content"]

    def write(self, name: str, answers: dict) -> None:
        content = self.notebook(name)
        for cell in content["cells"]:
            cell["source"] = answers.get(cell["id"], cell["source"])
        status, said = self.ask(
            f"api/contents/{HERE}/{name}.ipynb", "PUT", {"type": "notebook", "content": content}
        )
        assert status == 200, said

    def assignments(self) -> list:
        status, found = self.ask("assignments?course_id=tile-by-tile")
        assert status == 200 and found["success"], found
        return found["value"]


def test_a_class_goes_all_the_way(hub, browser, tmp_path):
    ada, bob, teacher = (hub.user(name) for name in ("ada", "bob", "teacher"))
    hub.by(teacher, "nbgrader", "release_assignment", LAB)

    students = {name: Person(hub, browser, name) for name in (ada, bob)}
    for name, person in students.items():
        assert [(one["assignment_id"], one["status"]) for one in person.assignments()] == [(LAB, "released")]
        fetch_in_the_browser(person)
        person.write(
            "concepts", {"reuse": RIGHT if name == ada else WRONG, "reflect": f"By {name}, who has thought."}
        )
    check_in_the_browser(students[ada])
    for person in students.values():
        submit_in_the_browser(person)

    collected = hub.by(teacher, "nbgrader", "collect", LAB) or "".join(
        path.name for path in (hub.home(teacher) / "tile-by-tile/submitted").iterdir()
    )
    assert ada in collected and bob in collected
    said = hub.by(teacher, "python", "-m", "grader", "class", LAB, "--mode", "cpu", "--json")
    rows = {row["student"]: row for row in json.loads(said)["students"]}
    assert (
        rows[ada]["verdicts"]["gemm_tiling.reuse"] == "PASS"
        and rows[bob]["verdicts"]["gemm_tiling.reuse"] == "FAIL"
    )
    assert (rows[ada]["points"], rows[bob]["points"]) == (2, 0) and not rows[ada]["trouble"] + rows[bob][
        "trouble"
    ]

    look_into_the_formgrader(Person(hub, browser, teacher), {ada, bob})
    again = json.loads(hub.by(teacher, "python", "-m", "grader", "class", LAB, "--json"))["students"]
    assert sum(row["points"] for row in again) == 5, "3 by hand, and kept"
    assert [row["unchanged"] for row in again].count(False) == 1, "the row of whom a person gave them"
    hands_in_again(hub, students[bob], teacher)
    hub.by(teacher, "nbgrader", "generate_feedback", LAB)
    hub.by(teacher, "nbgrader", "release_feedback", LAB)
    form = {"course_id": "tile-by-tile", "assignment_id": LAB}
    status, said = students[bob].ask("assignments/fetch_feedback", "POST", form=form)
    assert status == 200 and said["success"], said
    pages = list((hub.home(bob) / HERE).rglob("feedback/**/concepts.html"))
    assert len(pages) == 1 and "gemm_tiling.reuse" in pages[0].read_text()

    walk_to_the_feedback(students[ada])
    comes_late(hub, browser, teacher)
    what_nobody_else_may_see(hub, students[bob], ada, teacher)


def hands_in_again(hub, person, teacher):
    """A second hand-in is said before it is collected, then taken, and it counts."""
    person.write("concepts", {"reuse": WRONG + "\n# again\n"})
    submit_in_the_browser(person)
    said = json.loads(hub.by(teacher, "python", "-m", "grader", "class", LAB, "--json"))["students"]
    (row,) = (one for one in said if one["student"] == person.name)
    assert any("a newer hand-in of" in words for words in row["said"]), row
    hub.by(teacher, "nbgrader", "collect", LAB)
    said = json.loads(hub.by(teacher, "python", "-m", "grader", "class", LAB, "--json"))["students"]
    (row,) = (one for one in said if one["student"] == person.name)
    assert not row["unchanged"] and any(words.startswith("handed in 2 times") for words in row["said"]), row


def walk_to_the_feedback(person):
    """From the list of assignments to the page, as a student finds it."""
    page = person.page
    page.goto(f"{person.base}/lab")
    page.get_by_role("menuitem", name="Nbgrader").click()
    page.get_by_role("menuitem", name="Assignment List").click()
    page.get_by_role("button", name="Fetch Feedback").click()
    page.get_by_text(
        "(view feedback)"
    ).first.click()  # to whoever asks for roles it is no link: it has no address
    page.locator(".jp-DirListing-item").get_by_text("concepts.html").wait_for()


def comes_late(hub, browser, teacher):
    """The third student hands in after the due date, when the others have their feedback."""
    cleo = hub.user("cleo")
    due = ("nbgrader", "db", "assignment", "add", LAB, "--duedate", "2020-01-01 00:00 UTC")
    hub.by(teacher, *due)
    person = Person(hub, browser, cleo)
    fetch_in_the_browser(person)
    person.write("concepts", {"reuse": RIGHT})
    submit_in_the_browser(person)
    hub.by(teacher, "nbgrader", "collect", LAB)
    said = json.loads(hub.by(teacher, "python", "-m", "grader", "class", LAB, "--json"))["students"]
    rows = {row["student"]: row for row in said}
    assert rows[cleo]["points"] == 2 and rows[cleo]["late_s"] > 0 and len(rows) == 3


def fetch_in_the_browser(person):
    """The list of assignments, as a student opens it in JupyterLab."""
    page = person.page
    page.goto(f"{person.base}/lab")
    page.get_by_role("menuitem", name="Nbgrader").click()
    page.get_by_role("menuitem", name="Assignment List").click()
    page.get_by_role("button", name="Fetch", exact=True).click()
    page.get_by_role("button", name="Submit", exact=True).wait_for()
    status, found = person.ask(f"api/contents/{HERE}")
    assert {one["name"] for one in found["content"]} >= {"concepts.ipynb", "kernel.ipynb"}
    assert person.page.get_by_role("menuitem", name="Formgrader").count() == 0


def check_in_the_browser(person):
    """The lesson opens, its pictures are found, and a check of the student's own answer says PASS."""
    assert person.ask("api/contents/course/start.ipynb?content=0")[0] == 200
    page = person.page
    page.goto(f"{person.base}/lab/tree/{HERE}/concepts.ipynb")
    page.get_by_text("Python 3 (ipykernel) | Idle").wait_for()  # what is run before that is lost
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells").first.click()
    page.get_by_role("region", name="Check of gemm_tiling.reuse: PASS").wait_for(timeout=180_000)
    picture = page.locator(".jp-RenderedMarkdown img").first
    picture.scroll_into_view_if_needed()
    page.wait_for_function("(one) => one.complete && one.naturalWidth > 0", arg=picture.element_handle())


def submit_in_the_browser(person):
    page = person.page
    page.goto(f"{person.base}/lab")
    page.get_by_role("menuitem", name="Nbgrader").click()
    page.get_by_role("menuitem", name="Assignment List").click()
    page.get_by_role("button", name="Submit", exact=True).click()
    page.wait_for_timeout(2000)
    assert "submitted" in {one["status"] for one in person.assignments()}


def look_into_the_formgrader(person, students: set):
    """The class, a submission with its report, and points by hand that are kept."""
    page = person.page
    page.goto(f"{person.base}/formgrader")
    page.get_by_role("link", name=LAB).first.wait_for()
    page.goto(f"{person.base}/formgrader/gradebook/{LAB}/concepts")
    page.get_by_role("link", name="Submission #1").first.click()
    page.wait_for_url("**/formgrader/submissions/**")
    page.get_by_role("region", name="Check of gemm_tiling.reuse").wait_for()
    with page.expect_response(
        lambda reply: "/api/grade/" in reply.url and reply.request.method == "PUT"
    ) as saved:
        page.locator("input.score.needs_manual_grade").first.fill("3")
        page.keyboard.press("Tab")
    assert saved.value.ok
    page.goto(f"{person.base}/formgrader/manage_submissions/{LAB}")
    page.get_by_text(sorted(students)[0]).first.wait_for()
    seen = page.inner_text("body")
    assert all(name in seen for name in students), seen
    if os.environ.get("TILE_SHOTS"):
        page.screenshot(path=Path(os.environ["TILE_SHOTS"]) / "formgrader.png")


def what_nobody_else_may_see(hub, person, other, teacher):
    """A student's server is the student's: nobody else's home, hand-ins, grades or tools."""
    for path in (hub.home(other), hub.home(teacher), hub.home(teacher) / "tile-by-tile/solutions"):
        done = machine.subprocess.run(
            ["runuser", "-u", person.name, "--", "ls", str(path)], capture_output=True
        )
        assert done.returncode != 0, f"{person.name} reads {path}"
    inbound = hub.place / "exchange/tile-by-tile/inbound"
    done = machine.subprocess.run(
        ["runuser", "-u", person.name, "--", "ls", str(inbound)], capture_output=True
    )
    assert done.returncode != 0
    assert person.ask("formgrader")[0] == 404, "a student's server has no formgrader"
    for name in (other, teacher):
        reply = person.page.goto(f"{hub.url}/user/{name}/formgrader")
        assert reply.status in (403, 404), (name, reply.status)
    assert not (hub.place / "edition/solutions").exists()


def test_who_is_in_no_group_does_not_get_in(hub, browser):
    stranger = hub.user("eve")
    machine.run("useradd", "-m", "-d", hub.home(stranger), stranger)
    hub.users[stranger] = "a password of eve's"
    machine.run("chpasswd", input=f"{stranger}:{hub.users[stranger]}\n")
    page = browser.new_page()
    page.goto(f"{hub.url}/hub/login")
    page.fill("input[name=username]", stranger)
    page.fill("input[name=password]", hub.users[stranger])
    page.press("input[name=password]", "Enter")
    page.wait_for_load_state()
    assert (
        "/hub/" in page.url and page.locator("input[name=password]").count() + page.get_by_text("403").count()
    )
