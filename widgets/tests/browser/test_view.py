"""The view alone, in a bare page: one invented simulator that uses every control and every kind of mark."""

from dataclasses import dataclass

import pytest
from playwright.sync_api import expect

from widgets.browser import chromium as chromium_at
from widgets.browser import open_page
from widgets.controls import number, select, slider, toggle
from widgets.declare import Declaration, Prediction
from widgets.scene import (
    MARK_ROLES,
    Scene,
    beside_model,
    circle,
    figure,
    grid,
    line,
    path,
    rect,
    table,
    text,
)

pytestmark = pytest.mark.browser
expect.set_options(timeout=15_000)  # an upper bound for a busy machine: nothing sleeps so long
SIDE = 50  # 2,500 cells


@dataclass(frozen=True)
class Result:
    size: float
    count: int
    flipped: bool
    shape: str
    total: float


def run(size, count, flipped, shape, place) -> Result:
    if size == 10 and flipped:
        raise ValueError("Size must be below 10 when flipped, got 10; move it back")
    return Result(size, count, flipped, shape, size * count)


def scene(r: Result, measured: dict | None = None) -> Scene:
    bars = [
        rect(f"role-{role}", 20 + 40 * i, 20, 30, 10 * r.size, role, role)
        for i, role in enumerate(sorted(MARK_ROLES))
    ]
    shapes = [path("path", [(20, 150), (60, 130), (100, 150)], "primary", "a path", closed=r.shape == "closed"),
              circle("dot", 150, 140, 8, "now", "a dot"), line("rule", 180, 140, 240, 140, "limit", "a line"),
              text("label", 260, 144, f"{r.count} things")]  # fmt: skip
    cells = [int(i < r.count) for i in range(SIDE * SIDE)]
    cloth = grid("cloth", 20, 170, 200, 120, SIDE, cells, ("idle", "hot"), ("free", "taken"))
    marks = [cloth, *shapes, *bars] if r.flipped else [*bars, *shapes, cloth]
    beside = ()
    if measured:
        marks.append(circle("measured", 300, 200, 5, "measured", "yours"))
        beside = (beside_model("total", measured["total"], r.total),)
    return Scene(
        summary=f"{r.count} things of size {r.size:g}, {r.total:g} in all.",
        takeaway="More is more.",
        marks=marks,
        figures=(figure("things", r.count), figure("in all", r.total)),
        table=table(("things", "in all"), [("all", r.total)]),
        legend=(("waste", "thrown away"), ("dropped", "lost"), ("idle", "free")),
        warning="That is large." if r.size > 8 else "",
        beside=beside,
        formula=(("total = size·count", f"{r.size:g}·{r.count} = {r.total:g}"),),
    )


SINK = Declaration(
    title="Everything",
    question="Does it all show?",
    controls=(
        slider("size", "Size", 4.0, 1.0, 10.0, step=0.5, unit="cm"),
        number("count", "Count", 12, 1, 2500),
        toggle("flipped", "Flipped"),
        select("shape", "Shape", "open", ["open", "closed"]),
        select(
            "place",
            "Place",
            "here",
            ["here", "somewhere else", "a long way off", "nowhere at all"],
            more=True,
        ),
    ),
    presets={"Start": {}, "Many": {"count": 2000}, "Closed": {"shape": "closed", "flipped": True}},
    run=run,
    scene=scene,
    prediction=Prediction("How many in all?", "total"),
    measures={"total": "what you counted"},
    slug="none",
    name="everything",
)


@pytest.fixture(scope="module")
def browser(chromium):
    with chromium_at(chromium) as browser:
        yield browser


@pytest.fixture
def page(browser):
    page = open_page(browser, [(SINK, {})])
    yield page
    page.context.close()


def settled(page, revision: int) -> None:
    expect(page.locator(".tbt")).to_have_attribute("data-revision", str(revision))


