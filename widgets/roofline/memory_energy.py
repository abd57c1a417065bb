"""Show that energy follows distance. The same number from HBM costs 1,000x the energy of shared memory."""

from dataclasses import dataclass

from kernels.roofline import cost
from widgets import units
from widgets.charts import Box, Scale, axis_x, linear, text_width
from widgets.controls import log_slider, select, slider
from widgets.declare import Declaration, Prediction, Stepper
from widgets.scene import (
    WIDE,
    Column,
    Scene,
    about,
    circle,
    drag,
    figure,
    handle,
    line,
    rect,
    table,
    text,
)

HBM = "HBM"
NEAR = [name for name, level in cost.LEVELS.items() if level.energy_j is not None and name != HBM]
BOARD_W = 700  # what an H100 may draw in all
HOME_W = 320e3 / 250  # the source's homes, of which 320 kW supply 250
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
SHOWN = 20  # accesses that fly, one for each 5% of the slider
EVERY_S = 15e-9  # one sets out
STEPS = 40  # until the last one is back from HBM
# (the lanes to the core, y of the two lanes, the bars of energy, height)
PLACES = {
    True: (Box(70, 40, 600, 104), (44, 98), Box(124, 214, 450, 96), 344),
    False: (Box(30, 40, 280, 128), (72, 132), Box(0, 252, 246, 132), 440),
}
SIDE = {
    True: 66,
    False: 52,
}  # of the square of an access of HBM, with every other area on the same scale of energy


@dataclass(frozen=True)
class Rung:
    name: str
    bytes_on_h100: float
    latency_s: float
    energy_j: float  # 0 where the source gives none
    times_hbm: float  # how many of its accesses cost the energy of one from HBM, or 0 if unknown


@dataclass(frozen=True)
class Result:
    accesses_per_s: float
    moved_share: float
    near: str
    gpus: int
    usd_per_kwh: float
    rungs: tuple[Rung, ...]
    far_j: float
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
    shown: int  # accesses that fly in the picture
    shown_far: int
    shown_near: int
    shown_before_j: float
    shown_after_j: float


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
        far_j,
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
        SHOWN,
        SHOWN - round(SHOWN * share),
        round(SHOWN * share),
        SHOWN * far_j,
        (SHOWN - round(SHOWN * share)) * far_j + round(SHOWN * share) * near_j,
    )


def _picojoules(joules: float) -> str:
    return units.with_unit(joules / 1e-12, "pJ")


def _watts(watts: float) -> str:
    return units.si(watts, "W")


@dataclass(frozen=True)
class Access:
    far: bool
    leaves_s: float
    latency_s: float
    rank: int  # among those of its level

    def left_s(self, now_s: float) -> float:
        """Return how long it still flies, from its whole latency at the start to 0 on arrival."""
        return max(0.0, self.leaves_s + self.latency_s - now_s)


def _accesses(r: Result) -> list[Access]:
    """Spread the accesses of both levels evenly over the clock."""
    latency, ranks, out = {v.name: v.latency_s for v in r.rungs}, [0, 0], []
    for i in range(r.shown):
        far = (i + 1) * r.shown_far // r.shown > i * r.shown_far // r.shown
        out.append(Access(far, i * EVERY_S, latency[HBM if far else r.near], ranks[far]))
        ranks[far] += 1
    return out


