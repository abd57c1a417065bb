"""Energy follows distance: the same number costs a thousand times more from HBM than from shared memory."""

from dataclasses import dataclass

from kernels.roofline import cost
from widgets import units
from widgets.charts import Box, axis_x, linear, log
from widgets.controls import log_slider, select, slider
from widgets.declare import Declaration, Prediction
from widgets.scene import WIDE, Column, Scene, circle, figure, line, rect, table, text

HBM = "HBM"
NEAR = [name for name, level in cost.LEVELS.items() if level.energy_j is not None and name != HBM]
BOARD_W = 700  # what an H100 may draw in all
HOME_W = 320e3 / 250  # the source's homes: 320 kW are 250 of them
KWH_J = 3.6e6
LADDER, RUNG = Box(150, 44, 360, 128), 32
POWER = Box(150, 270, 430, 68)


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
        per_s, share, near, gpus, usd_per_kwh, rungs, far_j / near_j, cost.energy_per_access_j(mix), before_w, after_w,
        saved_w, (1 - share) * before_w, after_w - (1 - share) * before_w, after_w / BOARD_W, saved_w * gpus,
        saved_w * gpus / HOME_W, year_j, year_j / KWH_J * usd_per_kwh,
    )  # fmt: skip


def _picojoules(joules: float) -> str:
    return units.with_unit(joules / 1e-12, "pJ")


def _watts(watts: float) -> str:
    return units.si(watts, "W")


def _ladder(r: Result) -> list[dict]:
    """One access at each level, on a log scale."""
    x = log(0.003, 2000, LADDER.x, LADDER.right)
    marks = [
        text("ladder-title", 0, 14, "Energy of one access", bold=True),
        text("size-title", 626, 34, "an H100 has", "muted", "small", "end"),
        text("wait-title", WIDE, 34, "fetch takes", "muted", "small", "end"),
    ]
    for i, v in enumerate(r.rungs):
        top, chosen = LADDER.y + i * RUNG, v.name in (r.near, HBM)
        role = "hot" if v.name == HBM else "useful" if v.name == r.near else "idle"
        ink = role if role != "idle" else "muted"
        marks += [
            text(f"rung{i}-name", LADDER.x - 12, top + 18, v.name, anchor="end", bold=chosen),
            text(f"rung{i}-size", 626, top + 18, units.si_bytes(v.bytes_on_h100), "muted", anchor="end"),
            text(f"rung{i}-wait", WIDE, top + 18, units.seconds(v.latency_s), "muted", anchor="end"),
        ]
        if not v.energy_j:
            marks.append(text(f"rung{i}-value", LADDER.x + 8, top + 18, "no figure given", "muted", "small"))
            continue
        words = _picojoules(v.energy_j)
        if v.name != HBM:
            words += f", {units.times(v.times_hbm)} less than HBM"
        y, end = top + 14, x(v.energy_j / 1e-12)
        left = end > LADDER.right - 120
        marks += [
            line(f"rung{i}-line", LADDER.x, y, end, y, role),
            circle(f"rung{i}", end, y, 6, role, f"{v.name}: {_picojoules(v.energy_j)} an access"),
            text(f"rung{i}-value", end - 12 if left else end + 12, y - 6 if left else y + 4, words, ink, "small",
                 "end" if left else "start", bold=True),
        ]  # fmt: skip
    ticks = (0.01, 0.1, 1, 10, 100, 1000)
    return marks + axis_x("energy", x, LADDER.bottom + 4, "", lambda v: f"{units.number(v)} pJ", ticks=ticks)


