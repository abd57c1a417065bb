"""Draw measurements next to their bounds, both a learner's own Record and recorded runs of the course's kernels.

Both come as plain data and are drawn in the simulators' look, light and dark, with a table.
"""

import json
from dataclasses import dataclass, replace
from importlib.util import find_spec
from math import inf, isfinite
from pathlib import Path
from uuid import uuid4

from kernels.machines import ISSUE, MACHINES, MATRIX, MEMORY, Machine, times
from widgets import static, units
from widgets.charts import Box, Part, Scale, axis_x, bars_across, linear, wrap
from widgets.plots import ROOF_HEIGHT, Point, ranges, roofline
from widgets.scene import NARROW, Column, Scene, figure, line, rect, table, text

KERNELS = Path(find_spec("kernels").origin).parent
PITCH, LINE = 38, 16  # heights of a row of a recorded run, and of a line of words


@dataclass(frozen=True)
class Plot:
    """Hold a picture of measurements for a notebook's output. Without a scene, a sentence says why there is none."""

    title: str
    question: str
    scene: Scene | None
    sentence: str = ""
    narrow: Scene | None = None  # the same for a phone

    def __repr__(self) -> str:
        return f"{self.scene.summary} {self.scene.takeaway}" if self.scene else self.sentence

    def _repr_html_(self) -> str:
        if self.scene is None:
            return f"<p>{static.escape(self.sentence)}</p>"
        return static.page(self, self.scene, f"tbt-{uuid4().hex[:8]}", narrow=self.narrow)


def beside_bound(record: dict | None, machine: str = "H200", dtype: str = "bf16") -> Plot:
    """Draw the newest Record of a kernel question, as its time under the roof or, without a GPU, as its counted bytes.

    `machine` and `dtype` name the roof that counted bytes are held against.
    """
    facts = [part["facts"] for part in (record or {}).get("parts", ())]
    timed = next((f for f in facts if "bar_seconds" in f and "flops" in f), None)
    if timed:
        return Plot("Your kernel, timed", "How near is it to what nothing can beat?", _timed(timed, dtype))
    counted = next((f for f in facts if f.get("launches") and f.get("budgets")), None)
    if counted:
        budgets = [row for f in facts for row in f.get("budgets", ()) if _in_bytes(row)]
        scene = _counted(counted, budgets, MACHINES[machine], dtype)
        return Plot("Your kernel, counted", "How many bytes did it move, and how many had to move?", scene)
    return Plot("", "", None, "No measurement yet. The first one comes with a check whose values are right.")


BYTES = ("requested", "dedup", "sectors", "wave", "unique")  # the counts that are bytes


def _in_bytes(row: dict) -> bool:
    """Return whether a budget is one of bytes with an upper end, and so fits on a scale with others."""
    return row["count"] in BYTES and isfinite(row.get("most", inf))


def _roofs(machine: Machine, *dtypes: str) -> list[tuple[str, float]]:
    return [(f"{machine.name} {d}: {units.si(machine.rate(d), 'FLOP/s')}", machine.rate(d)) for d in dtypes]


def _timed(facts: dict, dtype: str) -> Scene:
    """Draw yours and the bar under the roof of this GPU, and the three times as bars."""
    known = next((m for m in MACHINES.values() if m.name in facts["gpu"]), None)
    intensity = facts["flops"] / facts["bytes"]
    contenders = [("yours", facts["seconds"], "measured"), (facts["bar"], facts["bar_seconds"], "secondary")]
    marks, top = [], 0
    if known:
        points = [Point(name, intensity, facts["flops"] / s, role) for name, s, role in contenders]
        marks = roofline(known.bandwidth, _roofs(known, dtype), points)
        top = ROOF_HEIGHT
        contenders.append(
            (f"{known.name}'s limit", known.time(facts["flops"], facts["bytes"], dtype), "limit")
        )
    scale = linear(0, 1.1 * max(s for _, s, _ in contenders), 150, 600)
    rows = [(n, [Part(s, r, f"{n}: {units.seconds(s)}")], units.seconds(s)) for n, s, r in contenders]
    marks += bars_across("time", rows, Box(150, top + 8, 450, 34 * len(rows)), scale)
    mine = figure("your time", facts["seconds"], units.seconds, "measured")
    exact = units.fixed(3)
    ratio = figure(f"times {facts['bar']}'s time", facts["ratio"], lambda v: f"{exact(v)}×")
    return Scene(
        summary=f"On {facts['gpu']} your kernel took {mine.text}, {ratio.text} the time of {facts['bar']} "
        f"(99% interval {exact(facts['low'])} to {exact(facts['high'])}).",
        takeaway="No kernel can win more than the distance to the roof.",
        marks=marks,
        figures=(mine, ratio),
        table=table(
            (
                "kernel",
                Column("time", "s", units.seconds),
                Column("rate", "FLOP/s", lambda v: units.si(v, "FLOP/s")),
            ),
            [(n, s, facts["flops"] / s) for n, s, _ in contenders],
        ),
        height=top + 8 + 34 * len(rows) + 8,
    )


