"""Energy follows distance: the same number costs a thousand times more from HBM than from shared memory."""

import math
from dataclasses import dataclass

from kernels.roofline import cost
from widgets import units
from widgets.charts import Box, Scale, linear, log
from widgets.controls import log_slider, select, slider
from widgets.declare import Declaration, Prediction
from widgets.scene import (
    WIDE,
    Column,
    Scene,
    about,
    circle,
    drag,
    figure,
    flowing,
    handle,
    line,
    path,
    rect,
    table,
    text,
)

HBM = "HBM"
NEAR = [name for name, level in cost.LEVELS.items() if level.energy_j is not None and name != HBM]
BOARD_W = 700  # what an H100 may draw in all
HOME_W = 320e3 / 250  # the source's homes: 320 kW are 250 of them
KWH_J = 3.6e6
MOVED = slider(
    "moved_percent",
    "Accesses moved on chip",
    50,
    0,
    100,
    step=5,
    unit="%",
    help="By fusing and tiling: the same work, fewer trips.",
)
FAR = 62.0  # radius of one access of HBM; the others have their share of its area
CLOSER = 12  # times as wide within the frame, where the near levels are large enough to see
# (the core and the way to HBM, the power, height)
PLACES = {
    True: (Box(40, 132, 550, 0), Box(130, 300, 430, 60), 426),
    False: (Box(28, 152, 186, 0), Box(0, 306, 250, 110), 464),
}


@dataclass(frozen=True)
class Rung:
    name: str
    bytes_on_h100: float
    latency_s: float
    energy_j: float  # 0 where the source gives none
    times_hbm: float  # how many of its accesses cost one of HBM; 0 if unknown


@dataclass(frozen=True)
class Result:
    accesses_per_s: float
    moved_share: float
    near: str
    gpus: int
    usd_per_kwh: float
    rungs: tuple[Rung, ...]
    hbm_over_near: float
    mean_energy_j: float
    before_w: float
    after_w: float
    saved_w: float
    left_in_hbm_w: float
    near_w: float
    of_board_share: float
    fleet_saved_w: float
    homes: float
    year_j: float
    year_usd: float


def run(moved_percent, accesses, near, gpus, usd_per_kwh):
    share, per_s = moved_percent / 100, accesses * 1e12
    far_j, near_j = cost.LEVELS[HBM].energy_j, cost.LEVELS[near].energy_j
    mix = {HBM: 1 - share, near: share}
    after_w = cost.memory_power_w(per_s, mix)
    saved_w = cost.power_saved_w(per_s, share, HBM, near)
    year_j = cost.annual_energy_j(saved_w * gpus)
    rungs = tuple(
        Rung(
            v.name, v.bytes_on_h100, v.latency_s, v.energy_j or 0.0, far_j / v.energy_j if v.energy_j else 0.0
        )
        for v in cost.LEVELS.values()
    )
    before_w = cost.memory_power_w(per_s, {HBM: 1.0})
    return Result(
        per_s,
        share,
        near,
        gpus,
        usd_per_kwh,
        rungs,
        far_j / near_j,
        cost.energy_per_access_j(mix),
        before_w,
        after_w,
        saved_w,
        (1 - share) * before_w,
        after_w - (1 - share) * before_w,
        after_w / BOARD_W,
        saved_w * gpus,
        saved_w * gpus / HOME_W,
        year_j,
        year_j / KWH_J * usd_per_kwh,
    )


def _picojoules(joules: float) -> str:
    return units.with_unit(joules / 1e-12, "pJ")


def _watts(watts: float) -> str:
    return units.si(watts, "W")