def test_every_kind_of_mark_is_drawn(page):
    for kind, many in (
        ("rect", len(MARK_ROLES)),
        ("path", 1),
        ("circle", 1),
        ("line", 1),
        ("g", 1),
        ("text", 1),
    ):
        assert page.locator(f"svg.tbt-scene > g > {kind}").count() == many, kind
    for role in MARK_ROLES - {"waste", "dropped", "idle"}:
        fill = page.locator(f"[data-id=role-{role}]").evaluate("node => getComputedStyle(node).fill")
        assert fill.startswith("rgb(") and fill != "rgb(0, 0, 0)", (role, fill)
    for role in ("waste", "dropped"):
        fill = page.locator(f"[data-id=role-{role}]").evaluate("node => getComputedStyle(node).fill")
        hatch = fill.split('"')[1].lstrip("#")
        assert page.locator(f"pattern[id='{hatch}']").count() == 1
    expect(page.get_by_text("thrown away")).to_be_visible()


def test_marks_move_and_are_not_made_anew(page):
    page.evaluate("document.querySelectorAll('svg.tbt-scene > g > *').forEach(node => { node.kept = true; })")
    page.get_by_role("slider", name="Size").press("ArrowRight")
    settled(page, 1)
    assert page.evaluate("[...document.querySelectorAll('svg.tbt-scene > g > *')].every(node => node.kept)")
    assert page.locator("[data-id=role-hot]").get_attribute("height") == "45"


def test_marks_lie_in_the_order_of_the_scene(page):
    page.get_by_role("button", name="Closed").press("Enter")
    settled(page, 1)
    wanted = [mark["id"] for mark in scene(run(4.0, 12, True, "closed", "here")).marks]
    assert (
        page.evaluate("[...document.querySelectorAll('svg.tbt-scene > g > *')].map(n => n.dataset.id)")
        == wanted
    )
    page.get_by_role("button", name="Start").press("Enter")
    settled(page, 2)
    wanted = [mark["id"] for mark in scene(run(4.0, 12, False, "open", "here")).marks]
    assert (
        page.evaluate("[...document.querySelectorAll('svg.tbt-scene > g > *')].map(n => n.dataset.id)")
        == wanted
    )


@pytest.mark.parametrize("typed", ["", "-3", "2.5", "1e9", "99999999999999999999999"])
def test_a_wrong_number_is_a_sentence_beside_its_control(page, typed):
    field = page.get_by_role("spinbutton", name="Count")
    field.fill(typed)
    expect(page.locator(".tbt-error").first).to_contain_text(
        "Count must be a whole number from 1 to 2,500, got"
    )
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(page.locator("[data-id=label]")).to_have_text("12 things")
    expect(page.locator(".tbt-stage")).to_have_attribute("data-stale", "true")
    field.fill("40")
    expect(page.locator(".tbt-error").first).to_be_hidden()
    expect(field).not_to_have_attribute("aria-invalid", "true")
    expect(page.locator("[data-id=label]")).to_have_text("40 things")


def test_what_the_model_refuses_is_said(page):
    page.get_by_role("slider", name="Size").press("End")
    page.get_by_role("checkbox", name="Flipped").press("Space")
    expect(page.locator(".tbt-error").first).to_contain_text("Size must be below 10 when flipped")
    expect(page.get_by_text("That is large.")).to_be_visible()
    expect(page.get_by_role("status")).to_contain_text("Size must be below 10")


GATE = """() => {
  const real = window.answer;
  window.asked = [];
  window.answer = async (name, request) => {
    window.asked.push(JSON.parse(request).values.size);
    await new Promise(open => { window.open_gate = open; });
    return real(name, request);
  };
}"""


def test_the_latest_change_wins_and_the_rest_are_never_sent(page):
    page.evaluate(GATE)
    size = page.get_by_role("slider", name="Size")
    for _ in range(6):
        size.press("ArrowRight")
    assert page.evaluate("window.asked") == [4.5]
    page.evaluate("window.open_gate()")
    page.wait_for_function("window.asked.length === 2")
    page.evaluate("window.open_gate()")
    settled(page, 2)
    assert page.evaluate("window.asked") == [4.5, 7]
    expect(size).to_have_value("7")
    expect(page.locator(".tbt-figures dd").last).to_have_text("84")


def test_a_late_answer_is_said_to_be_late(page):
    page.evaluate(GATE)
    page.get_by_role("slider", name="Size").press("ArrowRight")
    expect(page.get_by_text("Waiting for Python")).to_be_visible()
    page.evaluate("window.open_gate()")
    expect(page.get_by_text("Waiting for Python")).to_be_hidden()