def _counted(facts: dict, budgets: list[dict], machine: Machine, dtype: str) -> Scene:
    """Draw loads as three intensities under a machine's roof, and every budget with the bytes moved."""
    flops = facts["work"]["useful_flops"]  # twice the work deserves no credit
    loads = {
        kind: sum(
            t["load"][kind] for launch in facts["launches"] for t in launch["tensors"].values() if "load" in t
        )
        for kind in ("requested", "wave", "unique")
    }
    names = {"requested": "every load from HBM", "wave": "a wave shares the L2", "unique": "each byte once"}
    roles = {"requested": "measured", "wave": "primary", "unique": "secondary"}
    marks, top = [], 0
    if flops:
        at = {kind: flops / loads[kind] for kind in names}
        points = [Point(names[k], at[k], machine.attainable(at[k], dtype), roles[k]) for k in names]
        marks, top = roofline(machine.bandwidth, _roofs(machine, dtype), points), ROOF_HEIGHT
    rows = [(row["what"], row.get("least", 0.0), row["spent"], row["most"]) for row in budgets]
    marks += ranges("budget", rows, Box(236, top + 24, 316, 28 * len(rows)))
    asked = figure("bytes loaded", loads["requested"], units.si_bytes, "measured")
    shared = figure("unique in a wave", loads["wave"], units.si_bytes, "primary")
    unique = figure("each byte once", loads["unique"], units.si_bytes, "secondary")
    return Scene(
        summary=f"Your kernel asked for {asked.text}. Its waves hold {shared.text} of unique bytes, and each byte once "
        f"makes {unique.text}.",
        takeaway=_slowest(facts["launches"], machine) or _where(flops, loads, machine, dtype),
        marks=marks,
        figures=(asked, shared, unique),
        table=table(
            ("bytes", *(Column(name, "B", units.si_bytes) for name in ("at least", "moved", "at most"))), rows
        ),
        height=top + 24 + 28 * len(rows) + 44,
    )


def _slowest(launches: list[dict], machine: Machine) -> str:
    """Name what starting operations takes where neither bytes nor dots take as long."""
    if not all("address" in launch.get("operations", ()) for launch in launches):
        return ""  # a record of before addresses were counted apart
    taken = times(launches, machine)
    if taken[ISSUE] <= max(taken[MEMORY], taken[MATRIX]):
        return ""
    issue, memory = (units.seconds(taken[limit]) for limit in (ISSUE, MEMORY))
    return (
        f"On {machine.name} these operations take {issue} to start and the bytes {memory}, so arithmetic outside "
        "tl.dot would be the limit."
    )


def _where(flops: float, loads: dict, machine: Machine, dtype: str) -> str:
    """Say on which side of the ridge the loads are, first without an L2 and then with one."""
    if not flops:
        return "No kernel can move less than each byte once. The bytes above this floor are yours to win."
    ridge = machine.ridge(dtype)
    alone, shared = (flops / loads[kind] for kind in ("requested", "wave"))
    need = f"{machine.name} needs {units.number(ridge)} FLOP per byte"
    if alone >= ridge:
        return f"{need}, and your tile alone gives {units.number(alone)}."
    if shared >= ridge:
        return f"{need}. Your tile alone gives {units.number(alone)}, your waves give {units.number(shared)}."
    return f"{need}. Even your waves give only {units.number(shared)}, so memory would be the limit."