def _way(r: Result, at: Box) -> list[dict]:
    """The levels as far from the core as a fetch takes, each with the energy of one access as its true area."""
    wide = at.w > 400
    x = log(0.2e-9, 300e-9, at.x, at.right)
    short = {"registers": "registers", "shared memory": "shared memory" if wide else "shared"}
    ratio = f"one of HBM = {units.count(r.hbm_over_near)} of {short[r.near]}"
    marks = [
        text("way-title", 0, 14, "One access: its distance is its time (log scale), its area is its energy" if wide
             else "Distance: time (log); area: energy", bold=True),
        text("ratio", at.x - 24 if wide else 0, at.y + 92 if wide else 34, ratio, "hot", bold=True),
        rect("core", at.x - 24, at.y - 20, 20, 40, "primary", "where the arithmetic is done"),
        text("core-name", at.x - 26, at.y + (44 if wide else 60), "core", "primary", "small", bold=True),
    ]  # fmt: skip
    for i, v in enumerate(r.rungs):
        far, chosen = v.name == HBM, v.name in (r.near, HBM)
        radius, role = _radius(r, v), "hot" if far else "useful" if v.name == r.near else "idle"
        # the large disc begins where its time is, so that nothing nearer lies within it
        place = x(v.latency_s) + (radius if far else 0)
        energy = _picojoules(v.energy_j) if v.energy_j else "no figure"
        tip = f"{v.name}: {energy} an access, {units.seconds(v.latency_s)}, {units.si_bytes(v.bytes_on_h100)} on an H100"
        term = {HBM: "hbm", r.near: "near"}.get(v.name)
        if v.energy_j:
            dot = _true(f"level{i}", place, at.y, radius, role, tip)
        else:
            dot = _hollow(f"level{i}", place, at.y, "muted", tip)
        if chosen:
            low = at.y + (12 if far else 0)
            end = place - (radius**2 - 12**2) ** 0.5 if far else place - 6
            way = flowing(line(f"fetch{i}", end, low, at.x - 4, low, role, f"fetched from {v.name}"))
            marks += about(term, *way, dot)
        else:
            marks.append(dot)
        down, ink = at.y + (80 if far else 30), role if chosen else "muted"
        beside = 0 if wide or v.energy_j else 5
        said = [("name", short.get(v.name, v.name), ink, chosen), ("value", energy, ink, chosen)]
        if wide:
            said.append(("wait", units.seconds(v.latency_s), "muted", False))
        if chosen:
            share = units.percent(1 - r.moved_share if far else r.moved_share, 0)
            said.append(("share", f"{share} of accesses" if wide else share, ink, True))
        for part, (word, words, tone, bold) in enumerate(said):
            low = down + 15 * part
            marks.append(text(f"level{i}-{word}", place + beside, low, words, tone, "small", "middle", bold))
    return marks + _magnified(r, at, x, short)


def _radius(r: Result, rung: Rung) -> float:
    """Of a disc whose area is one access's energy."""
    return FAR * (rung.energy_j / r.rungs[-1].energy_j) ** 0.5


def _true(id: str, x: float, y: float, radius: float, role: str, tip: str) -> dict:
    """A disc; where its rim would hide it, a square of the same area."""
    side = radius * math.pi**0.5
    if side > 6:
        return circle(id, x, y, radius, role, tip)
    return rect(id, x - side / 2, y - side / 2, side, side, role, tip)


def _hollow(id: str, x: float, y: float, role: str, tip: str) -> dict:
    """A ring: the level is there, the source gives no energy."""
    turns = [i / 16 * 2 * math.pi for i in range(17)]
    return path(id, [(x + 5 * math.cos(a), y + 5 * math.sin(a)) for a in turns], role, tip)


def _magnified(r: Result, at: Box, x: Scale, short: dict) -> list[dict]:
    """A frame over the near levels, which are too small to see beside HBM; HBM's edge stands in it, at its scale."""
    wide = at.w > 400
    frame = Box(at.x + 20, at.y - 106, at.w - 70, 82) if wide else Box(1, at.y - 108, 211, 82)
    middle, wall = frame.y + 43, frame.right - (44 if wide else 34)
    words = f"{CLOSER**2} times the area"
    words = f"Magnified: {words}, {CLOSER} times as wide" if wide else words
    # so large a disc bends by one unit over this height: its edge is drawn straight
    size = f"At this scale HBM's disc is {units.count(round(2 * CLOSER * FAR))} wide: only its edge fits"
    marks = [
        path("magnified", [(frame.x, frame.y), (frame.right, frame.y), (frame.right, frame.bottom),
                           (frame.x, frame.bottom), (frame.x, frame.y)], "muted"),
        text("magnified-title", frame.x + 6, frame.y + 15, words, "ink", "small", bold=True),
        *about("hbm", rect("magnified-hbm", wall, frame.y, frame.right - wall, frame.h, "hot", size)),
    ]  # fmt: skip
    for i, said in enumerate(("HBM: just", "its edge") if wide else ("HBM",)):
        low = middle + 15 * i if wide else frame.y + 15
        marks.append(text(f"magnified-hbm-name{i}", wall - 5, low, said, "hot", "small", "end", True))
    for i, v in enumerate(one for one in r.rungs if one.name in short):
        radius, near, place = CLOSER * _radius(r, v), v.name == r.near, x(v.latency_s)
        role = "useful" if near else "idle"
        for side in (-1, 1):
            start, end = place + side * max(radius, 6), place + side * 3
            marks.append(line(f"leader{i}{side}", start, frame.bottom, end, at.y - 4, "muted"))
        tip = f"{v.name}: {_picojoules(v.energy_j)} an access, drawn {CLOSER**2} times as large"
        marks += [
            circle(f"magnified{i}", place, middle, radius, role, tip),
            text(f"magnified{i}-name", place, frame.bottom - 5, short[v.name], role if near else "muted", "small", "middle", near),
        ]  # fmt: skip
    return marks


