"""The view alone, in a bare page: one invented simulator that uses every control and every kind of mark."""

import itertools

import pytest
from playwright.sync_api import expect

from widgets.answer import answer
from widgets.registry import find
from widgets.scene import MARK_ROLES
from widgets.static import TEXTURES
from widgets.tests.browser.sink import SIDE, SINK, run, scene

pytestmark = pytest.mark.browser
expect.set_options(timeout=60_000)  # an upper bound for a busy machine: nothing sleeps so long


@pytest.fixture
def page(sink):
    return sink


def settled(page, revision: int) -> None:
    expect(page.locator(".tbt")).to_have_attribute("data-revision", str(revision))


def test_every_kind_of_mark_is_drawn(page):
    for kind, many in (
        ("rect", len(MARK_ROLES)),
        ("path", 1),
        ("circle", 1),
        ("line", 1),
        ("g", 2),
        ("text", 1),
    ):
        assert page.locator(f"svg.tbt-scene > g > {kind}").count() == many, kind
    for role in MARK_ROLES - {*TEXTURES, "idle"}:
        fill = page.locator(f"[data-id=role-{role}]").evaluate("node => getComputedStyle(node).fill")
        assert fill.startswith("rgb(") and fill != "rgb(0, 0, 0)", (role, fill)
    for role in TEXTURES:
        fill = page.locator(f"[data-id=role-{role}]").evaluate("node => getComputedStyle(node).fill")
        hatch = fill.split('"')[1].lstrip("#")
        assert page.locator(f"pattern[id='{hatch}']").count() == 1
    expect(page.get_by_text("thrown away")).to_be_visible()


def test_marks_move_and_are_not_made_anew(page):
    page.evaluate("document.querySelectorAll('svg.tbt-scene > g > *').forEach(node => { node.kept = true; })")
    page.get_by_role("slider", name="Size", exact=True).press("ArrowRight")
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


WATCHED = """steps => {
  const svg = document.querySelector('svg.tbt-scene'), scrub = document.querySelector('.tbt-stepper input[type=range]');
  const seen = new MutationObserver(() => {}), moved = [];
  seen.observe(svg, { childList: true, subtree: true });
  for (const at of steps) {
    scrub.value = at;
    scrub.dispatchEvent(new Event('input'));
    moved.push(seen.takeRecords().reduce(([came, gone], one) => [came + one.addedNodes.length, gone + one.removedNodes.length], [0, 0]));
  }
  return moved;
}"""


def test_a_step_brings_and_takes_what_differs_and_touches_no_other_mark(bare):
    walk = find("tile_walk")
    frames, marks = [], {}
    for change in answer(walk)["frames"]:
        marks = {id: mark for id, mark in marks.items() if id not in change["gone"]}
        marks |= {mark["id"]: mark for mark in change["marks"]}
        frames.append(set(marks))
    assert any(before - now for before, now in itertools.pairwise(frames)), "some step takes marks away"
    page = bare([(walk, {})])
    came = page.evaluate(WATCHED, list(range(len(frames))))[1:]
    for (before, now), (added, removed) in zip(itertools.pairwise(frames), came, strict=True):
        assert added <= len(now - before) and removed <= len(before - now)


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
    page.get_by_role("slider", name="Size", exact=True).press("End")
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
    size = page.get_by_role("slider", name="Size", exact=True)
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
    page.get_by_role("slider", name="Size", exact=True).press("ArrowRight")
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


HEIGHTS = """() => new Promise(done => {
  const bar = document.querySelector('[data-id=role-hot]'), seen = new Set();
  let left = 40;
  const look = () => { seen.add(bar.getAttribute('height')); if (left--) requestAnimationFrame(look); else done([...seen].length); };
  window.look = look;
  look();
})"""


def heights_while(page, act) -> int:
    """How many heights a bar takes within the next forty frames."""
    page.evaluate(f"() => {{ window.seen = ({HEIGHTS})(); }}")
    act()
    return page.evaluate("() => window.seen")


def test_a_leap_glides_and_a_slider_does_not(page):
    page.emulate_media(reduced_motion="no-preference")
    size = page.get_by_role("slider", name="Size", exact=True)
    assert heights_while(page, lambda: size.press("End")) == 2
    start = page.get_by_role("button", name="Start")
    assert heights_while(page, lambda: start.press("Enter")) > 2
    page.emulate_media(reduced_motion="reduce")
    size.press("End")
    assert heights_while(page, lambda: start.press("Enter")) == 2


def test_a_preset_opens_at_its_own_step_and_a_slider_keeps_the_step(bare):
    softmax = find("flash_attention.online_softmax")
    page = bare([(softmax, {})])
    root, step = page.locator(".tbt"), page.get_by_role("slider", name="Step through each tile")
    step.press("End")
    expect(root).to_have_attribute("data-step", "3")
    page.get_by_text("More settings", exact=True).press("Enter")
    page.get_by_role("slider", name="Scale of the scores", exact=True).press("ArrowRight")
    settled(page, 1)
    expect(root).to_have_attribute("data-step", "3")
    for revision, (label, values) in enumerate(reversed(softmax.presets.items()), start=2):
        if step.is_visible():  # one tile of all keys is one step
            step.press("Home")
        page.get_by_role("button", name=label, exact=True).press("Enter")
        settled(page, revision)
        expect(root).to_have_attribute("data-step", str(answer(softmax, {"values": values})["first"]))


