"""Simulators in a real JupyterLab, some on a page: found by role and name, driven by the keyboard.

Here those that show every kind of control and picture; `make proofs` takes the others too.
"""

import pytest
from playwright.sync_api import Locator, Page, expect

from widgets.answer import answer
from widgets.registry import every
from widgets.tests.accessible import broken_rules
from widgets.tests.browser import in_lab, lab, seen
from widgets.tests.browser.in_lab import (
    back_to_the_first_preset,
    drawn,
    expected,
    figures,
    first_preset,
    locked,
    open_more,
    pressed,
    scene_shown,
    scenes,
    shown,
)
from widgets.tests.browser.sample import in_proofs, sampled

pytestmark = pytest.mark.browser
EVERY = every()
SAMPLE = sampled(EVERY)
REST = [d for d in EVERY if d not in SAMPLE]
A_SHEET = (
    8  # simulators: on a page of all, whatever a test does is laid out and searched several times as long
)
SHEETS = [SAMPLE, *(REST[at : at + A_SHEET] for at in range(0, len(REST), A_SHEET))]


def each_of(simulators: list):
    return pytest.mark.parametrize("simulator", in_proofs(simulators, SAMPLE), ids=lambda d: d.id)


each = each_of(EVERY)
each_asked = each_of([d for d in EVERY if d.prediction])
each_sheet = pytest.mark.parametrize(
    "sheet", in_proofs(SHEETS, [SAMPLE]), ids=lambda sheet: f"from {sheet[0].id}"
)


@pytest.fixture(scope="module")
def pages(browser, served, lab_page):
    """pages(sheet): the page that shows these simulators, opened when it is first asked for."""
    opened = {}

    def page_of(sheet: list) -> Page:
        at = SHEETS.index(sheet)
        if at not in opened:
            page = in_lab.new_page(browser, served) if opened else lab_page
            opened[at] = in_lab.opened(page, sheet, [d for d in sheet if d.prediction])
        return opened[at]

    yield page_of
    for one in opened.values():
        if one is not lab_page:
            one.context.close()


@pytest.fixture
def page(request, pages):
    asked = request.node.callspec.params
    sheet = asked["sheet"] if "sheet" in asked else next(s for s in SHEETS if asked["simulator"] in s)
    return pages(sheet)


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


# in the page, since a busy machine may look again once all steps are over
PAUSE_AT_1 = """root => new MutationObserver((_, self) => {
  const pause = [...root.querySelectorAll("button")].find(one => /^Pause/.test(one.ariaLabel ?? one.textContent.trim()));
  if (root.dataset.step === "1" && pause) { self.disconnect(); pause.click(); }
}).observe(root, {attributes: true, subtree: true, childList: true})"""


@each_of([d for d in EVERY if d.stepper])
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
    root.evaluate(PAUSE_AT_1)
    root.get_by_role("button", name="Play").press("Enter")
    expect(root).to_have_attribute("data-step", "1")
    expect(root).to_have_attribute("data-playing", "false")
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


@each_sheet
@pytest.mark.parametrize("look", ["light", "dark", "forced"])
def test_no_accessibility_rule_is_broken(page, sheet, look):
    lab.set_theme(page, look == "dark")
    page.emulate_media(forced_colors="active" if look == "forced" else "none")
    for summary in page.locator(".tbt[data-revision] summary").all():
        if summary.locator("xpath=..").get_attribute("open") is None:
            summary.press("Enter")
    assert broken_rules(page, ".tbt[data-revision]", colour_alone=look != "light") == []
    page.emulate_media(forced_colors="none")
    lab.set_theme(page, False)


def as_it_opens(page: Page, simulator) -> Locator:
    """The simulator with its folds shut, on its first preset, whatever earlier tests left."""
    root = shown(page, simulator)
    folds = root.locator("details[open] > summary")
    while folds.count():
        folds.first.press("Enter")
    back_to_the_first_preset(root)
    return root


ROOM = "document.querySelector('.jp-WindowedPanel-outer').getBoundingClientRect().height"


@each
def test_question_and_answer_are_seen_together(page, simulator):
    """In a window of 1280 × 800."""
    assert page.evaluate(ROOM) >= seen.ROOM
    seen.question_and_answer_are_seen_together(as_it_opens(page, simulator), simulator)


@each
def test_a_screen_reader_is_told_the_story(page, simulator):
    seen.a_screen_reader_is_told_the_story(as_it_opens(page, simulator), simulator)


@each_sheet
def test_nothing_leaves_this_machine_and_nothing_throws(page, sheet):
    in_lab.quiet(page)


@each_sheet
def test_a_saved_notebook_still_shows_its_pictures_when_python_is_gone(page, sheet):
    saved = page.locator(".tbt-saved")
    expect(saved).to_have_count(len(page.simulators) + len(page.asked))
    assert not any(one.is_visible() for one in saved.all()), "the live views stand in their place"
    lab.save_and_stop(page)
    page.goto(f"{page.base}/doc/tree/{page.notebook}?reset")
    page.wait_for_function(lab.OPENED, timeout=60_000)
    page.evaluate(f"async () => {{ await {lab.PANEL}.context.ready; }}")
    for simulator in sheet:
        picture = page.get_by_role("group", name=simulator.title, exact=True).first
        expect(picture.locator("svg.tbt-wide")).to_be_visible(timeout=30_000)
    page.wait_for_function("() => !document.body.innerText.includes('model not found')")
