"""Simulators' pages in Firefox, wide and on a phone: they come up, a key and a hand move them, nothing complains.

Those with the first handle of each direction; every simulator's page in `make proofs`.
"""

import pytest

from grader.tools import programs
from widgets.scene import NARROW, WIDE
from widgets.site.tests.firefox import KEYS, firefox
from widgets.site.tests.test_in_browser import EVERY, expected, slider, stepped
from widgets.tests.browser.clock import CLOCK, WALK

pytestmark = pytest.mark.firefox
SHOWN = "() => document.documentElement.dataset.python === 'live' && Boolean(document.querySelector('.tbt[data-revision]'))"
REVISION = "() => +document.querySelector('.tbt[data-revision]').dataset.revision"
FIGURES = (
    "() => [...document.querySelectorAll('.tbt[data-revision] .tbt-figures dd')].map(one => one.innerText)"
)
FOCUS = """label => {
  const named = [...document.querySelectorAll('.tbt[data-revision] label')].find(one => one.textContent === label);
  document.getElementById(named.htmlFor).focus();
}"""
KNOB = """() => {
  const knob = document.querySelector('.tbt[data-revision] [data-kind="handle"] .knob');
  if (!knob) return null;
  knob.scrollIntoView({ block: 'center' });
  const box = knob.getBoundingClientRect(), grip = document.querySelector('.tbt-grip');
  return { x: box.x + box.width / 2, y: box.y + box.height / 2, axis: knob.parentNode.dataset.axis, value: grip.value, end: grip.max };
}"""
STEP = "() => +document.querySelector('.tbt[data-revision]').dataset.step"
LAID_OUT = (
    "width => document.querySelector('.tbt[data-revision] svg.tbt-scene').viewBox.baseVal.width === width"
)
GRIP = "() => document.querySelector('.tbt-grip').value"


@pytest.fixture(scope="module")
def page():
    with firefox(programs.firefox()) as page:
        yield page


@pytest.fixture(scope="module")
def moving():
    """Another Firefox, in which motion is welcome."""
    with firefox(programs.firefox(), motion=True) as page:
        yield page


def pulled(simulator) -> str | None:
    """The direction of its first handle, if it has one: x or y."""
    marks = simulator.scenes(simulator.run(**simulator.inputs()))[0].marks
    return next((mark["drag"][0]["axis"] for mark in marks if mark["t"] == "handle"), None)


ONE_EACH = {pulled(d): d for d in reversed(EVERY)}  # the first of each direction, and of none
SAMPLE = [d for way, d in ONE_EACH.items() if way]


@pytest.mark.parametrize(
    "simulator",
    [d if d in SAMPLE else pytest.param(d, marks=pytest.mark.slow) for d in EVERY],
    ids=lambda d: d.id,
)
def test_a_simulator_lives_in_firefox(page, base, simulator):
    """One load, since Python comes up anew in each: on a phone, then in a wide window, then with a key and a hand."""
    page.open(f"{base}/simulators/{simulator.name}.html", 390)
    page.wait(SHOWN)
    for width in (390, 1280):
        page.resize(width)
        page.wait(LAID_OUT, NARROW if width == 390 else WIDE)
        assert page.ask("() => document.documentElement.scrollWidth") <= width
        assert page.ask(FIGURES) == expected(simulator, {}, page.ask(STEP))
    if control := slider(simulator):
        key, value = stepped(control)
        before = page.ask(REVISION)
        page.ask(FOCUS, control.label)
        page.press(KEYS[key])
        page.wait("(before) => (" + REVISION + ")() > before", before)
        assert page.ask(FIGURES) == expected(simulator, {control.name: value}, page.ask(STEP))
    if pulled(simulator):
        a_hand_moves_what_the_picture_is_about(page)
    assert page.complaints == []


def a_hand_moves_what_the_picture_is_about(page) -> None:
    knob = page.ask(KNOB)
    moved = set()
    for way in (1, -1):  # past half the way to a dial's next stop, and inside the window
        across, down = (300 * way, 0) if "x" in knob["axis"] else (0, 140 * way)
        end = min(max(knob["x"] + across, 5), 1275)
        page.drag((knob["x"], knob["y"]), (end, knob["y"] + down))
        moved.add(page.ask(GRIP))
        knob = page.ask(KNOB)
    assert moved != {knob["value"]} or len(moved) > 1, "a pull to either side must change the value"


STEPPERS = [d for d in EVERY if d.stepper]


@pytest.mark.parametrize(
    "simulator",
    [d if d.name == "online_softmax" else pytest.param(d, marks=pytest.mark.slow) for d in STEPPERS],
    ids=lambda d: d.id,
)
def test_each_step_ends_as_it_is_without_motion(moving, base, simulator):
    moving.open(f"{base}/simulators/{simulator.name}.html")
    moving.wait(
        "() => document.querySelector('.tbt[data-revision] svg.tbt-scene > g > *')?.checkVisibility()"
    )
    assert not moving.ask("() => matchMedia('(prefers-reduced-motion: reduce)').matches")
    moving.ask(CLOCK)
    walked = moving.ask(WALK)
    assert walked["steps"] > 1 and walked["wrong"] == []
