"""The next step is drawn from what is known: at once, the same picture, and never over a newer one."""

import pytest
from playwright.sync_api import expect

from widgets.answer import answer
from widgets.browser import BarePage, window
from widgets.registry import every
from widgets.tests.browser.in_lab import open_more, shown
from widgets.tests.browser.sample import a_third
from widgets.tests.browser.sink import SINK

pytestmark = pytest.mark.browser
expect.set_options(timeout=60_000)
EVERY = every()
A_SHEET = 8  # simulators: to open a page takes longer than to press a key on one

# Python's answers from now on wait for open_gate(); what was asked is in window.asked.
GATE = """() => {
  const real = window.answer, waits = [];
  window.asked = [];
  window.answer = async (name, request) => {
    window.asked.push(JSON.parse(request));
    await new Promise(open => waits.push(open));
    return real(name, request);
  };
  window.open_gate = () => waits.shift()();
}"""


@pytest.fixture
def page(bare):
    return bare([(SINK, {})], ahead=True)


def slider(page, name: str = "Size"):
    return page.get_by_role("slider", name=name, exact=True)


def foreseen(root) -> None:
    """Every step that the next key may ask for is known."""
    expect(root).to_have_attribute("data-ahead", "true")


def focused(page, name: str = "Size"):
    """A slider with the focus, whose next steps are known, and from now on Python waits."""
    slider(page, name).focus()
    foreseen(page.locator(".tbt"))
    page.evaluate(GATE)
    return slider(page, name)


def things(page) -> str:
    return page.locator(".tbt-figures dd").last.inner_text()


def test_a_known_step_needs_no_python(page):
    size = focused(page)
    root = page.locator(".tbt")
    size.press("ArrowRight")
    assert root.get_attribute("data-from") == "ahead" and root.get_attribute("data-revision") == "1"
    assert things(page) == "54" and page.locator("[data-id=role-hot]").get_attribute("height") == "45"
    page.keyboard.press("ArrowLeft")
    assert root.get_attribute("data-revision") == "2" and things(page) == "48"


def test_python_is_told_once_the_picture_is_on_show_and_thinks_on(page):
    """One message: the state that is on show, and the step beyond those that are known."""
    size = focused(page)
    size.press("ArrowRight")
    page.wait_for_function("window.asked.length === 1")
    told = page.evaluate("window.asked[0]")
    assert told["revision"] == 1 and told["values"]["size"] == 4.5
    assert told["ahead"]["values"] == {**told["values"], "size": 5.5}
    page.evaluate("window.open_gate()")
    foreseen(page.locator(".tbt"))
    assert page.evaluate("window.asked.length") == 1


def test_what_comes_late_does_not_overwrite_a_newer_picture(page):
    size = focused(page)
    size.press("End")  # nobody thought of that
    page.wait_for_function("window.asked.length === 1")
    assert "ahead" not in page.evaluate("window.asked[0]"), "who waits for a picture waits for it alone"
    size.evaluate("node => { node.value = 4.5; node.dispatchEvent(new Event('input')); }")
    assert things(page) == "54"
    page.evaluate("window.open_gate()")
    page.wait_for_function("window.asked.length === 2")
    assert page.evaluate("window.asked.map(one => one.values.size)") == [10, 4.5]
    assert things(page) == "54" and page.locator(".tbt").get_attribute("data-revision") == "2"
    page.evaluate("window.open_gate()")
    foreseen(page.locator(".tbt"))
    assert things(page) == "54" and size.input_value() == "4.5"


def test_a_known_step_is_laid_out_for_its_room(page):
    """What was thought of beside a wide picture is not shown on a phone."""
    slider(page).focus()
    foreseen(page.locator(".tbt"))
    page.evaluate("() => { document.body.style.width = '366px'; }")
    expect(page.locator("svg.tbt-scene")).to_have_attribute("viewBox", "0 0 340 320")
    foreseen(page.locator(".tbt"))
    page.evaluate(GATE)
    page.keyboard.press("ArrowRight")
    assert page.locator(".tbt").get_attribute("data-from") == "ahead" and things(page) == "54"
    assert page.locator("svg.tbt-scene").get_attribute("viewBox") == "0 0 340 320"


def test_a_step_that_cannot_be_has_its_sentence_at_once(page):
    page.get_by_role("checkbox", name="Flipped").press("Space")
    size = slider(page)
    size.evaluate("node => { node.value = 9.5; node.dispatchEvent(new Event('input')); }")
    expect(page.locator(".tbt-figures dd").last).to_have_text("114")
    focused(page).press("ArrowRight")
    assert page.locator(".tbt").get_attribute("data-from") == "ahead"
    expect(page.locator(".tbt-error").first).to_contain_text("Size must be below 10 when flipped")
    assert things(page) == "114", "the picture stays"
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".tbt-error").first).to_be_hidden()


