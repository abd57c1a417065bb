"""Every simulator in a real JupyterLab: one server, one notebook, one page; found by role and name.

Tests wait for the revision that an answer carries, never for time.
"""

import json
import statistics
import time

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import ElementHandle, Locator, Page, expect

from widgets.answer import answer
from widgets.browser import chromium as chromium_at
from widgets.registry import every, find
from widgets.tests.browser import lab

pytestmark = pytest.mark.browser
expect.set_options(timeout=15_000)  # an upper bound for a busy machine: nothing sleeps so long

EVERY = every()
ASKED = [d for d in EVERY if d.prediction]
each = pytest.mark.parametrize("simulator", EVERY, ids=lambda d: d.id)
each_asked = pytest.mark.parametrize("simulator", ASKED, ids=lambda d: d.id)
BUSY = 1 + len(EVERY) + len(ASKED)  # the cell that keeps the kernel busy


@pytest.fixture(scope="module")
def page(chromium, tmp_path_factory):
    folder = tmp_path_factory.mktemp("lab")
    cells = ["from widgets import show"]
    cells += [f"show({d.id!r})" for d in EVERY]
    cells += [f"show({d.id!r}, predict=True)" for d in ASKED]
    cells += ["import os, time\nwhile os.path.exists('busy'):\n    time.sleep(0.05)"]
    name = lab.notebook(folder, cells)
    with lab.server(folder) as base, chromium_at(chromium) as browser:
        context = browser.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
        page = context.new_page()
        lab.keep_sockets(page)
        page.folder, page.complaints = folder, []
        page.on("pageerror", lambda problem: page.complaints.append(str(problem)))
        page.requests = []
        page.on("request", lambda request: page.requests.append(request.url))
        lab.open_notebook(page, base, name)
        lab.run_each(page, len(EVERY) + len(ASKED))
        expect(page.locator(".tbt[data-revision]")).to_have_count(len(EVERY) + len(ASKED))
        page.base = base
        yield page


# By place: to search a page of this size for a role, at every step of every test, takes most of a test's time.
def shown(page: Page, simulator) -> Locator:
    return page.locator(".tbt[data-revision]").nth(EVERY.index(simulator))


def locked(page: Page, simulator) -> Locator:
    return page.locator(".tbt[data-revision]").nth(len(EVERY) + ASKED.index(simulator))


def revision(root: Locator) -> int:
    return int(root.get_attribute("data-revision"))


def figures(root: Locator) -> list[str]:
    return root.locator(".tbt-figures dd").all_inner_texts()


def drawn(root: Locator) -> list[str]:
    return root.locator("svg.tbt-scene > g").evaluate(
        "layer => [...layer.children].map(node => node.dataset.id)"
    )


def open_more(root: Locator) -> None:
    """The folded controls; open is open, whoever opened them."""
    more = root.locator(".tbt-more")
    if more.get_attribute("open") is None:
        more.get_by_text("More settings", exact=True).press("Enter")
    expect(more).to_have_attribute("open", "")


def scenes(simulator) -> list:
    return simulator.scenes(simulator.run(**simulator.inputs()))


def scene_shown(root: Locator, simulator, **inputs):
    """What should be seen at the step where the view stands: figures and marks may change from step to step."""
    result = simulator.run(**simulator.inputs(inputs))
    return simulator.scenes(result)[int(root.get_attribute("data-step"))]


def expected(root: Locator, simulator, **inputs) -> list[str]:
    return [figure.text for figure in scene_shown(root, simulator, **inputs).figures]


def pressed(control: Locator, key: str, root: Locator) -> None:
    """A key, and the answer to it."""
    before = revision(root)
    control.press(key)
    expect(root).to_have_attribute("data-revision", str(before + 1))


def first_preset(root: Locator) -> Locator:
    return root.get_by_role("group", name="Presets").get_by_role("button").first


def back_to_the_first_preset(root: Locator) -> None:
    pressed(first_preset(root), "Enter", root)


@each
def test_it_opens_with_its_story(page, simulator):
    root = shown(page, simulator)
    expect(root).to_have_role("group")
    expect(root).to_have_accessible_name(simulator.title)
    expect(root.get_by_role("heading", name=simulator.question)).to_be_visible()
    first = scene_shown(root, simulator)
    assert figures(root) == expected(root, simulator)
    assert drawn(root) == [mark["id"] for mark in first.marks]
    expect(root.locator("svg.tbt-scene")).to_have_accessible_name(first.summary)
    expect(root.get_by_text(first.takeaway, exact=True)).to_be_visible()
    labels = root.locator(".tbt-figures dt").all()
    assert max(label.bounding_box()["height"] for label in labels) < 25, (
        "a notebook's own style breaks the labels"
    )


