"""With motion, every step ends as without: forwards, back, in haste and played; on a clock that the test turns."""

from itertools import pairwise

import pytest

from widgets.browser import BarePage
from widgets.registry import every, find
from widgets.tests.browser.clock import CLOCK, FRAMES, WALK

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


def marked(simulator, key: str) -> dict[str, str]:
    """Which marks of its steps have this, and what."""
    scenes = simulator.scenes(simulator.run(**simulator.inputs()))
    return {mark["id"]: mark[key] for scene in scenes for mark in scene.marks if key in mark}


def frames(moving, simulator) -> list[dict]:
    moving.show([(simulator, {})], "light", 1130, False)
    moving.page.evaluate(CLOCK)
    waits, along = marked(simulator, "clock"), marked(simulator, "by")
    return moving.page.evaluate(
        FRAMES, [list(dict.fromkeys(waits.values())), list(waits), list(along.items())]
    )


@pytest.mark.parametrize("name", ["launch_overhead", "comm_overlap"])
def test_nothing_is_drawn_before_its_time(moving, name):
    """In every frame what waits for the clock ends at its line, and the line itself goes on in every frame."""
    seen = frames(moving, find(name))
    early = [
        (one["step"], id, right, one["clock"])
        for one in seen
        for id, right in one["right"]
        if right > one["clock"] + 0.6
    ]
    assert early == []
    assert sum(len(one["right"]) for one in seen) > 1000
    assert len({one["clock"] for one in seen}) > 200


@pytest.mark.parametrize("name", ["moe_forward"])
def test_a_mark_and_its_words_travel_together(moving, name):
    seen, home = frames(moving, find(name)), {}
    for one in seen:
        for id, across, down in one["apart"]:
            home.setdefault(id, set()).add((round(across, 1), round(down, 1)))
    assert home.keys() == marked(find(name), "by").keys() and len(home) > 40
    assert {id: places for id, places in home.items() if len(places) > 1} == {}


def test_a_frame_that_bears_an_earlier_time_moves_nothing_backwards(bare):
    """A frame may be stamped before the key that began the move: it must not draw a state before the first."""
    page = bare([(find("tile_walk"), {})], reduced_motion="no-preference")
    page.evaluate(
        "() => { const ask = requestAnimationFrame; window.requestAnimationFrame = call => ask(now => call(now - 400)); }"
    )
    wrong = []
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    for preset in ("Decode, M = 1", "Tall tile, groups of 4", "Walk row by row"):
        page.get_by_role("button", name=preset, exact=True).click()
        page.wait_for_timeout(150)
    assert wrong == []
