"""The site in Chromium with no network but its own server: simulators live, lessons read.

One simulator has its page opened, and all of them in `make proofs`; every model answers in Python there.
"""

import json
import re

import pytest
from playwright.sync_api import expect

from widgets.answer import answer
from widgets.registry import every
from widgets.site import build, shared
from widgets.site.tests.alike import same
from widgets.site.topics import topics

pytestmark = pytest.mark.browser
START_MS = 60_000  # Python in a page takes seconds
EVERY = every()


def slider(simulator):
    """A slider in view that opens on one of its stops, if there is one."""
    return next(
        (
            c
            for c in simulator.controls
            if c.kind == "slider" and not c.more and (not c.stops or c.default in c.stops)
        ),
        None,
    )


MOVED = [d for d in EVERY if slider(d)]
STEPS = next(d for d in MOVED if d.name == "online_softmax")
OPENED = MOVED[:1]  # Python comes up anew in each, which takes seconds
LESSONS = [page.name for topic in topics(build.ROOT) if topic.lesson for page in topic.lesson.pages]


def live(page) -> None:
    expect(page.locator("html")).to_have_attribute("data-python", "live", timeout=START_MS)


def figures(root) -> list[str]:
    return root.locator(".tbt-figures dd").all_inner_texts()


def step(root) -> int:
    return int(root.get_attribute("data-step"))


def pressed(control, key: str, root) -> None:
    """A key, and the answer to it."""
    before = int(root.get_attribute("data-revision"))
    control.press(key)
    expect(root).to_have_attribute("data-revision", str(before + 1))


def told(simulator, values: dict, step: int, what: str):
    """What the model's answer shows at a step; frames come as differences."""
    frames = answer(simulator, {"values": simulator.inputs(values)})["frames"][: step + 1]
    return [frame[what] for frame in frames if what in frame][-1]


def expected(simulator, values: dict, step: int) -> list[str]:
    return [text for _, text, *_ in told(simulator, values, step, "figures")]


def stepped(control) -> tuple[str, float]:
    """An arrow key, and the value it leads to."""
    down = control.default == control.max or (control.stops and control.default == control.stops[-1])
    sign = -1 if down else 1
    if control.stops:
        return ("ArrowLeft" if down else "ArrowRight"), control.stops[
            control.stops.index(control.default) + sign
        ]
    return ("ArrowLeft" if down else "ArrowRight"), control.default + sign * control.step


def test_the_home_page_s_simulator_steps_without_python_and_a_hand_brings_it(opened):
    page = opened("index.html")
    root, fetched = page.locator(".tbt[data-revision]"), []
    page.on("request", lambda request: fetched.append(request.url))
    before = step(root)
    root.get_by_role("button", name="Reset").evaluate("button => button.click()")
    expect(root).to_have_attribute("data-step", "0")
    assert before > 0 and not [url for url in fetched if "pyodide" in url]
    control, key = slider(STEPS), stepped(slider(STEPS))
    root.get_by_role("slider", name=control.label, exact=True).press(key[0])
    live(page)
    expect(root).to_have_attribute("data-revision", "1")
    assert figures(root) == expected(STEPS, {control.name: key[1]}, step(root))


def test_on_a_phone_the_home_page_fetches_python_only_when_asked(opened):
    page = opened("index.html", viewport={"width": 390, "height": 800})
    button = page.get_by_role("button", name="Play with it")
    expect(button).to_be_visible()
    assert page.locator("html").get_attribute("data-python") == "touch"
    button.click()
    live(page)
    expect(page.locator(".tbt[data-revision]").get_by_role("button", name="Play")).to_be_visible()