def _lanes(r: Result, at: Box, lanes: tuple) -> list[dict]:
    """Draw the core, and each level as far away as a fetch takes."""
    wide = at.w > 400
    x = linear(0, 300e-9, at.x, at.right)
    near_y, far_y = lanes
    near_x = next(x(level.latency_s) for level in r.rungs if level.name == r.near)
    pointer = (near_x + 4, near_y, near_x + 17, near_y) if wide else (near_x, near_y - 15, near_x, near_y - 4)
    marks = [
        line("near-pointer", *pointer, "useful", "the small square here is the energy of an access on chip"),
        text("way-title", 0, 14, f"{r.shown} accesses: distance is time, a square's area is energy" if wide
             else "Distance is time, a square's area energy", bold=True),
        rect("core", at.x - 26, near_y - 18, 22, far_y - near_y + 36, "primary", "where the arithmetic is done"),
        text("core-name", at.x - 28, far_y + SIDE[wide] / 2 + 22, "core", "primary", "small", bold=True),
    ]  # fmt: skip
    marks += axis_x("ns", x, far_y + SIDE[wide] / 2 + 8, show=units.seconds, ticks=(100e-9, 200e-9, 300e-9))
    for v in r.rungs:
        far = v.name == HBM
        if v.name not in (HBM, r.near):
            continue
        y, role, id = (far_y, "hot", "far") if far else (near_y, "useful", "near")
        place, many = x(v.latency_s), r.shown_far if far else r.shown_near
        said = f"{v.name}: {units.seconds(v.latency_s)} away, {_picojoules(v.energy_j)} each"
        tip = f"{said}, {many} of {r.shown} accesses"
        side = SIDE[wide] * (v.energy_j / r.far_j) ** 0.5
        marks += about(
            {"far": "hbm", "near": "near"}[id],
            line(f"{id}-lane", at.x, y, place - side / 2, y, "grid"),
            rect(f"{id}-level", place - side / 2, y - side / 2, side, side, role, tip),
        )
        where, anchor = (
            (place - side / 2 - 8, "end") if far else (at.x + 8 if not wide else place + 20, "start")
        )
        low = y - 10 if far else y - 18 if not wide else y + 4
        marks.append(text(f"{id}-said", where, low, said, role, "small", anchor, True))
    return marks


def _flying(r: Result, now_s: float, at: Box, lanes: tuple, bars: Box) -> list[dict]:
    """Draw each access, in flight at the position of its time, then in the bar that it pays into."""
    x, paid = linear(0, 300e-9, at.x, at.right), _energy(r, bars)
    own, tally = _bar_y(bars, 1), _bar_y(bars, 1) + 40
    marks = []
    for i, one in enumerate(_accesses(r)):
        if one.leaves_s > now_s * (1 + 1e-9):
            continue
        there = one.left_s(now_s) <= 1e-15
        role, level = ("hot", HBM) if one.far else ("useful", r.near)
        if there and one.far:
            left, right = paid(one.rank * 640e-12), paid((one.rank + 1) * 640e-12)
            tip = f"access {i + 1}, from HBM, has paid {_picojoules(640e-12)}"
            marks += about("hbm", rect(f"pay{i}", left, own, right - left - 1, 24, "hot", tip))
            spot = (left + right) / 2, own + 12
        elif there:
            spot = paid(0) + 6 + _pitch(bars) * one.rank, tally
        else:
            spot = x(one.left_s(now_s)), lanes[one.far]
        tip = f"access {i + 1}, from {level}" + (
            "" if there else f", there in {units.seconds(one.left_s(now_s))}"
        )
        marks.append(circle(f"access{i}", *spot, 5, role, tip))
    return marks


def _energy(r: Result, bars: Box) -> Scale:
    return linear(0, SHOWN * 640e-12, bars.x, bars.right)


def _pitch(bars: Box) -> float:
    """Return how far apart the accesses rest that were served on chip."""
    return 12 if bars.x else 9


def _bar_y(bars: Box, row: int) -> float:
    return bars.y + row * bars.h / 2


