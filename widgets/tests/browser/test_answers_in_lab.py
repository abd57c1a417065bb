"""One simulator and its Python in a real JupyterLab: errors, announcements, a busy kernel, copies, messages, time."""

import json
import statistics
import time

import pytest
from playwright.sync_api import ElementHandle, Locator, expect

from widgets.answer import answer
from widgets.registry import every, find
from widgets.tests.browser import in_lab, lab
from widgets.tests.browser.in_lab import (
    back_to_the_first_preset,
    expected,
    figures,
    open_more,
    pressed,
    revision,
    settled,
    shown,
)

pytestmark = pytest.mark.browser
SHOWN = [find("tile_walk"), find("fp8_accumulator")]
REST = [d for d in every() if d not in SHOWN]
A_SHEET = (
    8  # simulators: on a page of all, whatever a test does is laid out and searched several times as long
)
BUSY = 1 + len(SHOWN)  # the cell that keeps the kernel busy
KEEPS_BUSY = "import os, time\nwhile os.path.exists('busy'):\n    time.sleep(0.05)"
SAYS = (
    "import json\nfrom pathlib import Path\n"
    f"Path('told').write_text(json.dumps([Out[at].values for at in range(2, {BUSY + 1})]))"
)


@pytest.fixture(scope="module")
def page(lab_page):
    return in_lab.opened(lab_page, SHOWN, [], (KEEPS_BUSY, SAYS))


@pytest.fixture(scope="module")
def pages(browser, served, page):
    """pages(simulator): the page that shows it, opened when it is first asked for."""
    opened = {}

    def page_of(simulator):
        if simulator in SHOWN:
            return page
        at = REST.index(simulator) // A_SHEET
        if at not in opened:
            sheet = REST[at * A_SHEET : (at + 1) * A_SHEET]
            opened[at] = in_lab.opened(in_lab.new_page(browser, served), sheet, [])
        return opened[at]

    yield page_of
    for one in opened.values():
        one.context.close()


def test_a_wrong_combination_is_a_sentence_and_the_picture_stays(page):
    simulator = find("tile_walk")
    root = shown(page, simulator)
    open_more(root)
    at = revision(root)
    root.get_by_role("combobox", name="GPU").select_option("A100")
    settled(root, at + 1)
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
    scenes = simulator.scenes(simulator.run(**simulator.inputs({"group_m": 1})))
    scene = scenes[int(root.get_attribute("data-step"))]  # a slider keeps the step
    expect(root.get_by_role("status")).to_have_text(scene.summary)
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
    settled(walk, before + 1)
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


# From the key to the end of the first frame that shows its step, with the places in between.
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
    "to the view": ("key", "asked"),
    "draw": ("asked", "drawn"),
    "wait for a frame": ("drawn", "frame"),
    "paint": ("frame", "painted"),
}


def turn(page, root: ElementHandle, slider: ElementHandle) -> dict:
    """One key on the slider, which has the focus, and when what happened; at its end the slider turns back.

    By handle and keyboard, for to find an element by its role costs the page longer than the answer does.
    """
    last = "node => +node.value === (node.matches('select') ? node.length - 1 : +node.max)"
    forth, back = slider.evaluate(
        "node => node.matches('select') ? ['ArrowDown', 'ArrowUp'] : ['ArrowRight', 'ArrowLeft']"
    )
    at_end = slider.evaluate(last)
    page.evaluate(TIMED, [root, slider])
    page.keyboard.press(back if at_end else forth)
    return page.evaluate("window.taken")


def slid(simulator):
    """Its first slider, one in view before one that is folded; where there is none, its first control."""
    return min(simulator.controls, key=lambda control: (control.kind != "slider", control.more))


def first_slider(root: Locator, simulator) -> Locator:
    """The control's own, not the grip in the picture."""
    if slid(simulator).more:
        open_more(root)
    role = "slider" if slid(simulator).kind == "slider" else "combobox"
    return root.get_by_role(role, name=slid(simulator).label, exact=True)


def model_ms(simulator) -> float:
    """What the model, the scene and their JSON take of a processor, without a browser."""
    start = time.thread_time()
    for _ in range(10):
        json.dumps(answer(simulator))
    return 100 * (time.thread_time() - start)