@each
def test_every_control_answers_to_the_keyboard(page, simulator):
    root = shown(page, simulator)
    if any(control.more for control in simulator.controls):
        open_more(root)
    start = first_preset(root)
    for control in simulator.controls:
        if control.kind == "slider":
            widget = root.get_by_role("slider", name=control.label, exact=True)
            before = widget.get_attribute("aria-valuetext")
            pressed(widget, "ArrowLeft" if control.default == control.max else "ArrowRight", root)
            expect(widget).not_to_have_attribute("aria-valuetext", before)
        elif control.kind == "toggle":
            pressed(root.get_by_role("checkbox", name=control.label, exact=True), "Space", root)
        elif control.kind == "number":
            pressed(root.get_by_role("spinbutton", name=control.label), "ArrowUp", root)
        elif root.get_by_role("radiogroup", name=control.label, exact=True).count():
            group = root.get_by_role("radiogroup", name=control.label, exact=True)
            pressed(group.get_by_role("radio", checked=True), "ArrowDown", root)
        else:
            last = control.default == control.stops[-1]
            pressed(
                root.get_by_role("combobox", name=control.label, exact=True),
                "ArrowUp" if last else "ArrowDown",
                root,
            )
    pressed(start, "Enter", root)
    expect(start).to_have_attribute("aria-pressed", "true")
    assert figures(root) == expected(root, simulator)


@each
def test_presets_show_what_the_model_says(page, simulator):
    root = shown(page, simulator)
    for label, values in reversed(simulator.presets.items()):
        preset = root.get_by_role("group", name="Presets").get_by_role("button", name=label, exact=True)
        pressed(preset, "Enter", root)
        assert figures(root) == expected(root, simulator, **values)


@each
def test_the_data_opens_and_equals_the_model(page, simulator):
    root = shown(page, simulator)
    root.get_by_text("Show as data", exact=True).press("Enter")
    rows = root.get_by_role("group", name="Data of the picture").locator("tbody tr")
    got = answer(simulator)
    table = got["frames"][0]["table"]
    for frame in got["frames"][1 : got["first"] + 1]:
        table = frame.get("table", table)
    expect(rows).to_have_count(len(table["rows"]))
    assert [row.split("\t") for row in rows.all_inner_texts()] == table["rows"]
    root.get_by_text("Show as data", exact=True).press("Enter")


@each
def test_marks_can_be_read_one_by_one(page, simulator):
    root = shown(page, simulator)
    walk = root.get_by_role("slider", name="Read the picture, mark by mark")
    walk.focus()
    walk.press("Home")
    tips = [mark["tip"] for mark in scene_shown(root, simulator).marks if mark.get("tip")]
    expect(walk).to_have_attribute("max", str(len(tips) - 1))
    expect(root.locator(".tbt-tip")).to_be_visible()
    if len(tips) > 1 and not simulator.stepper:
        walk.press("ArrowRight")
        expect(walk).to_have_attribute("aria-valuetext", tips[1])
        expect(root.locator(".tbt-tip")).to_have_text(tips[1])
    walk.blur()
    expect(root.locator(".tbt-tip")).to_be_hidden()


@pytest.mark.parametrize("simulator", [d for d in EVERY if d.stepper], ids=lambda d: d.id)
def test_steps(page, simulator):
    root = shown(page, simulator)
    count = len(answer(simulator)["frames"])
    scrub = root.get_by_role("slider", name=f"Step through each {simulator.stepper.noun}")
    scrub.press("Home")
    expect(root).to_have_attribute("data-step", "0")
    expect(root.get_by_role("button", name="Back")).to_be_disabled()
    root.get_by_role("button", name="Step", exact=True).press("Enter")
    expect(root).to_have_attribute("data-step", "1")
    root.get_by_role("button", name="Back").press("Enter")
    expect(root).to_have_attribute("data-step", "0")
    scrub.press("End")
    expect(root).to_have_attribute("data-step", str(count - 1))
    assert drawn(root) == [mark["id"] for mark in scenes(simulator)[-1].marks]
    root.get_by_role("button", name="Play").press("Enter")
    expect(root).to_have_attribute("data-step", "1")
    root.get_by_role("button", name="Pause").press("Enter")
    root.get_by_role("button", name="Reset").press("Enter")
    expect(root).to_have_attribute("data-step", "0")