@pytest.mark.parametrize(
    "simulator",
    [d if d in OPENED else pytest.param(d, marks=pytest.mark.slow) for d in EVERY],
    ids=lambda d: d.id,
)
def test_a_simulator_lives_and_answers_as_the_model_does(opened, simulator):
    page = opened(f"simulators/{simulator.name}.html")
    root = page.locator(".tbt[data-revision]")
    live(page)
    expect(page.get_by_text("Live: the course’s own Python model")).to_be_visible()
    expect(page.locator(".still")).to_be_hidden()
    if control := slider(simulator):
        key, value = stepped(control)
        pressed(root.get_by_role("slider", name=control.label, exact=True), key, root)
        assert figures(root) == expected(simulator, {control.name: value}, step(root))
    label, inputs = list(simulator.presets.items())[1]
    pressed(root.get_by_role("button", name=label, exact=True), "Enter", root)
    assert figures(root) == expected(simulator, inputs, step(root))
    root.get_by_text("Show as data", exact=True).press("Enter")
    expect(root.locator("thead th")).to_have_text(told(simulator, inputs, step(root), "table")["header"])


ASK_ALL = """async asked => {
  const { loadPyodide } = await import('/pyodide/pyodide.mjs');
  const core = await loadPyodide({ indexURL: '/pyodide/' });
  core.unpackArchive(await (await fetch('/assets/models.zip')).arrayBuffer(), 'zip', { extractDir: '/models' });
  core.runPython("import sys; sys.path.insert(0, '/models')");
  const { reply } = core.pyimport('widgets.site.inside');
  return asked.map(([name, values]) => reply(name, JSON.stringify({ values }), '{}'));
}"""


def test_every_model_answers_the_same_inside_a_page(opened):
    page = opened("labs.html")
    asked = [(d.id, d.inputs(some)) for d in EVERY for some in d.presets.values()]
    got = page.evaluate(ASK_ALL, asked)
    for (name, values), text in zip(asked, got, strict=True):
        simulator = next(d for d in EVERY if d.id == name)
        same(
            json.loads(text),
            json.loads(json.dumps(answer(simulator, {"values": values}))),
            f"{name} {values}",
        )


ENDS = """root => [...root.querySelectorAll('.tbt-question, .tbt-figures, .tbt-stage, .tbt-stepper, .tbt-control, .tbt-takeaway')]
  .filter(node => node.checkVisibility()).map(node => node.getBoundingClientRect().bottom)"""


def test_every_simulator_s_question_and_answer_fit_on_one_screen(opened):
    """As the page opens, with nothing scrolled; and its title stands there once."""
    page, far = opened("labs.html", python=False, viewport={"width": 1280, "height": 800}), {}
    for simulator in EVERY:
        page.goto(
            page.url.rpartition("/")[0].removesuffix("/simulators") + f"/simulators/{simulator.name}.html"
        )
        root = page.locator(".tbt[data-revision]")
        for _ in range(30):  # a busy machine may draw the narrow picture first
            far[simulator.name] = max(root.evaluate(ENDS))
            if far[simulator.name] <= 800:
                break
            page.wait_for_timeout(100)
        assert page.get_by_text(simulator.title, exact=True).locator("visible=true").count() == 1
    assert {name: end for name, end in far.items() if end > 800} == {}


def test_a_shared_link_has_a_picture_of_the_simulator(browser):
    """As wide and as high as the readers of shared links want, with marks and words on it."""
    from io import BytesIO

    from PIL import Image

    assert shared.COURSE in {one.name for one in EVERY}
    for png in shared.drawn(browser, [STEPS, EVERY[0]]).values():
        picture = Image.open(BytesIO(png)).convert("RGB")
        assert picture.size == (1200, 630) and len(picture.getcolors(1 << 20)) > 50
        assert picture.getpixel((5, 5)) == (255, 255, 255)