def _power(r: Result, at: Box) -> list[dict]:
    """Watts for fetching alone, on the scale of what the whole board may draw; the share moved is pulled."""
    wide = at.x > 0
    x, pitch = linear(0, 1300, at.x, at.right), 32 if wide else 50
    board = x(BOARD_W)
    title = f"Power of one GPU's fetching, {units.number(r.accesses_per_s / 1e12)} trillion accesses a second"
    marks = [
        text("power-title", 0, at.y - 30, title if wide else "Power of one GPU's fetching", bold=True),
        line(
            "board", board, at.y - 4, board, at.y + 2 * pitch, "limit", f"an H100 may draw {BOARD_W} W in all"
        ),
        text("board-name", board, at.y - 9, f"whole board: {BOARD_W} W", "muted", "small", "middle"),
    ]
    moved = f"{units.percent(r.moved_share, 0)} moved"
    rows = (("before", "all from HBM", r.before_w, 0.0), ("after", moved, r.left_in_hbm_w, r.near_w))
    for i, (id, name, far, near) in enumerate(rows):
        top, end = at.y + i * pitch + (0 if wide else 16), x(far + near)
        marks += [
            text(
                f"{id}-name",
                at.x - 20 if wide else 0,
                top + (19 if wide else -4),
                name,
                anchor="end" if wide else "start",
            ),
            *about(
                "hbm", rect(f"{id}-far", at.x, top + 2, x(far) - at.x, 24, "hot", f"from HBM: {_watts(far)}")
            ),
            text(f"{id}-watts", _watts_x(r, x), top + 19, _watts(far + near), bold=True),
        ]
        if near > 0:
            tip = f"from {r.near}: {_watts(near)}"
            marks += about(
                "near", rect(f"{id}-near", x(far), top + 2, max(1.5, end - x(far)), 24, "useful", tip)
            )
    top = at.y + pitch + (0 if wide else 16)
    marks += _saved(r, x, top)
    marks.append(
        handle(
            "pull-moved",
            x(r.left_in_hbm_w),
            top + 14,
            "hot",
            drag(MOVED, "x", lambda p: x((1 - p / 100) * r.before_w)),
        )
    )
    return marks + _fleet(r, at, top + (52 if wide else 54))


def _watts_x(r: Result, x: Scale) -> float:
    """Beside what the bar was, clear of its knob and of the board's limit."""
    start, board = x(r.before_w) + 20, x(BOARD_W)
    return board + 8 if start - 4 < board < start + 56 else start


def _saved(r: Result, x: Scale, top: float) -> list[dict]:
    """From the end of the lower bar to where it ended before, named where there is room."""
    if not r.saved_w:
        return []
    start, end, words = x(r.after_w), x(r.before_w), f"saved {_watts(r.saved_w)}"
    marks = [
        rect("saved", start + 3, top + 2, max(0, end - start - 3), 24, "idle", f"saved: {_watts(r.saved_w)}")
    ]
    if end - start > 110:
        middle = (start + end) / 2 + 8
        marks.append(
            text("saved-name", middle, top + 19, words, "useful", "small", "middle", bold=True, on="idle")
        )
    return marks


def _fleet(r: Result, at: Box, y: float) -> list[dict]:
    year = f"${units.number(float(f'{r.year_usd:.3g}'))} a year at ${units.number(r.usd_per_kwh)} a kWh"
    homes = f"as much as {units.counted(r.homes, 'home')} take"
    if r.homes < 1.5:
        homes = "as much as one home takes" if r.homes >= 0.5 else "less than half of what one home takes"
    first = f"{units.counted(r.gpus, 'GPU')} {'saves' if r.gpus == 1 else 'save'} {_watts(r.fleet_saved_w)}"
    if not r.fleet_saved_w:
        words = "Nothing is moved, so nothing is saved" + ": pull the bar's end." * bool(at.x)
        return [text("fleet", 0, y, words, "ink")]
    if at.x:
        return [text("fleet", 0, y, f"{first}, {homes}: {year}.", "ink")]
    return [
        text("fleet", 0, y, f"{first},", "ink"),
        text("fleet-2", 0, y + 17, f"{homes}:", "ink"),
        text("fleet-3", 0, y + 34, f"{year}.", "ink"),
    ]