@each_asked
def test_a_prediction_opens_the_picture(page, simulator):
    root = locked(page, simulator)
    expect(root).to_have_attribute("data-locked", "true")
    expect(root.locator(".tbt-figures")).to_be_hidden()
    assert root.locator(".tbt-figures dd").count() == 0, "nothing of the result is in the page yet"
    for role in ("slider", "combobox", "checkbox", "radio"):
        for widget in root.get_by_role(role).all():
            expect(widget).to_be_disabled()
    guess = root.get_by_role("spinbutton", name=simulator.prediction.question)
    guess.fill("1")
    guess.press("Enter")
    expect(root).to_have_attribute("data-locked", "false")
    verdict = answer(simulator, {"values": {}, "guess": 1}, locked=True)["verdict"]
    expect(root.locator(".tbt-verdict")).to_contain_text(
        f"You said {verdict['guess']}; it is {verdict['truth']}"
    )
    expect(root.locator(".tbt-verdict")).to_be_focused()
    assert figures(root) == expected(root, simulator)


@pytest.mark.parametrize("look", ["light", "dark", "forced"])
def test_no_accessibility_rule_is_broken(page, look):
    lab.set_theme(page, look == "dark")
    page.emulate_media(forced_colors="active" if look == "forced" else "none")
    for summary in page.locator(".tbt[data-revision] summary").all():
        if summary.locator("xpath=..").get_attribute("open") is None:
            summary.press("Enter")
    found = Axe().run(page, context=".tbt[data-revision]").response["violations"]
    seen = [f"{v['id']}: {node['html'][:160]} {node['failureSummary']}" for v in found for node in v["nodes"]]
    assert not seen, "\n".join(seen)
    page.emulate_media(forced_colors="none")
    lab.set_theme(page, False)


def test_a_wrong_combination_is_a_sentence_and_the_picture_stays(page):
    simulator = find("tile_walk")
    root = shown(page, simulator)
    open_more(root)
    at = revision(root)
    root.get_by_role("combobox", name="GPU").select_option("A100")
    expect(root).to_have_attribute("data-revision", str(at + 1))
    before = figures(root)
    kind = root.get_by_role("radiogroup", name="Element type")
    pressed(kind.get_by_role("radio", name="fp16"), "ArrowDown", root)
    expect(root.locator(".tbt-error").first).to_contain_text("dtype must be one of")
    expect(root.get_by_role("status")).to_contain_text("dtype must be one of")
    assert figures(root) == before
    back_to_the_first_preset(root)
    expect(root.locator(".tbt-error").first).to_be_hidden()


def test_a_change_is_announced_once(page):
    simulator = find("tile_walk")
    root = shown(page, simulator)
    slider = root.get_by_role("slider", name="Rows of tiles in a group", exact=True)
    for _ in range(3):
        slider.press("ArrowLeft")
    summary = answer(simulator, {"values": {"group_m": 1}})["frames"][0]["summary"]
    expect(root.get_by_role("status")).to_have_text(summary)
    back_to_the_first_preset(root)


def test_steps_go_on_while_a_cell_runs_and_a_change_is_not_lost(page):
    """Lab asks a kernel that can for a thread of its own for widgets; any other answers after the cell."""
    stepper, walk = shown(page, find("fp8_accumulator")), shown(page, find("tile_walk"))
    busy = page.folder / "busy"
    busy.touch()
    try:
        lab.run_cell(page, BUSY)
        stepper.get_by_role("slider", name="Step through each term").press("End")
        expect(stepper).to_have_attribute("data-step", "63")
        before = revision(walk)
        walk.get_by_role("slider", name="Rows of tiles in a group", exact=True).press("ArrowRight")
    finally:
        busy.unlink()
    expect(walk).to_have_attribute("data-revision", str(before + 1))
    back_to_the_first_preset(walk)