def test_a_pull_gets_all_of_python(page):
    """While something is held nothing is thought of ahead, however long the hand rests; afterwards it is."""
    page.evaluate(GATE.replace("await new", "if (0) await new"))
    knob = page.locator("[data-id=knob] .knob").bounding_box()
    x, y = knob["x"] + knob["width"] / 2, knob["y"] + knob["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    for step in range(1, 6):
        page.mouse.move(x + 12 * step, y)
        page.wait_for_timeout(100)  # longer than the lull after which Python may think
    assert page.evaluate("window.asked.length") >= 3
    assert not page.evaluate("window.asked.some(one => one.ahead)")
    page.mouse.up()
    page.wait_for_function("window.asked.some(one => one.ahead)")


def test_a_locked_picture_asks_for_nothing_ahead(bare):
    page = bare([(SINK, {"locked": True})], ahead=True)
    page.evaluate(GATE.replace("await new", "if (0) await new"))
    guess = page.get_by_role("spinbutton", name="How many in all?")
    guess.focus()
    page.wait_for_timeout(150)
    assert page.evaluate("window.asked") == []
    guess.fill("47")
    guess.press("Enter")
    expect(page.get_by_text("You said 47; it is 48.")).to_be_visible()
    slider(page).focus()
    foreseen(page.locator(".tbt"))
    slider(page).press("ArrowRight")
    assert things(page) == "54" and page.locator(".tbt").get_attribute("data-from") == "ahead"


def test_only_so_many_pictures_are_kept(page):
    """A walk to the end and back: what was left longest ago is asked for again."""
    count = page.get_by_role("spinbutton", name="Count")
    for many in range(100, 120):
        count.fill(str(many))
        expect(page.locator("[data-id=label]")).to_have_text(f"{many} things")
    count.fill("119")
    page.evaluate("document.activeElement.blur()")
    page.wait_for_timeout(100)
    page.evaluate(GATE)
    count.evaluate("node => { node.value = 118; node.dispatchEvent(new Event('input')); }")
    assert page.locator("[data-id=label]").text_content() == "118 things"
    count.evaluate("node => { node.value = 100; node.dispatchEvent(new Event('input')); }")
    assert page.locator("[data-id=label]").text_content() == "118 things", "the first is no longer kept"


def test_a_view_whose_python_does_not_think_ahead_keeps_what_it_saw(bare):
    """As on a page of the site: a state that was on show is drawn again without a question."""
    page = bare([(SINK, {})])
    size = slider(page)
    size.press("ArrowRight")
    expect(page.locator(".tbt")).to_have_attribute("data-revision", "1")
    page.evaluate(GATE)
    size.press("ArrowLeft")
    assert things(page) == "48" and page.locator(".tbt").get_attribute("data-revision") == "2"
    page.wait_for_timeout(100)
    assert page.evaluate("window.asked") == []


SEEN = """root => {
  const uid = root.querySelector('pattern, linearGradient').id.split('-')[0];
  const html = [...root.querySelectorAll('.tbt-body, .tbt-error')].map(node => node.outerHTML).join('\\n');
  const values = [...root.querySelectorAll('input, select')].map(node => (node.type === 'radio' || node.type === 'checkbox' ? node.checked : node.value));
  return [html.replaceAll(uid, 'uid'), values];
}"""


@pytest.fixture(scope="module")
def pairs(browser):
    """pairs(simulator): a page whose Python thinks ahead, and one whose Python only answers."""
    two = [BarePage(browser, viewport=window(1130), reduced_motion="reduce") for _ in range(2)]
    pages = [one.page for one in two]
    pages[0].simulators = []

    def pair_of(simulator):
        if simulator not in pages[0].simulators:
            at = EVERY.index(simulator) // A_SHEET
            sheet = EVERY[at * A_SHEET : (at + 1) * A_SHEET]
            for bare, ahead in zip(two, (True, False), strict=True):
                bare.show([(one, {}) for one in sheet], "light", 1130, ahead)
                bare.page.simulators = sheet
        return pages

    yield pair_of
    for page in pages:
        page.context.close()


def keys(control) -> list[str]:
    """Two steps one way, or one where the range has no more."""
    stops = control.values(most=10**6)
    at = stops.index(control.default)
    after, before = len(stops) - 1 - at, at
    return ["ArrowRight"] * min(2, after) if after >= before else ["ArrowLeft"] * min(2, before)


@pytest.mark.parametrize("simulator", a_third(EVERY, 2), ids=lambda d: d.id)
def test_the_picture_from_ahead_is_the_one_that_is_answered(pairs, simulator):
    """Node by node, after each key on the first control."""
    seen = []
    for page, origin in zip(pairs(simulator), ("ahead", "python"), strict=True):
        root, looks = shown(page, simulator), []
        control = simulator.controls[0]
        root.locator(f".tbt-control[data-term={control.name}] :is(input, select)").first.focus()
        for revision, key in enumerate(keys(control), 1):
            if origin == "ahead":
                foreseen(root)
            page.keyboard.press(key)
            expect(root).to_have_attribute("data-revision", str(revision))
            assert root.get_attribute("data-from") == origin
            looks.append(root.evaluate(SEEN))
        seen.append(looks)
    assert seen[0] == seen[1]


def test_every_kind_of_control_is_foreseen(page):
    """Slider, number, toggle, either choice, and the knob in the picture: a key on each is known before it comes."""
    root = page.locator(".tbt")
    open_more(root)
    keys = [
        (slider(page), "ArrowLeft", {"size": 3.5}),
        (page.get_by_role("spinbutton", name="Count"), "ArrowUp", {"count": 13}),
        (page.get_by_role("checkbox", name="Flipped"), "Space", {"flipped": True}),
        (page.get_by_role("radio", name="open"), "ArrowDown", {"shape": "closed"}),
        (page.get_by_role("combobox", name="Place"), "ArrowDown", {"place": "somewhere else"}),
        (page.get_by_role("slider", name="Size, in the picture"), "ArrowUp", {"size": 4.0}),
    ]
    values = {}
    for control, key, more in keys:
        values |= more
        control.focus()
        foreseen(root)
        control.press(key)
        assert root.get_attribute("data-from") == "ahead", control
        frame = answer(SINK, {"values": values})["frames"][0]
        assert root.locator("svg.tbt-scene").get_attribute("aria-label") == frame["summary"]