def recorded(slug: str, machine: str = "h200") -> Plot:
    """Draw what the course's kernels of a topic reached, with the bound and the best peer of the same run."""
    path = KERNELS / slug / "results" / f"{machine}.json"
    if not path.exists():
        sentence = (
            f"No measurement of these kernels on {machine} is recorded in this copy of the course. "
            f"On a machine with an NVIDIA GPU, python -m kernels.bench {slug} measures them."
        )
        return Plot("", "", None, sentence)
    run = json.loads(path.read_text(encoding="utf-8"))
    rows = [row for row in run["rows"] if "us" in row]
    if not rows:
        return Plot("", "", None, f"The run recorded on {machine} holds no kernel that was right and timed.")
    title = f"{run['machine']['gpu']}, {run['date']}"
    scene = _recorded(run, rows)
    question = "How near do the tuned kernels come to the limit?"
    return Plot(title, question, scene, narrow=_for_a_phone(scene, rows))


def _best_peer(row: dict) -> tuple[str, dict] | None:
    timed = [(peer["us"], name) for name, peer in row["peers"].items() if "us" in peer]
    return (min(timed)[1], row["peers"][min(timed)[1]]) if timed else None


def _farthest(rows: list[dict]) -> float:
    """Return the largest share that is drawn, because a peer can pass a measured limit."""
    return max(
        row["limit_us"] / us for row in rows for us in (row["us"], (_best_peer(row) or ("", row))[1]["us"])
    )


def _label(row: dict) -> str:
    return f"{row['op'].replace('_', ' ')}, {row['case']}"


def _whole_percent(share: float) -> str:
    return units.percent(share, 0)


def _legend(y: float) -> list[dict]:
    return [
        rect("legend-ours", 40, y - 9, 14, 10, "primary"),
        text("legend-ours-name", 60, y, "the course's kernel", "primary", "small"),
        line("legend-peer", 200, y - 11, 200, y + 3, "hot"),
        text("legend-peer-name", 212, y, "the fastest peer of the same run", "hot", "small"),
    ]


def _bar(i: int, row: dict, scale: Scale, y: float) -> tuple[list[dict], str]:
    """Draw a row's share of its limit with its best peer's as a stroke across, and both times in words."""
    tip, said = f"{_label(row)}: {units.percent(row['share'])} of the limit", units.seconds(row["us"] / 1e6)
    marks = [rect(f"bar{i}", scale.start, y, scale(row["share"]) - scale.start, 10, "primary", tip)]
    if best := _best_peer(row):
        name, peer = best
        share, theirs = row["limit_us"] / peer["us"], units.seconds(peer["us"] / 1e6)
        at = scale(share)
        marks.append(line(f"peer{i}", at, y - 2, at, y + 12, "hot", f"{name}: {units.percent(share)}"))
        said = (
            f"{said}, {name.replace('FlashAttention ', 'FA')} {theirs}"  # the stroke's tip has the whole name
        )
    return marks, said


def _share_bars(rows: list[dict], scale: Scale, top: float) -> list[dict]:
    """Draw two lines a row, its name and time above its bar."""
    marks = []
    for i, row in enumerate(rows):
        y = top + PITCH * i
        drawn, said = _bar(i, row, scale, y + 18)
        marks += [
            *drawn,
            text(f"row{i}", scale.start, y + 12, f"{i + 1}  {_label(row)}", "ink", "small"),
            text(f"time{i}", scale(1) - 8, y + 12, said, "muted", "small", "end"),
        ]
    return marks


def _narrow_bars(rows: list[dict], scale: Scale, y: float) -> tuple[list[dict], float]:
    """Draw name, time and bar one below the other, in all the lines they need, and return where the last line ends."""
    marks = []
    for i, row in enumerate(rows):
        name = wrap(f"{i + 1}  {_label(row)}", scale.end - scale.start)
        for k, words in enumerate(name):
            marks.append(text(f"row{i}" + (f"-{k}" if k else ""), scale.start, y + 12, words, "ink", "small"))
            y += LINE
        drawn, said = _bar(i, row, scale, y + LINE + 4)
        marks += [*drawn, text(f"time{i}", scale.start, y + 12, said, "muted", "small")]
        y += LINE + 28
    return marks, y