def _bars(r: Result, now_s: float, bars: Box) -> list[dict]:
    """Draw the energy paid so far, with all accesses from HBM and with a share moved."""
    x, wide = _energy(r, bars), bars.x > 0
    there = [one for one in _accesses(r) if one.left_s(now_s) <= 1e-15 and one.leaves_s <= now_s]
    near = sum(not one.far for one in there)
    every = sum(i * EVERY_S + 300e-9 <= now_s * (1 + 1e-9) for i in range(r.shown))
    moved = f"{units.percent(r.moved_share, 0)} on chip"
    paid_j = sum(640e-12 if one.far else cost.LEVELS[r.near].energy_j for one in there)
    rows = (("before", "all from HBM", every * 640e-12, r.before_w), ("after", moved, paid_j, r.after_w))
    marks = [text("bars-title", 0, bars.y - (32 if wide else 40), "Energy paid, access by access", bold=True)]
    for i, (id, name, joules, watts) in enumerate(rows):
        y = _bar_y(bars, i)
        place = (bars.x - 24, y + 17, "end") if wide else (0, y - 10, "start")
        marks.append(text(f"{id}-name", *place[:2], name, anchor=place[2], bold=bool(i)))
        marks.append(rect(f"{id}-whole", bars.x, y, bars.w, 24, "idle", f"{r.shown} accesses from HBM"))
        if not i and joules:
            marks += about("hbm", rect("before-bar", bars.x, y, x(joules) - bars.x, 24, "hot", _paid(joules)))
        marks.append(text(f"{id}-paid", bars.right + 20, y + 10, _paid(joules), "ink", "small"))
        marks.append(text(f"{id}-watts", bars.right + 20, y + 26, _watts(watts), bold=True))
    if near and not any(one.left_s(now_s) > 1e-15 for one in _accesses(r)):
        saved_j, left = every * 640e-12 - paid_j, x(paid_j) + 18
        for words in (f"saved: {_picojoules(saved_j)}", "saved"):
            if left + text_width(words, "small", True) < bars.right - 4:
                at = (left + bars.right) / 2
                marks.append(
                    text("saved", at, _bar_y(bars, 1) + 16, words, "useful", "small", "middle", True, "idle")
                )
                break
    if near:
        words = f"{near} on chip: {_paid(near * cost.LEVELS[r.near].energy_j)} together"
        left = bars.x + _pitch(bars) * near + 8
        if left + text_width(words, "small", True) > (716 if wide else 334):
            words = _paid(near * cost.LEVELS[r.near].energy_j)
        marks.append(text("near-paid", left, _bar_y(bars, 1) + 44, words, "useful", "small", bold=True))
    return marks


def _pull(r: Result, bars: Box) -> dict:
    x = _energy(r, bars)
    at = lambda percent: x((1 - percent / 100) * r.shown_before_j)  # noqa: E731
    return handle("pull-moved", at(100 * r.moved_share), _bar_y(bars, 1) + 12, "hot", drag(MOVED, "x", at))


def _paid(joules: float) -> str:
    return _picojoules(joules) if joules else "nothing yet"


