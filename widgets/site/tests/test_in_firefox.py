"""Every simulator's page in Firefox, wide and on a phone: it comes up, a key and a hand move it, nothing complains."""

import pytest

from grader.tools import programs
from widgets.registry import every
from widgets.site.tests.firefox import KEYS, firefox
from widgets.site.tests.test_in_browser import expected, slider, stepped

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
GRIP = "() => document.querySelector('.tbt-grip').value"


@pytest.fixture(scope="module")
def page():
    with firefox(programs.firefox()) as page:
        yield page


@pytest.mark.parametrize("simulator", every(), ids=lambda d: d.id)
def test_a_simulator_lives_in_firefox(page, base, simulator):
    for width in (390, 1280):
        page.open(f"{base}/simulators/{simulator.name}.html", width)
        page.wait(SHOWN)
        assert page.ask("() => document.documentElement.scrollWidth") <= width
        step = page.ask("() => +document.querySelector('.tbt[data-revision]').dataset.step")
        assert page.ask(FIGURES) == expected(simulator, {}, step)
    if control := slider(simulator):
        key, value = stepped(control)
        before = page.ask(REVISION)
        page.ask(FOCUS, control.label)
        page.press(KEYS[key])
        page.wait("(before) => (" + REVISION + ")() > before", before)
        step = page.ask("() => +document.querySelector('.tbt[data-revision]').dataset.step")
        assert page.ask(FIGURES) == expected(simulator, {control.name: value}, step)
    assert page.complaints == []


HELD = [d for d in every() if any(mark["t"] == "handle" for mark in d.scenes(d.run(**d.inputs()))[0].marks)]


@pytest.mark.parametrize("simulator", HELD, ids=lambda d: d.id)
def test_a_hand_moves_what_the_picture_is_about(page, base, simulator):
    page.open(f"{base}/simulators/{simulator.name}.html")
    page.wait(SHOWN)
    knob = page.ask(KNOB)
    moved = set()
    for way in (140, -140):
        across, down = (way, 0) if "x" in knob["axis"] else (0, way)
        page.drag((knob["x"], knob["y"]), (knob["x"] + across, knob["y"] + down))
        moved.add(page.ask(GRIP))
        knob = page.ask(KNOB)
    assert moved != {knob["value"]} or len(moved) > 1, "a pull to either side must change the value"
    assert page.complaints == []
