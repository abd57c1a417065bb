"""While a hand holds a knob, axes hold still and the knob is under the pointer, to both ends of its range."""

import pytest

from widgets import static
from widgets.registry import every, find

pytestmark = pytest.mark.browser
PULL = """async ([id, axis, at]) => {
  const root = document.querySelector('.tbt'), svg = root.querySelector('svg.tbt-scene'), node = svg.querySelector(`[data-id="${id}"]`);
  const knob = () => { const box = node.querySelector('.knob').getBoundingClientRect(); return { x: box.x + box.width / 2, y: box.y + box.height / 2 }; };
  const grip = [...root.querySelectorAll('.tbt-grip')].filter(one => one.dataset.grip === id).at(axis === 'y' ? -1 : 0);
  const real = window.answer;
  const limit = performance.now() + 20000;
  let flying = 0, asked = 0;
  window.answer = async (...given) => { flying++; asked++; const got = await real(...given); setTimeout(() => { flying--; }); return got; };
  const quiet = async () => { do await new Promise(requestAnimationFrame); while (flying && performance.now() < limit); await new Promise(requestAnimationFrame); };
  const ticks = () => Object.fromEntries([...svg.querySelectorAll('[data-id*="-tick"], [data-id*="-grid"]')]
    .map(one => [one.dataset.id, ['x', 'y', 'x1', 'y1'].map(name => one.getAttribute(name)).join() + one.textContent]));
  const start = knob(), scale = svg.getScreenCTM().a;
  svg.setPointerCapture = () => {};
  const fire = (kind, far) => node.querySelector('.reach').dispatchEvent(new PointerEvent(kind, { bubbles: true, pointerId: 1, button: 0, buttons: 1,
    clientX: start.x + (axis === 'x' ? far : 0), clientY: start.y + (axis === 'y' ? far : 0) }));
  const seen = [];
  fire('pointerdown', 0);
  for (const place of at) {
    const far = (place - at[0]) * scale;
    fire('pointermove', far);
    await quiet();
    seen.push({ off: knob()[axis] - start[axis] - far, ticks: ticks(), value: +grip.value });
  }
  const held = ticks();
  fire('pointerup', (at.at(-1) - at[0]) * scale);
  await quiet();
  return { seen, end: +grip.max, asked, held };
}"""
SWEEP, STOP = 48, 24  # units that a pull takes, through all stops and at most for one, as in the view


def places(at: list[float], now: float, axis: str) -> list[float]:
    """Where each stop is pulled to from where the knob is: its place, or so far on that none is skipped."""
    way = (at[-1] > at[0]) - (at[-1] < at[0]) or (-1 if axis == "y" else 1)
    start = min(range(len(at)), key=lambda i: abs(at[i] - now))
    each, out = min(STOP, SWEEP / (len(at) - 1)), [way * place for place in at]
    for i in range(start + 1, len(at)):
        out[i] = max(out[i], out[i - 1] + each)
    for i in range(start - 1, -1, -1):
        out[i] = min(out[i], out[i + 1] - each)
    return [way * place for place in out]


def knobs() -> list:
    """Each knob of each simulator, along each of its axes."""
    found = []
    for one in every():
        result = one.run(**one.inputs())
        scene = one.scenes(result)[one.stepper.start(result) if one.stepper else 0]
        for mark in (mark for mark in scene.marks if not mark.get("late")):
            for drag in mark.get("drag", ()):
                found.append((one, mark, drag))
    return found


TRIED = {"device_load", "tile_utilization", "comm_overlap", "payoff_accountant"}