def test_the_data_and_the_state_can_be_copied(page):
    simulator = find("tile_walk")
    root = shown(page, simulator)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    pressed(root.get_by_role("slider", name="Rows of tiles in a group", exact=True), "ArrowRight", root)
    root.get_by_text("Show as data", exact=True).focus()
    if root.locator(".tbt-data").get_attribute("open") is None:
        root.get_by_text("Show as data", exact=True).press("Enter")
    root.get_by_role("button", name="Copy data").press("Enter")
    expect(root.get_by_role("status")).to_have_text("Data copied.")
    raw = answer(simulator, {"values": {"group_m": 16}})["frames"][0]["table"]["raw"]
    assert page.evaluate("navigator.clipboard.readText()") == raw
    root.get_by_role("button", name="Copy as code").press("Enter")
    expect(root.get_by_role("status")).to_have_text("Code copied.")
    assert page.evaluate("navigator.clipboard.readText()") == 'show("gemm_tiling.tile_walk", group_m=16)'
    back_to_the_first_preset(root)


def as_it_opens(page: Page, simulator) -> Locator:
    """The simulator with its folds shut, on its first preset, whatever earlier tests left."""
    root = shown(page, simulator)
    folds = root.locator("details[open] > summary")
    while folds.count():
        folds.first.press("Enter")
    back_to_the_first_preset(root)
    return root


def in_plain_spaces(words: str) -> str:
    """A browser tells a screen reader of a narrow space as of any other."""
    return " ".join(words.split())


IN_SIGHT = """root => {
  root.scrollIntoView({ block: 'start' });
  const notebook = document.querySelector('.jp-WindowedPanel-outer').getBoundingClientRect(), top = root.getBoundingClientRect().top;
  const shown = [...root.querySelectorAll('.tbt-stage, .tbt-stepper, .tbt-control, .tbt-figures')].filter(node => node.checkVisibility());
  return [notebook.height, Math.max(...shown.map(node => node.getBoundingClientRect().bottom)) - top, shown.length];
}"""


@each
def test_controls_and_picture_are_seen_together(page, simulator):
    """In a window of 1280 × 800: figures, picture, steps and every control in view, without scrolling."""
    root = as_it_opens(page, simulator)
    room, needed, seen = root.evaluate(IN_SIGHT)
    assert seen >= 2 + sum(not control.more for control in simulator.controls)
    assert needed <= room, f"{needed:.0f} px of {room:.0f}"


@each
def test_a_screen_reader_is_told_the_story(page, simulator):
    """The accessibility tree alone: what it is, what it asks, the state, the sentence to keep, handles by name."""
    root = as_it_opens(page, simulator)
    scene, tree = scene_shown(root, simulator), in_plain_spaces(root.aria_snapshot())
    for words in (simulator.question, scene.takeaway, *(f.text for f in scene.figures)):
        assert in_plain_spaces(words) in tree, words
    expect(root.get_by_role("img", name=scene.summary, exact=True)).to_have_count(1)
    labels = {control.name: control.label for control in simulator.controls}
    for mark in scene.marks:
        for one in mark.get("drag", ()):
            grip = root.get_by_role(
                "slider", name=f"{labels[one['input']]}, in the picture", exact=True
            ).first
            assert grip.get_attribute("aria-valuetext")


def test_nothing_leaves_this_machine_and_nothing_throws(page):
    assert [url for url in page.requests if not url.startswith((page.base, "data:", "blob:"))] == []
    assert page.complaints == []


# From the key to the end of the first frame that shows its answer, with the places in between.
TIMED = """([root, slider]) => {
  const taken = {}, was = root.dataset.revision;
  slider.addEventListener('keydown', event => { taken.key = event.timeStamp; }, { capture: true, once: true });
  slider.addEventListener('input', () => { taken.asked = performance.now(); }, { capture: true, once: true });
  window.taken = new Promise((done, fail) => {
    setTimeout(() => fail(new Error('no answer to the key within 20 s')), 20000);
    const watch = new MutationObserver(() => {
      if (root.dataset.revision === was) return;
      watch.disconnect();
      taken.drawn = performance.now();
      requestAnimationFrame(() => {
        taken.frame = performance.now();
        const { port1, port2 } = new MessageChannel();
        port1.onmessage = () => done({ ...taken, painted: performance.now() });
        port2.postMessage(null);
      });
    });
    watch.observe(root, { attributes: true, attributeFilter: ['data-revision'] });
  });
}"""
PARTS = {
    "round trip": ("asked", "drawn"),
    "wait for a frame": ("drawn", "frame"),
    "paint": ("frame", "painted"),
}