def foreseen(page, root: ElementHandle) -> None:
    """Python has thought of every step that the next key may ask for, and rests."""
    page.wait_for_function("root => root.dataset.ahead === 'true'", arg=root, timeout=in_lab.LATE_MS)


TURNS = 20
EACH = [*SHOWN, *(pytest.param(d, marks=pytest.mark.slow) for d in REST)]


@pytest.mark.parametrize("simulator", EACH, ids=lambda d: d.id)
def test_key_to_settled_pixels_is_printed(pages, simulator, record_property):
    """Numbers to look at, not a bar: machines differ. That no key waits for Python holds on each."""
    page = pages(simulator)
    root = shown(page, simulator)
    slider = first_slider(root, simulator)
    page.emulate_media(reduced_motion="no-preference")
    slider.focus()
    handles, taken = (root.element_handle(), slider.element_handle()), []
    for _ in range(TURNS):
        foreseen(page, handles[0])
        taken.append(turn(page, *handles))
        assert handles[0].get_attribute("data-from") == "ahead"
    page.emulate_media(reduced_motion="reduce")
    whole = [one["painted"] - one["key"] for one in taken]
    median, p90 = statistics.median(whole), statistics.quantiles(whole, n=10)[-1]
    parts = [f"{part} {statistics.median(t[b] - t[a] for t in taken):.1f}" for part, (a, b) in PARTS.items()]
    record_property(
        "said",
        f"{simulator.name:22} key to settled pixels, median of {TURNS}: {median:3.0f} ms, p90 {p90:3.0f} ms; "
        f"medians of parts: {', '.join(parts)}; ahead of it, model and scene {model_ms(simulator):.1f} of processor time",
    )
    values = {slid(simulator).name: value_of(slid(simulator), slider)}
    assert figures(root) == expected(root, simulator, **values), "what was timed is the model's own result"


def test_python_knows_the_state_that_was_drawn_from_ahead(page):
    """And what Python said in between does not change what is on show."""
    moved = []
    for simulator in SHOWN:
        root = shown(page, simulator)
        back_to_the_first_preset(root)
        slider = first_slider(root, simulator)
        slider.focus()
        foreseen(page, root.element_handle())
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("ArrowLeft")
        assert root.get_attribute("data-from") == "ahead"
        moved.append({slid(simulator).name: value_of(slid(simulator), slider)})
    lab.wait_until_quiet(page)
    told = page.folder / "told"
    told.unlink(missing_ok=True)
    lab.run_cell(page, BUSY + 1)
    lab.wait_until_quiet(page)
    wait_for(told)
    assert json.loads(told.read_text()) == [d.inputs(v) for d, v in zip(SHOWN, moved, strict=True)]
    for simulator, values in zip(SHOWN, moved, strict=True):
        root = shown(page, simulator)
        assert figures(root) == expected(root, simulator, **values)
        back_to_the_first_preset(root)


def wait_for(file) -> None:
    for _ in range(300):
        if file.exists() and file.stat().st_size:
            return
        time.sleep(0.05)
    raise AssertionError(f"{file.name} must be written, got nothing in 15 s")


def value_of(control, slider: Locator):
    at = float(slider.input_value())
    return control.stops[int(at)] if control.stops else type(control.default)(at)


@pytest.mark.parametrize("name", ["tile_walk", "fp8_accumulator"])
def test_a_key_is_one_message_each_way(page, name):
    simulator = find(name)
    root = shown(page, simulator)
    slider = first_slider(root, simulator)
    slider.focus()
    handles = root.element_handle(), slider.element_handle()
    foreseen(page, handles[0])
    sent, came = lab.widget_messages(page)
    for key in range(1, 6):
        turn(page, *handles)
        in_lab.arrived(page, came, key)
        lab.wait_until_quiet(page)
        assert (len(sent), len(came)) == (key, key), (sent, came)
    assert set(sent) == {"request"} and set(came) <= {"answer", "ahead,answer"}


def test_the_first_picture_is_printed(lab_page, record_property):
    """From "run all" in a fresh kernel and page to the first picture, the import of everything included."""
    record_property("said", f"run all to first picture: {lab_page.first_picture_ms:.0f} ms")


def test_nothing_leaves_this_machine_and_nothing_throws(page):
    in_lab.quiet(page)