def _table(r: Result):
    columns = (
        "level",
        Column("size on an H100", "B", units.si_bytes),
        Column("takes", "s", units.seconds),
        Column("energy of an access", "J", lambda v: _picojoules(v) if v else "not given"),
        Column("HBM over it", show=lambda v: units.times(v) if v else "not given"),
    )
    return table(columns, [(v.name, v.bytes_on_h100, v.latency_s, v.energy_j, v.times_hbm) for v in r.rungs])


def _takeaway(r: Result) -> str:
    if not r.moved_share:
        return "Everything comes from far away: pull the bar's end, and see what stays on the chip is nearly free."
    if r.moved_share == 1:
        return (
            f"Nothing comes from HBM any more: all the fetching takes {_watts(r.after_w)}, "
            f"where it took {_watts(r.before_w)}."
        )
    if r.moved_share > 0.8:
        return (
            "What little still comes from HBM is nearly all of the power: the last trips are worth hunting."
        )
    if r.fleet_saved_w > 1e6:
        return "A share of one GPU's fetching becomes a power station over a fleet."
    return "Fetching from far away is what costs: each access moved on chip saves nearly all of its energy."


def scene(r: Result, measured: dict | None = None, width: int = WIDE) -> Scene:
    way_at, power_at, height = PLACES[width == WIDE]
    before = figure("all from HBM", r.before_w, _watts, "hot")
    after = figure(f"with {units.percent(r.moved_share, 0)} from {r.near}", r.after_w, _watts)
    saved = figure("saved a GPU", r.saved_w, _watts, "useful")
    fleet = figure(f"saved by {units.counted(r.gpus, 'GPU')}", r.fleet_saved_w, _watts, "useful")
    over = r.before_w > BOARD_W
    return Scene(
        summary=f"Fetching all from HBM takes {before.text} a GPU; with {units.percent(r.moved_share, 0)} of the accesses "
        f"in {r.near} it takes {after.text}, which saves {saved.text}, and {fleet.text} over "
        f"{units.counted(r.gpus, 'GPU')}.",
        takeaway=_takeaway(r),
        marks=_way(r, way_at) + _power(r, power_at),
        figures=(before, after, saved, fleet),
        table=_table(r),
        height=height,
        width=width,
        formula=(
            (
                "power = {accesses} a second · mean energy",
                f"{{accesses:{units.si(r.accesses_per_s)}}} · {_picojoules(r.mean_energy_j)} = {after.text}",
            ),
            (
                "mean = (1 − {moved_percent:moved}) · {hbm:HBM} + {moved_percent:moved} · {near}",
                f"{units.number(1 - r.moved_share)} · {{hbm:640}} + {{moved_percent:{units.number(r.moved_share)}}} · "
                f"{{near:{units.number(cost.LEVELS[r.near].energy_j / 1e-12)}}} pJ = {_picojoules(r.mean_energy_j)}",
            ),
        ),
        warning=f"All from HBM this would take {before.text}, more than the {BOARD_W} W of the whole board: no GPU does "
        "it. The 640 pJ are of an older process; keep the ratio."
        if over
        else "",
    )


SIMULATOR = Declaration(
    title="Memory hierarchy and energy",
    question="What does it cost to fetch a number from far away?",
    controls=(
        MOVED,
        log_slider("accesses", "Accesses a second", 1.0, 0.1, 2.0, unit="trillion"),
        select("near", "Moved to", "shared memory", NEAR),
        log_slider("gpus", "GPUs", 1000, 1, 100000, per_decade=3),
        slider("usd_per_kwh", "Price of a kWh", 0.1, 0.02, 0.5, step=0.02, unit="$", more=True),
    ),
    presets={
        "Half moved": {},
        "Nothing moved": {"moved_percent": 0},
        "Nearly all, in registers": {"moved_percent": 95, "near": "registers"},
        "100,000 GPUs": {"gpus": 100000},
    },
    run=run,
    scene=scene,
    prediction=Prediction(
        "One access of shared memory takes 0.5 pJ. How many of them cost as much energy as one access of HBM?",
        "hbm_over_near",
        "accesses",
        0.3,
        units.count,
    ),
    source="Performance Engineering",
)