def test_a_state_is_in_the_address_and_its_link_opens_it(opened):
    """Written as the state changes, copied by a button, and read again: values and step."""
    name = f"simulators/{STEPS.name}.html"
    page = opened(name, permissions=["clipboard-read", "clipboard-write"])
    live(page)
    root = page.locator(".tbt[data-revision]")
    pressed(root.get_by_role("slider", name=slider(STEPS).label, exact=True), "ArrowRight", root)
    root.get_by_role("slider", name=f"Step through each {STEPS.stepper.noun}").press("Home")
    control, (_, value) = slider(STEPS), stepped(slider(STEPS))
    expect(page).to_have_url(re.compile(rf"#set/{STEPS.name}\?{control.name}={value:g}&step=0$"))
    root.get_by_role("button", name="Copy link to this state").press("Enter")
    link = page.evaluate("navigator.clipboard.readText()")
    assert link == page.url
    shown = figures(root)
    page.goto("about:blank")
    page.goto(link)
    live(page)
    expect(root.locator(".tbt-figures dd")).to_have_text(shown)
    expect(root).to_have_attribute("data-step", "0")
    expect(root.get_by_role("slider", name=control.label, exact=True)).to_have_attribute(
        "aria-valuetext", re.compile(str(value))
    )
    first = root.get_by_role("group", name="Presets").get_by_role("button").first
    first.press("Enter")
    expect(page).to_have_url(re.compile(rf"{name}$"))


def test_an_address_that_cannot_be_says_so(opened):
    page = opened(f"simulators/{STEPS.name}.html#set/{STEPS.name}?{slider(STEPS).name}=-5")
    live(page)
    expect(page.locator(".tbt-error").first).to_contain_text(f"{slider(STEPS).label} must be")


def test_a_lesson_is_read_and_its_prediction_opens_the_picture(opened):
    page = opened(f"lessons/{LESSONS[0]}.html", permissions=["clipboard-read", "clipboard-write"])
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    assert page.locator("math").count() == 0 or page.locator("math").first.bounding_box()["height"] > 8
    details = page.locator(".prose > details:not(.setup)").first
    if details.count():
        details.locator("summary").press("Enter")
        expect(details.locator("p").last).to_be_visible()
    for image in page.locator(".prose img").all():
        image.scroll_into_view_if_needed()
        expect(image).not_to_have_js_property("naturalWidth", 0)
    shut = page.locator('.tbt[data-locked="true"]').first
    if shut.count():
        shut.scroll_into_view_if_needed()
        live(page)
        field = shut.get_by_role("spinbutton").first
        field.fill("1")
        field.press("Enter")
        verdict = page.locator(".tbt-verdict:visible").first
        expect(verdict).to_contain_text("You said 1")
        root = verdict.locator("xpath=..")
        root.get_by_role("button", name="Copy link to this state").press("Enter")
        page.wait_for_function("async () => (await navigator.clipboard.readText()).startsWith('http')")
        own = f"/simulators/{root.get_attribute('data-simulator').split('.')[1]}.html"
        assert page.evaluate("navigator.clipboard.readText()").partition("#")[0].endswith(own)
        assert "#set" not in page.url, "a lesson's address is its own"


def test_without_scripts_it_stays_a_readable_page(opened):
    one = OPENED[0]
    page = opened(f"simulators/{one.name}.html", scripts=False)
    expect(page.locator("svg.tbt-scene")).to_be_visible()
    expect(page.get_by_text("A still picture. With JavaScript")).to_be_visible()
    page.get_by_text("Show as data", exact=True).click()
    expect(page.locator(".still table")).to_be_visible()


def test_where_python_cannot_start_the_still_picture_comes_back(opened):
    one = OPENED[0]
    page = opened("labs.html")
    page.route("**/*.wasm", lambda route: route.abort())
    page.goto(page.url.replace("labs.html", f"simulators/{one.name}.html"))
    expect(page.locator("html")).to_have_attribute("data-python", "failed", timeout=START_MS)
    expect(page.locator(".still svg.tbt-scene")).to_be_visible()
    expect(page.get_by_text("Python could not start inside this browser")).to_be_visible()
    assert page.locator(".tbt[data-revision]").count() == 0
    page.complaints.clear()