def _for_a_phone(scene: Scene, rows: list[dict]) -> Scene:
    """Draw the bars alone, in letters that a phone can show. The words around the picture stay the same."""
    scale, top = linear(0, max(1.05, 1.01 * _farthest(rows)), 12, 328), 56
    bars, end = _narrow_bars(rows, scale, top)
    marks = [
        rect("legend-ours", 12, 7, 14, 10, "primary"),
        text("legend-ours-name", 32, 16, "the course's kernel", "primary", "small"),
        line("legend-peer", 19, 25, 19, 39, "hot"),
        text("legend-peer-name", 32, 36, "the fastest peer of the same run", "hot", "small"),
        *bars,
        *axis_x("shares", scale, end, "share of the limit", _whole_percent, ticks=(0, 0.5, 1)),
    ]
    return replace(scene, marks=marks, width=NARROW, height=end + 42)


def _under_roofs(ceilings: dict, rows: list[dict]) -> list[dict]:
    """Draw every row that does arithmetic as a point, and name the nearest to its limit and the farthest."""
    rows = [(i, row) for i, row in enumerate(rows, 1) if row["tflop_s"] > 0]
    if not rows:
        return []
    used = [d for d in ("bf16", "fp16", "fp8") if d in ceilings and any(row["dtype"] == d for _, row in rows)]
    roofs = [(f"{d} measured: {units.si(ceilings[d], 'FLOP/s')}", ceilings[d]) for d in used]
    shares = [row["share"] for _, row in rows]
    ends = {shares.index(max(shares)): "useful", shares.index(min(shares)): "waste"}
    points = []
    for k, (i, row) in enumerate(rows):
        label = f"row {i}: {units.percent(row['share'], 0)} of its limit" if k in ends else ""
        at = (row["tflop_s"] / row["tb_s"], row["tflop_s"] * 1e12)
        points.append(Point(str(i), *at, ends.get(k, "primary"), f"row {i}, {_label(row)}", label))
    return roofline(ceilings["copy"], roofs, points, crowd=True)


def _recorded(run: dict, rows: list[dict]) -> Scene:
    """Draw every row under the measured roofs, and as a share of its limit."""
    marks, ceilings = _under_roofs(run["ceilings"], rows), run["ceilings"]
    top = (ROOF_HEIGHT if marks else 0) + 50
    end, scale = top + PITCH * len(rows), linear(0, max(1.05, 1.01 * _farthest(rows)), 40, 680)
    marks += _legend(top - 30) + _share_bars(rows, scale, top)
    marks += axis_x("shares", scale, end, "share of the limit", _whole_percent, ticks=(0, 0.25, 0.5, 0.75, 1))
    marks.append(line("all", scale(1), end, scale(1), top, "limit", "the limit"))
    best = max(rows, key=lambda row: row["share"])
    copy = figure("copy bandwidth, measured", ceilings["copy"], lambda v: units.si(v, "B/s"))
    nearest = figure(_label(best), best["share"], units.percent, "primary")
    columns = (
        "number",
        "case",
        "µs",
        Column("of the limit", show=units.percent),
        "TB/s",
        "TFLOP/s",
        "best peer",
        "its µs",
    )
    cells = [
        (
            i,
            _label(r),
            r["us"],
            r["share"],
            r["tb_s"],
            r["tflop_s"],
            *((p[0], p[1]["us"]) if (p := _best_peer(r)) else ("none", "")),
        )
        for i, r in enumerate(rows, 1)
    ]
    return Scene(
        summary=f"Measured on {run['machine']['gpu']} on {run['date']}, where a copy reaches {copy.text}: "
        f"{_label(best)} comes to {nearest.text} of its limit.",
        takeaway="The gap between a bar and its limit is left to win.",
        marks=marks,
        figures=(copy, nearest),
        table=table(columns, cells),
        height=end + 42,
    )