@pytest.mark.parametrize(
    ("simulator", "mark", "drag"),
    [pytest.param(*one, marks=() if one[0].name in TRIED else pytest.mark.slow) for one in knobs()],
    ids=lambda one: (
        one if isinstance(one, str) else getattr(one, "name", None) or one.get("id") or one["input"]
    ),
)
def test_axes_hold_still_and_the_knob_stays_under_the_pointer(bare, simulator, mark, drag):
    page = bare([(simulator, {})])
    start = mark[drag["axis"]]
    stops = places(drag["at"], start, drag["axis"])
    few = stops[:: max(1, len(stops) // 6)] + stops[-1:]
    got = page.evaluate(PULL, [mark["id"], drag["axis"], [start, *few, *reversed(few)]])
    moved = [one["value"] for one in got["seen"]]
    if len(mark["drag"]) == 1:  # one that moves both ways goes on along its curve
        assert min(moved) == 0 and max(moved) == got["end"], "both ends of the range are reached"
    assert [one["off"] for one in got["seen"] if abs(one["off"]) > 1.5] == []
    first = got["seen"][0]["ticks"]
    for one in got["seen"]:
        same = first.keys() & one["ticks"].keys()
        assert {id: one["ticks"][id] for id in same} == {id: first[id] for id in same}


TWITCH = """all => { %s
  return all.filter(({ at, from, axis }) => {
    const stops = track(at, from, axis), most = Math.max(1, 0.07 * (at.length - 1));
    return [-3, 0, 3].some(far => Math.abs(nearestPlace(stops, at[from] + far) - from) > most);
  }).map(one => one.name);
}"""


def test_a_twitch_of_the_hand_skips_no_stops(bare):
    """In every preset, also where all stops of a knob nearly share a place."""
    taken = []
    for one in every():
        for preset, values in one.presets.items():
            inputs = one.inputs(values)
            scenes = one.scenes(result := one.run(**inputs))
            for mark in scenes[one.stepper.start(result) if one.stepper else 0].marks:
                for drag in mark.get("drag", ()):
                    name, at = f"{one.name}, {preset}: {drag['input']}", drag["to"]
                    value = inputs[drag["input"]]
                    stop = at.index(value) if value in at else None
                    assert stop is not None or isinstance(value, int | float), name
                    if stop is None:
                        stop = min(range(len(at)), key=lambda i: abs(at[i] - value))
                    taken.append({"name": name, "at": drag["at"], "from": stop, "axis": drag["axis"]})
    assert len(taken) > 150
    assert bare([]).evaluate(TWITCH % (static.VIEW / "grips.js").read_text(), taken) == []


@pytest.mark.parametrize(
    ("name", "preset", "knob"),
    [
        ("sampling_chain", "Captured graph", "pull-launch"),
        pytest.param("recorded_trace", "Where attention is", "pull-middle", marks=pytest.mark.slow),
    ],
)
def test_a_pull_of_three_pixels_is_one_stop_at_most(bare, name, preset, knob):
    one = find(name)
    page = bare([(one, {"start": one.inputs(one.presets[preset])})])
    grip = page.locator(f".tbt-grip[data-grip={knob}]")
    before, box = int(grip.input_value()), page.locator(f"[data-id={knob}] .knob").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 3, y + 3)
    page.wait_for_timeout(60)
    page.wait_for_function("() => !document.querySelector('.tbt[data-asking=true]')")
    assert abs(int(grip.input_value()) - before) <= 2, "of 101 stops two"
    page.mouse.up()


def test_an_answer_s_knob_sets_its_input_when_the_hand_lets_go(bare):
    """Each stop on the way would be judged, and the right one would tell itself."""
    page = bare(
        [(find("profiler_detective"), {"start": find("profiler_detective").inputs({"case": "a LayerNorm"})})]
    )
    grip = page.locator(".tbt-grip[data-grip=pull]")
    box = page.locator("[data-id=pull] .knob").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x, y + 190, steps=8)
    assert grip.input_value() == "0" and page.locator("[data-id=stamp1]").text_content() == "2 LayerNorm"
    page.mouse.up()
    page.locator("[data-id=stamp1]:text-matches('^[✓✗]')").wait_for()
    assert int(grip.input_value()) > 4
