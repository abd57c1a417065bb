"""While a hand holds a knob, axes hold still and the knob is under the pointer, to both ends of its range."""

import pytest

from widgets.registry import every

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
BEYOND = 24  # units for each stop past the end of an axis, as in the view


def places(at: list[float]) -> list[float]:
    """Where each stop is pulled to: its place, or so far past the end of the axis that it shares with others."""
    way = 1 if at[-1] > at[0] else -1
    out = [place + way * BEYOND * (i - at.index(place)) for i, place in enumerate(at)]
    low = at.count(at[0])
    return [place - way * BEYOND * (low - 1) if i < low < len(at) else place for i, place in enumerate(out)]


def knobs() -> list:
    """Each knob of each simulator, along each of its axes."""
    found = []
    for one in every():
        result = one.run(**one.inputs())
        scene = one.scenes(result)[one.stepper.start(result) if one.stepper else 0]
        for mark in scene.marks:
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
    start, stops = mark[drag["axis"]], places(drag["at"])
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