def test_the_whole_picture_stays_whole_when_it_gains_steps(bare):
    page = bare([(find("roofline.launch_overhead"), {})])
    root, kernels = page.locator(".tbt"), page.get_by_role("slider", name="Kernels a layer", exact=True)
    kernels.press("Home")  # one kernel: two steps
    settled(page, 1)
    expect(root).to_have_attribute("data-step", "1")
    kernels.press("End")
    settled(page, 2)
    expect(root).to_have_attribute("data-step", "7")


def test_a_measurement_and_its_difference_are_shown(bare):
    page = bare([(SINK, {"measured": {"total": 96.0}})])
    expect(page.locator("[data-id=measured]")).to_be_visible()
    expect(page.get_by_text("total: measured 96, model 48 (2× the model).")).to_be_visible()


def test_a_prediction_is_asked_with_enter_or_with_the_button(bare):
    for commit in (
        lambda page: page.get_by_role("spinbutton", name="How many in all?").press("Enter"),
        lambda page: page.get_by_role("button", name="Commit").click(),
    ):
        page = bare([(SINK, {"locked": True})])
        guess = page.get_by_role("spinbutton", name="How many in all?")
        expect(page.get_by_role("slider", name="Size", exact=True)).to_be_hidden()
        assert page.locator(".tbt").bounding_box()["height"] < 220, "shut, it is as tall as its question"
        commit(page)
        expect(page.locator(".tbt")).to_have_attribute("data-locked", "true")
        guess.fill("47")
        commit(page)
        expect(page.get_by_text("You said 47; it is 48. Your prediction is within 10%.")).to_be_visible()
        expect(page.get_by_role("slider", name="Size", exact=True)).to_be_enabled()


@pytest.mark.parametrize("width", [360, 520, 880])
def test_nothing_sticks_out_of_a_narrow_column(page, width):
    page.evaluate("width => { document.body.style.cssText = `margin:0;width:${width}px` }", width)
    assert (
        page.evaluate(
            "() => { const one = document.querySelector('.tbt'); return one.scrollWidth - one.clientWidth; }"
        )
        <= 0
    )


WORDS_FIT = """node => {
  const whole = node.cloneNode(true);
  whole.selectedIndex = node.selectedIndex;
  whole.replaceChildren(node.selectedOptions[0].cloneNode(true));
  whole.style.cssText = 'max-width: none; width: max-content; justify-self: start; position: absolute';
  node.after(whole);
  const needed = whole.offsetWidth;
  whole.remove();
  return [node.offsetWidth, needed];
}"""


@pytest.mark.parametrize("width", [690, 1130])
def test_the_player_keeps_its_count_next_to_its_slider_and_a_bracket_its_term(bare, width):
    page = bare([(find("flash_attention.online_softmax"), {})], width=width)
    parts = [page.locator(f".tbt-stepper {one}").bounding_box() for one in ("input", ".tbt-where", "select")]
    middles = [box["y"] + box["height"] / 2 for box in parts]
    assert max(middles) - min(middles) < 4
    bracket = page.locator("dt .tbt-glued", has_text="new m").first.evaluate(
        """node => {
          const range = document.createRange();
          range.selectNodeContents(node.lastChild);
          const term = node.querySelector('.tbt-term').getBoundingClientRect(), end = range.getBoundingClientRect();
          return [node.textContent, end.top < term.bottom && term.top < end.bottom];
        }"""
    )
    assert bracket == ["new m)", True]


@pytest.mark.parametrize("width", [366, 690, 760, 1130])
def test_the_words_of_a_choice_are_not_cut(bare, width):
    page = bare([(find("roofline.roofline"), {})], width=width)
    if width == 366:
        page.get_by_text("More settings", exact=True).press("Enter")
    for choice in page.locator(".tbt-control select").all():
        room, needed = choice.evaluate(WORDS_FIT)
        assert room >= needed - 1


def test_forced_colours_keep_marks_apart_from_the_ground(bare):
    page = bare([(SINK, {})], forced_colors="active")
    ground = page.locator(".tbt").evaluate("node => getComputedStyle(node).backgroundColor")
    for role in MARK_ROLES:
        stroke, fill = page.locator(f"[data-id=role-{role}]").evaluate(
            "node => [getComputedStyle(node).stroke, getComputedStyle(node).fill]"
        )
        assert stroke != ground and fill != ground, role


def test_forced_colours_keep_the_key_and_the_words_on_textures(bare):
    """A key's gradient is dropped unless it is kept on purpose, and words in the ground's colour vanish on a texture."""
    plain = {"start": find("fragment_map").inputs({"order": "plain", "details": True})}
    page = bare([(find("fragment_map"), plain)], forced_colors="active")
    ground = page.locator(".tbt").evaluate("node => getComputedStyle(node).backgroundColor")
    for role in ("secondary", "hot"):
        key = page.locator(f".tbt-keys i.{role}")
        assert "gradient" in key.evaluate("node => getComputedStyle(node).backgroundImage"), role
        words = page.locator(f".tbt-scene text.on-{role}").first
        assert words.evaluate("node => getComputedStyle(node).fill") != ground, role


def test_words_of_a_value_carry_the_unit(page):
    size = page.get_by_role("slider", name="Size", exact=True)
    size.press("ArrowRight")
    expect(size).to_have_attribute("aria-valuetext", "4.5\u202fcm")