def test_hover_says_index_and_value(page):
    cloth = page.locator("[data-id=cloth]")
    box = cloth.bounding_box()
    cloth.hover(position={"x": box["width"] * 2.5 / SIDE, "y": box["height"] * 0.5 / SIDE})
    expect(page.locator(".tbt-tip")).to_have_text("row 0, column 2, taken")
    cloth.hover(position={"x": box["width"] * 0.5 / SIDE, "y": box["height"] * 1.5 / SIDE})
    expect(page.locator(".tbt-tip")).to_have_text("row 1, column 0, free")
    page.locator("[data-id=dot]").hover()
    expect(page.locator(".tbt-tip")).to_have_text("a dot")
    page.mouse.move(5, 5)
    expect(page.locator(".tbt-tip")).to_be_hidden()


def test_a_map_shows_its_cells_in_the_theme(page):
    taken = page.locator("[data-id=cloth] > .cells.hot")
    wide, tall = 200 / SIDE, 120 / SIDE
    box = taken.evaluate(
        "node => { const { x, y, width, height } = node.getBBox(); return [x, y, width, height]; }"
    )
    assert box == pytest.approx([20, 170, 12 * wide, tall], abs=0.02)
    light = taken.evaluate("node => getComputedStyle(node).fill")
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    assert taken.evaluate("node => getComputedStyle(node).fill") != light


def test_a_leap_glides_and_a_slider_does_not(page):
    page.emulate_media(reduced_motion="no-preference")
    glide = "node => getComputedStyle(node).transitionDuration.split(', ')[0]"
    bar = page.locator("[data-id=role-hot]")
    page.get_by_role("button", name="Many").press("Enter")
    settled(page, 1)
    assert bar.evaluate(glide) == "0.12s"
    page.get_by_role("slider", name="Size").press("ArrowRight")
    settled(page, 2)
    assert bar.evaluate(glide) == "0s"


def test_a_measurement_and_its_difference_are_shown(browser):
    page = open_page(browser, [(SINK, {"measured": {"total": 96.0}})])
    expect(page.locator("[data-id=measured]")).to_be_visible()
    expect(page.get_by_text("total: measured 96, model 48 (2× the model).")).to_be_visible()
    page.context.close()


def test_a_prediction_is_asked_with_enter_or_with_the_button(browser):
    for commit in (lambda page: page.get_by_role("spinbutton", name="How many in all?").press("Enter"),
                   lambda page: page.get_by_role("button", name="Commit").click()):  # fmt: skip
        page = open_page(browser, [(SINK, {"locked": True})])
        guess = page.get_by_role("spinbutton", name="How many in all?")
        expect(page.get_by_role("slider", name="Size")).to_be_disabled()
        commit(page)
        expect(page.locator(".tbt")).to_have_attribute("data-locked", "true")
        guess.fill("47")
        commit(page)
        expect(page.get_by_text("You said 47; it is 48. Your prediction is within 10%.")).to_be_visible()
        expect(page.get_by_role("slider", name="Size")).to_be_enabled()
        page.context.close()


@pytest.mark.parametrize("width", [360, 520, 880])
def test_nothing_sticks_out_of_a_narrow_column(browser, width):
    page = open_page(browser, [(SINK, {})])
    page.evaluate("width => { document.body.style.cssText = `margin:0;width:${width}px` }", width)
    assert (
        page.evaluate(
            "() => { const one = document.querySelector('.tbt'); return one.scrollWidth - one.clientWidth; }"
        )
        <= 0
    )
    page.context.close()


def test_forced_colours_keep_marks_apart_from_the_ground(browser):
    page = open_page(browser, [(SINK, {})], forced_colors="active")
    ground = page.locator(".tbt").evaluate("node => getComputedStyle(node).backgroundColor")
    for role in MARK_ROLES:
        stroke, fill = page.locator(f"[data-id=role-{role}]").evaluate(
            "node => [getComputedStyle(node).stroke, getComputedStyle(node).fill]"
        )
        assert stroke != ground and fill != ground, role
    page.context.close()


def test_words_of_a_value_carry_the_unit(page):
    size = page.get_by_role("slider", name="Size")
    size.press("ArrowRight")
    expect(size).to_have_attribute("aria-valuetext", "4.5\u202fcm")