def _fleet(r: Result, y: float, wide: bool) -> list[dict]:
    year = f"${units.number(float(f'{r.year_usd:.3g}'))} a year at ${units.number(r.usd_per_kwh)} per kWh"
    homes = f"as much as {units.counted(float(f'{r.homes:.2g}'), 'home')} take"
    if r.homes < 1.5:
        homes = "as much as one home takes" if r.homes >= 0.5 else "less than half of what one home takes"
    first = f"{units.counted(r.gpus, 'GPU')} {'saves' if r.gpus == 1 else 'save'} {_watts(r.fleet_saved_w)}"
    if not r.fleet_saved_w:
        return [text("fleet", 0, y, "Nothing is moved, so nothing is saved.")]
    if wide:
        return [text("fleet", 0, y, f"{first}, {homes}: {year}.")]
    return [
        text(f"fleet{i}", 0, y + 17 * i, words)
        for i, words in enumerate((f"{first},", f"{homes}:", f"{year}."))
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
        return "Every access comes from HBM here. Pull the bar's end to keep some on the chip."
    if r.moved_share == 1:
        return f"Nothing comes from HBM any more, so fetching takes {_watts(r.after_w)} instead of {_watts(r.before_w)}."
    if r.moved_share > 0.8:
        return "The few accesses that still go to HBM take nearly all of the energy."
    if r.fleet_saved_w > 1e6:
        return f"Over {units.counted(r.gpus, 'GPU')} the saving adds up to {_watts(r.fleet_saved_w)}, as much as a small town's homes take."
    return "Distance is what costs energy: an access served on chip costs almost nothing."


def _caption(r: Result, now_s: float) -> str:
    accesses = _accesses(r)
    there = sum(one.leaves_s + one.latency_s <= now_s * (1 + 1e-9) for one in accesses)
    away = sum(one.leaves_s <= now_s * (1 + 1e-9) for one in accesses) - there
    if there == r.shown:
        return f"All {r.shown} accesses have arrived and paid."
    return f"After {units.seconds(now_s) if now_s else 'no time'}: {there} {'has' if there == 1 else 'have'} arrived and paid, {away} {'is on its' if away == 1 else 'are on their'} way."


def frames(r: Result, measured: dict | None = None, width: int = WIDE) -> list[Scene]:
    """Return one scene for every 15 ns. The last shows all that is paid."""
    way_at, lanes, bars_at, height = PLACES[width == WIDE]
    before = figure("a GPU, all from HBM", r.before_w, _watts, "hot")
    share = units.percent(r.moved_share, 0)
    after = figure(f"with {share} on chip", r.after_w, _watts, "useful" if r.moved_share else "hot")
    worth = figure(f"accesses of {r.near} for one of HBM", r.hbm_over_near, units.count)
    over = r.before_w > BOARD_W
    same = dict(
        summary=f"Fetching all from HBM takes {before.text} a GPU; with {units.percent(r.moved_share, 0)} of the accesses "
        f"in {r.near} it takes {after.text}, which saves {_watts(r.saved_w)}, and {_watts(r.fleet_saved_w)} over "
        f"{units.counted(r.gpus, 'GPU')}; {worth.text} accesses of {r.near} cost as much as one of HBM.",
        takeaway=_takeaway(r),
        figures=(worth, before, after),
        table=_table(r),
        height=height,
        width=width,
        formula=(
            (
                "power = {accesses} per second · mean energy",
                f"{{accesses:{units.si(r.accesses_per_s)}}} · {_picojoules(r.mean_energy_j)} = {after.text}",
            ),
            (
                "mean = (1 − {moved_percent:moved}) · {hbm:HBM} + {moved_percent:moved} · {near}",
                f"{units.number(1 - r.moved_share)} · {{hbm:640}} + {{moved_percent:{units.number(r.moved_share)}}} · "
                f"{{near:{units.number(cost.LEVELS[r.near].energy_j / 1e-12)}}} pJ = {_picojoules(r.mean_energy_j)}",
            ),
        ),
        warning=f"All from HBM this would take {before.text}, more than the {BOARD_W} W of the whole board: no GPU does "
        "it. The 640 pJ are of an older process, and today's ratio is smaller."
        if over
        else "",
    )
    fixed = _lanes(r, way_at, lanes)
    rest = [
        _pull(r, bars_at),
        *_fleet(r, height - (10 if width == WIDE else 42), width == WIDE),
    ]
    out = []
    for now_s in (EVERY_S * i for i in range(STEPS)):
        marks = fixed + _bars(r, now_s, bars_at) + _flying(r, now_s, way_at, lanes, bars_at) + rest
        out.append(Scene(marks=marks, caption=_caption(r, now_s), **same))
    return out


SIMULATOR = Declaration(
    title="Memory hierarchy and energy",
    question="What does it cost to fetch a number from far away?",
    controls=(
        MOVED,
        log_slider("accesses", "Accesses per second", 1.0, 0.1, 2.0, unit="trillion"),
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
    stepper=Stepper("moment", frames, lambda r: STEPS - 1),
    prediction=Prediction(
        "One access of shared memory takes 0.5 pJ. How many of them cost as much energy as one access of HBM?",
        "hbm_over_near",
        "accesses",
        0.3,
        units.count,
    ),
    source="Performance Engineering",
)