def turn(page, root: ElementHandle, slider: ElementHandle) -> dict:
    """One key on the slider, which has the focus, and when what happened; at its end the slider turns back.

    By handle and keyboard, for to find an element by its role costs the page longer than the answer does.
    """
    at_end = slider.evaluate("slider => slider.value === slider.max")
    page.evaluate(TIMED, [root, slider])
    page.keyboard.press("ArrowLeft" if at_end else "ArrowRight")
    return page.evaluate("window.taken")


def first_slider(root: Locator, simulator) -> Locator:
    """The control's own, not the grip in the picture."""
    return root.get_by_role("slider", name=simulator.controls[0].label, exact=True)


def model_ms(simulator) -> float:
    """What the model, the scene and their JSON take of a processor, without a browser."""
    start = time.thread_time()
    for _ in range(10):
        json.dumps(answer(simulator))
    return 100 * (time.thread_time() - start)


@pytest.mark.parametrize("name", ["tile_walk", "fp8_accumulator"])
def test_slider_to_settled_pixels_is_printed(page, name, record_property):
    """Numbers to look at, not a bar: machines differ."""
    simulator = find(name)
    root = shown(page, simulator)
    slider = first_slider(root, simulator)
    page.emulate_media(reduced_motion="no-preference")
    slider.focus()
    handles = root.element_handle(), slider.element_handle()
    taken = [turn(page, *handles) for _ in range(30)]
    page.emulate_media(reduced_motion="reduce")
    whole = [one["painted"] - one["key"] for one in taken]
    median, p90 = statistics.median(whole), statistics.quantiles(whole, n=10)[-1]
    parts = [f"{part} {statistics.median(t[b] - t[a] for t in taken):.1f}" for part, (a, b) in PARTS.items()]
    model = f"(model and scene {model_ms(simulator):.1f} of processor time)"
    record_property(
        "said",
        f"{name}: key to settled pixels, median of 30: {median:.0f} ms, p90 {p90:.0f} ms; "
        f"medians of parts: {parts[0]} {model}, {', '.join(parts[1:])}",
    )
    values = {simulator.controls[0].name: value_of(simulator.controls[0], slider)}
    assert figures(root) == expected(root, simulator, **values), "what was timed is the model's own result"


def value_of(control, slider: Locator):
    at = float(slider.input_value())
    return control.stops[int(at)] if control.stops else type(control.default)(at)


@pytest.mark.parametrize("name", ["tile_walk", "fp8_accumulator"])
def test_a_key_is_one_message_each_way(page, name):
    simulator = find(name)
    root = shown(page, simulator)
    slider = first_slider(root, simulator)
    sent, came = lab.widget_messages(page)
    slider.focus()
    handles = root.element_handle(), slider.element_handle()
    for key in range(1, 6):
        turn(page, *handles)
        lab.wait_until_quiet(page)
        assert (len(sent), len(came)) == (key, key), (sent, came)
    assert set(sent) == {"request"} and set(came) == {"answer"}


def test_the_first_picture_is_printed(page, record_property):
    """From "run all" in a fresh kernel to the first picture, the import of everything included."""
    fresh = page.context.new_page()
    name = lab.notebook(page.folder, ["from widgets import show\nshow('tile_walk')"])
    lab.open_notebook(fresh, page.base, name)
    lab.run_all(fresh)
    fresh.wait_for_function("() => window.firstPictureMs", timeout=30_000)
    record_property("said", f"run all to first picture: {fresh.evaluate('window.firstPictureMs'):.0f} ms")
    expect(fresh.locator("svg.tbt-scene").first).to_be_visible()
    lab.save_and_stop(fresh)
    fresh.close()


def test_a_saved_notebook_still_shows_its_pictures_when_python_is_gone(page):
    saved = page.locator(".tbt-saved")
    expect(saved).to_have_count(len(EVERY) + len(ASKED))
    assert not any(one.is_visible() for one in saved.all()), "the live views stand in their place"
    lab.save_and_stop(page)
    again = page.context.new_page()
    again.goto(page.url)
    for simulator in EVERY:
        picture = again.get_by_role("group", name=simulator.title, exact=True).first
        expect(picture.locator("svg.tbt-wide")).to_be_visible(timeout=30_000)
    again.wait_for_function("() => !document.body.innerText.includes('model not found')")
    again.close()
