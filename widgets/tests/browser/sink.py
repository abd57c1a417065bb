"""One invented simulator that uses every control and every kind of mark, for the tests of the view alone."""

from dataclasses import dataclass

from widgets.charts import linear
from widgets.controls import number, select, slider, toggle
from widgets.declare import Declaration, Prediction
from widgets.scene import (
    MARK_ROLES,
    NARROW,
    WIDE,
    Scene,
    about,
    beside_model,
    circle,
    drag,
    figure,
    grid,
    handle,
    line,
    path,
    rect,
    sets,
    table,
    text,
)

SIDE = 50  # 2,500 cells
SIZE = slider("size", "Size", 4.0, 1.0, 10.0, step=0.5, unit="cm")
COUNT = number("count", "Count", 12, 1, 2500)


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


def scene(r: Result, measured: dict | None = None, width: int = WIDE) -> Scene:
    bars = [
        rect(f"role-{role}", 20 + 40 * i, 20, 30, 10 * r.size, role, role)
        for i, role in enumerate(sorted(MARK_ROLES))
    ]
    shapes = [
        path("path", [(20, 150), (60, 130), (100, 150)], "primary", "a path", closed=r.shape == "closed"),
        *sets({"shape": "closed"}, circle("dot", 150, 140, 8, "now", "a dot")),
        line("rule", 180, 140, 240, 140, "limit", "a line"),
        text("label", 260, 144, f"{r.count} things"),
    ]
    cells = [int(i < r.count) for i in range(SIDE * SIDE)]
    cloth = grid("cloth", 20, 170, 200, 120, SIDE, cells, ("idle", "hot"), ("free", "taken"))
    top, left = linear(1, 10, 300, 200), linear(1, 2500, 20, 320)
    knob = handle("knob", left(r.count), top(r.size), "primary", drag(COUNT, "x", left), drag(SIZE, "y", top))
    bars = about("size", *bars)
    marks = [cloth, *shapes, *bars, knob] if r.flipped else [*bars, *shapes, cloth, knob]
    if width == NARROW:
        marks = [knob, text("label", 20, 40, f"{r.count} things")]
    beside = ()
    if measured:
        marks.append(circle("measured", 300, 200, 5, "measured", "yours"))
        beside = (beside_model("total", measured["total"], r.total),)
    return Scene(
        summary=f"{r.count} things of size {r.size:g}, {r.total:g} in all.",
        takeaway="More is more.",
        marks=marks,
        figures=(figure("things", r.count, term="count"), figure("in all", r.total)),
        table=table(("things", "in all"), [("all", r.total)]),
        legend=(("waste", "thrown away"), ("dropped", "lost"), ("idle", "free")),
        warning="That is large." if r.size > 8 else "",
        beside=beside,
        formula=(("total = {size}·{count}", f"{{size:{r.size:g}}}·{{count:{r.count}}} = {r.total:g}"),),
        width=width,
    )


SINK = Declaration(
    title="Everything",
    question="Does it all show?",
    controls=(
        SIZE,
        COUNT,
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