def _power(r: Result) -> list[dict]:
    """Watts for fetching alone, on the scale of what the whole board may draw."""
    x = linear(0, 1300, POWER.x, POWER.right)
    board = x(BOARD_W)
    marks = [
        text("power-title", 0, POWER.y - 32, f"Power of one GPU's fetching, {units.number(r.accesses_per_s / 1e12)} trillion accesses a second",
             bold=True),
        line("board", board, POWER.y - 6, board, POWER.bottom + 2, "limit", f"an H100 may draw {BOARD_W} W in all"),
        text("board-name", board, POWER.y - 11, f"whole board: {BOARD_W} W", "muted", "small", "middle"),
    ]  # fmt: skip
    moved = f"{units.percent(r.moved_share, 0)} moved"
    rows = (("before", "all from HBM", r.before_w, 0.0), ("after", moved, r.left_in_hbm_w, r.near_w))
    for i, (id, name, far, near) in enumerate(rows):
        top, end = POWER.y + i * 34, x(far + near)
        marks += [
            text(f"{id}-name", POWER.x - 12, top + 19, name, anchor="end"),
            rect(f"{id}-far", POWER.x, top + 2, x(far) - POWER.x, 24, "hot", f"from HBM: {_watts(far)}"),
            text(f"{id}-watts", WIDE, top + 19, _watts(far + near), "ink", anchor="end", bold=True),
        ]
        if near > 0:
            tip = f"from {r.near}: {_watts(near)}"
            marks.append(rect(f"{id}-near", x(far), top + 2, max(1.5, end - x(far)), 24, "useful", tip))
    top = POWER.y + 34
    start, end = x(r.after_w), x(r.before_w)
    if r.saved_w:
        marks.append(
            rect(
                "saved",
                start + 3,
                top + 2,
                max(0, end - start - 3),
                24,
                "idle",
                f"saved: {_watts(r.saved_w)}",
            )
        )
    if end - start > 84:
        marks.append(text("saved-name", (start + end) / 2, top + 19, f"saved {_watts(r.saved_w)}", "useful", "small",
                          "middle", bold=True))  # fmt: skip
    fleet = (
        f"{units.count(r.gpus)} GPUs save {_watts(r.fleet_saved_w)}, as much as {units.count(r.homes)} homes take: "
        f"${units.number(float(f'{r.year_usd:.3g}'))} a year at ${units.number(r.usd_per_kwh)} a kWh."
    )
    return marks + [text("fleet", 0, POWER.bottom + 30, fleet, "ink")]


def _table(r: Result):
    columns = ("level", Column("size on an H100", "B", units.si_bytes), Column("takes", "s", units.seconds),
               Column("energy of an access", "J", lambda v: _picojoules(v) if v else "not given"),
               Column("HBM over it", show=lambda v: units.times(v) if v else "not given"))  # fmt: skip
    return table(columns, [(v.name, v.bytes_on_h100, v.latency_s, v.energy_j, v.times_hbm) for v in r.rungs])


def scene(r: Result, measured: dict | None = None) -> Scene:
    before = figure("all from HBM", r.before_w, _watts, "hot")
    after = figure(f"with {units.percent(r.moved_share, 0)} from {r.near}", r.after_w, _watts)
    saved = figure("saved a GPU", r.saved_w, _watts, "useful")
    fleet = figure(f"saved by {units.count(r.gpus)}", r.fleet_saved_w, _watts, "useful")
    over = r.before_w > BOARD_W
    return Scene(
        summary=f"Fetching all from HBM takes {before.text} a GPU; with {units.percent(r.moved_share, 0)} of the accesses "
        f"in {r.near} it takes {after.text}, which saves {saved.text}, and {fleet.text} over {units.count(r.gpus)} GPUs.",
        takeaway="Fetching from far away is what costs: what stays on the chip is nearly free.",
        marks=_ladder(r) + _power(r),
        figures=(before, after, saved, fleet),
        table=_table(r),
        height=POWER.bottom + 38,
        formula=(
            ("power = accesses a second · mean energy",
             f"{units.si(r.accesses_per_s)} · {_picojoules(r.mean_energy_j)} = {after.text}"),
            ("mean = (1 − moved) · HBM + moved · near",
             f"{units.number(1 - r.moved_share)} · 640 + {units.number(r.moved_share)} · "
             f"{units.number(cost.LEVELS[r.near].energy_j / 1e-12)} pJ = {_picojoules(r.mean_energy_j)}"),
        ),
        warning=f"All from HBM this would take {before.text}, more than the {BOARD_W} W of the whole board: no GPU does "
        "it. The 640 pJ are of an older process; keep the ratio."
        if over
        else "",
    )  # fmt: skip


SIMULATOR = Declaration(
    title="Memory hierarchy and energy",
    question="What does it cost to fetch a number from far away?",
    controls=(
        slider("moved_percent", "Accesses moved on chip", 50, 0, 100, step=5, unit="%",
               help="By fusing and tiling: the same work, fewer trips."),
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
)  # fmt: skip
