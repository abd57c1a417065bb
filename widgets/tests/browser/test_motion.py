"""With motion, every step ends as without: forwards, back, in haste and played; on a clock that the test turns."""

from itertools import pairwise

import pytest

from widgets.browser import BarePage
from widgets.registry import every
from widgets.tests.browser.clock import CLOCK, WALK

pytestmark = pytest.mark.browser
STEPPERS = [d for d in every() if d.stepper]


@pytest.fixture(scope="module")
def moving(browser):
    """One page on which motion is welcome."""
    bare = BarePage(browser, viewport={"width": 1170, "height": 800}, reduced_motion="no-preference")
    yield bare
    bare.page.context.close()


def glides(simulator) -> bool:
    """Whether some mark is elsewhere one step later."""
    scenes = simulator.scenes(simulator.run(**simulator.inputs()))
    places = [{mark["id"]: [mark.get(one) for one in "xywhrp"] for mark in scene.marks} for scene in scenes]
    return any(was[id] != now[id] for was, now in pairwise(places) for id in was.keys() & now.keys())


@pytest.mark.parametrize("simulator", STEPPERS, ids=lambda d: d.id)
def test_each_step_ends_as_it_is_without_motion(moving, simulator):
    moving.show([(simulator, {})], "light", 1130, False)
    moving.page.evaluate(CLOCK)
    walked = moving.page.evaluate(WALK)
    assert walked["steps"] > 1
    assert bool(walked["moved"]) == glides(simulator), "what moves must be caught under way"
    assert walked["wrong"] == []
