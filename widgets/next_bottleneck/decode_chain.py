"""Show one decode step as a bar of parts. Each cure of the largest part gives a shorter bar with a limit of its own."""

from dataclasses import dataclass

from kernels.machines import machine
from kernels.next_bottleneck import cost
from widgets import units
from widgets.charts import Box, Scale, axis_x, linear, text_width
from widgets.controls import powers_of_two, select, steps
from widgets.declare import Declaration, Prediction, Stepper
from widgets.scene import (
    NARROW,
    WIDE,
    Column,
    Scene,
    about,
    drag,
    figure,
    handle,
    path,
    rect,
    sets,
    table,
    text,
    together,
)

MODELS = {m.name: m for m in (cost.LLAMA_70B, cost.LLAMA_8B)}
GPUS = ("A100", "H100", "H200", "B200")
CURES = {
    "linear weights": "weights in {weight_bits:g} bits",
    "attention": "cache in {kv_bits:g} bits",
    "element-wise": "fused element-wise",
    "all-reduce": "overlapped all-reduce",
    "sampling": "fused sampling",
    "launch gaps": "one CUDA graph",
}
ROLES = {
    "linear weights": "compute",
    "attention": "memory",
    "element-wise": "useful",
    "all-reduce": "network",
    "MoE all-to-all": "network",
    "sampling": "now",
    "launch gaps": "overhead",
}  # of a part that isn't the largest
SHORT = {
    "linear weights": "weights",
    "launch gaps": "gaps",
    "element-wise": "element",
    "all-reduce": "reduce",
}
LARGEST = "the largest part"
PICKS = tuple(
    select(f"cure{i}", f"Cure {i}", LARGEST, [LARGEST, *CURES], more=True) for i in range(1, len(CURES) + 1)
)  # a click on a part says the same
HIDDEN = 0.5  # of the all-reduces that overlap hides
WEIGHT = steps("weight_bits", "Weights, once quantized", 4, (2, 3, 4, 6, 8), unit="bits")
CACHE = steps("kv_bits", "Cache, once quantized", 8, (4, 8), unit="bits")


@dataclass(frozen=True)
class Place:
    """Hold the positions of the rows. A row's words are at the left of its bar, or above the bar."""

    at: Box  # of the bars, to one scale
    thin: float  # the room for a row of a small cure, where 1 is another row's
    pitch: float  # at most
    height: float


# the uncured step, a row for each cure, and below these rows the weights alone
PLACES = {
    True: Place(Box(212, 26, 400, 368), 0.55, 56, 428),
    False: Place(Box(12, 50, 252, 576), 0.7, 74, 662),
}
THICK, SLIM = 28, 10  # bars of a row, and of a cure that brings little
SMALL = 1.05  # times as fast: a cure that brings no more has a slim row, unless it is the last
REACH = 18  # of a knob, to each side


@dataclass(frozen=True)
class Step:
    cured: str  # the part cured last, or '' at the start
    gain: float  # speed-up over the step before
    step_s: float
    parts_s: dict[str, float]
    limit: str
    limit_share: float
    limit_ceiling: float  # speedup if the limit took no time
    tokens_per_s: float
    so_far: float  # how many times as fast as the first step


@dataclass(frozen=True)
class Result:
    model: str
    batch: int
    context: int
    devices: int
    machine: str
    weight_bits: float
    kv_bits: float
    memory_used_bytes: float  # of one GPU, before the cures
    steps: tuple[Step, ...]
    cured_s: dict[str, float]  # of each part, cured
    weights_alone: Step  # the first step, with no cure but this one
    weights_alone_speedup: float
    speedup: float  # of all cures together
    picked: bool  # whether another order than the largest first was chosen


SMALLEST_FIRST = ("sampling", "element-wise", "all-reduce", "attention", "linear weights")


def run(
    batch, context, weight_bits, kv_bits, model, devices, machine_name, cure1, cure2, cure3, cure4, cure5, cure6
) -> Result:  # fmt: skip
    sizes, gpu = MODELS[model], machine(machine_name)
    same = {"batch": batch, "context": context, "devices": devices}
    parts_s = cost.decode_chain(sizes, gpu, **same)
    cached = sizes.cached_per_token * context * batch * 2
    used = (2 * sizes.parameters + cached) / devices
    if used > gpu.memory_bytes:
        raise ValueError(
            f"Memory of a GPU must be at least {units.si_bytes(used)} for these weights and this cache, got "
            f"{units.si_bytes(gpu.memory_bytes)}; take more GPUs, a smaller batch or a shorter context"
        )
    cured_s = cost.decode_chain(
        sizes,
        gpu,
        **same,
        weight_bits=weight_bits,
        kv_bits=kv_bits,
        elementwise_passes=4,
        sampling_kernels=1,
        graphs=True,
    )
    cured_s["all-reduce"] = parts_s["all-reduce"] * (1 - HIDDEN)
    cuts = {name: 1 - cured_s[name] / parts_s[name] for name in parts_s if parts_s[name]}
    chain = _in_turn(parts_s, cuts, (cure1, cure2, cure3, cure4, cure5, cure6))
    before = sum(parts_s.values())
    (alone,) = cost.cure_in_turn(parts_s, {"linear weights": cuts["linear weights"]})
    return Result(
        model,
        batch,
        context,
        devices,
        machine_name,
        weight_bits,
        kv_bits,
        used,
        (
            _step("", 1.0, parts_s, batch, before),
            *(_step(one.part, one.speedup, one.parts_s, batch, before) for one in chain),
        ),
        cured_s,
        _step(alone.part, alone.speedup, alone.parts_s, batch, before),
        alone.speedup,
        before / chain[-1].after_s,
        [one.part for one in chain] != [one.part for one in cost.cure_in_turn(parts_s, cuts)],
    )


def _in_turn(parts_s: dict[str, float], cuts: dict[str, float], picks: tuple[str, ...]) -> list:
    """Cure the picked part, or the largest if none is picked or the pick has had its cure, until no cure is left."""
    chain, left = [], dict(cuts)
    for pick in picks[: len(cuts)]:
        now = chain[-1].parts_s if chain else parts_s
        some = {pick: left[pick]} if pick in left else left
        chain.append(cost.cure_in_turn(now, some)[0])
        del left[chain[-1].part]
    return chain


def _step(cured: str, gain: float, parts_s: dict[str, float], batch: int, before_s: float) -> Step:
    total_s, limit = sum(parts_s.values()), cost.next_bottleneck(parts_s)
    return Step(
        cured, gain, total_s, parts_s, limit.part, limit.share, limit.ceiling, batch / total_s, before_s / total_s
    )  # fmt: skip


def _cure(r: Result, part: str) -> str:
    return CURES[part].format(weight_bits=r.weight_bits, kv_bits=r.kv_bits)


def _wide(to: Place) -> bool:
    return to.at.x > 100


def _frame(to: Place, x: Scale) -> list[dict]:
    words = "time of one step; click a part to cure it next"
    title = text("title", to.at.x if _wide(to) else 0, 12, words, "muted", "small")
    return [title, *axis_x("ms", x, to.at.bottom + 8, show=units.seconds, top=to.at.y, ticks=x.ticks(4))]


def _small(r: Result, row: int) -> bool:
    """Return whether the cure of a row brings little and leaves the limit where it was. The last limit is always named."""
    little = row > 0 and round(r.steps[row].gain, 2) <= SMALL and r.steps[row].limit == r.steps[row - 1].limit
    return little and row < len(r.steps) - 1


def _rows(r: Result, to: Place) -> list[tuple[float, float]]:
    """Return the top and the thickness of each step's bar, and at the end of the one with the weights alone."""
    rooms = [to.thin if _small(r, row) else 1 for row in range(len(r.steps))]
    pitch, y, rows = min(to.pitch, to.at.h / (sum(rooms) + 1)), to.at.y, []
    for row, room in enumerate(rooms):
        rows.append((y, SLIM if _small(r, row) else THICK))
        y += pitch * room
    return [*rows, (to.at.bottom - THICK, THICK)]


def _part(step: Step, part: str, x: Scale) -> tuple[float, float]:
    """Return where a part begins and ends in its step's bar."""
    names = list(step.parts_s)
    before = sum(step.parts_s[one] for one in names[: names.index(part)])
    return x(before), x(before + step.parts_s[part])


def _clicked(r: Result, row: int, marks: list[dict]) -> list[dict]:
    """Let a click on a part of a row, or on its words, cure it next, unless it has had its cure."""
    waiting = {one.cured for one in r.steps[row + 1 :]}
    to = {}
    for p, part in enumerate(r.steps[row].parts_s):
        if part in waiting:
            to |= {f"step{row}-{kind}{p}": {PICKS[row].name: part} for kind in ("", "part")}
    return [sets(to[mark["id"]], mark)[0] if mark["id"] in to else mark for mark in marks]


def _bar(id: str, step: Step, y: float, thick: float, x: Scale, framed: bool = True) -> list[dict]:
    """Draw the parts of a step end to end, each in its colour, and a red frame round the largest."""
    marks = []
    for p, (part, time_s) in enumerate(step.parts_s.items()):
        left, right = _part(step, part, x)
        share = units.percent(time_s / step.step_s, 0)
        tip = f"{part}: {units.seconds(time_s)}, {share} of {units.seconds(step.step_s)}"
        bar = rect(f"{id}-{p}", left, y, max(0, right - left - 0.5), thick, ROLES[part], tip)
        marks += about("limit", bar) if framed and part == step.limit else [bar]
    if not framed:
        return marks
    left, right = _part(step, step.limit, x)
    left, right, top, low = left - 2, right + 1.5, y - 2, y + thick + 2
    corners = [(left, top), (right, top), (right, low), (left, low), (left, top)]
    return marks + about("limit", path(f"{id}-frame", corners, "hot"))


def _way(r: Result, row: int, rows: list[tuple[float, float]], x: Scale) -> dict:
    """Draw the band from the largest part of a step to the largest part of the next one."""
    (a, b), (c, d) = (_part(one, one.limit, x) for one in r.steps[row - 1 : row + 1])
    (above, thick), (below, _) = rows[row - 1 : row + 1]
    start, end, high, low, half = (
        (a + b) / 2,
        (c + d) / 2,
        above + thick + 2,
        below - 2,
        1.4,
    )  # its outline makes it bold
    turn, side = high + min(10, (low - high) / 2), half if end > start else -half
    corners = [
        (start - half, high),
        (start - half, turn + side),
        (end - half, turn + side),
        (end - half, low),
        (end + half, low),
        (end + half, turn - side),
        (start + half, turn - side),
        (start + half, high),
    ]
    return path(f"step{row}-way", corners, "hot", closed=True)


def _words(id: str, step: Step, y: float, x: Scale, kept: tuple[float, float]) -> list[dict]:
    """Write names and shares into the parts that have room, and nothing where a knob may come."""
    marks = []
    for p, (part, time_s) in enumerate(step.parts_s.items()):
        (left, right), limit = _part(step, part, x), part == step.limit
        percent = units.percent(time_s / step.step_s, 0)
        for words in (f"{part} {percent}", percent):
            wide, middle = text_width(words, "small", limit), (left + right) / 2
            free = middle + wide / 2 < kept[0] or middle - wide / 2 > kept[1]
            if right - left > wide + 6 and free:
                look = ("inverse", "small", "middle", limit, ROLES[part])
                marks.append(text(f"{id}-part{p}", middle, y + THICK / 2 + 4, words, *look))
                break
    return marks


def _row(
    id: str,
    name: str,
    step: Step,
    y: float,
    thick: float,
    to: Place,
    x: Scale,
    now: bool,
    pulled: dict | None,
) -> list[dict]:
    """Draw one step with its cure, its time and, large, the name of its largest part."""
    alone, slim, middle = id == "alone", thick < THICK, y + thick / 2 + 4
    kept = (min(pulled["at"]) - REACH, max(pulled["at"]) + REACH) if pulled else (0.0, 0.0)
    marks = _bar(id, step, y, thick, x, not alone)
    if not slim:
        marks += _words(id, step, y, x, kept)
    role = "primary" if alone else "muted" if slim and not now else "ink"
    time, end = units.seconds(step.step_s), max(x(step.step_s) + 8, kept[1] + 2)
    marks.append(text(f"{id}-time", end, middle, time, role, "small" if slim else "body", bold=not slim))
    share = f" {units.percent(step.limit_share, 0)}"
    named = (step.limit if _wide(to) else SHORT.get(step.limit, step.limit)) + share
    if _wide(to):
        low, on = middle if slim or alone else y + 1, ""
        marks.append(text(f"{id}-name", to.at.x - 12, low, name, role, "small", "end", now))
        place = (to.at.x - 12, y + 21)
    else:
        place, on = (NARROW, y - 9), "ground"
        past = sum(_part(step, step.limit, x)) / 2 + 8  # the band that comes from above
        room = NARROW - 8 - (0 if slim else text_width(named, "big", True)) - text_width(name, "small", now)
        left = past if step.cured and not alone and past < room else 0
        marks.append(text(f"{id}-name", left, y - 9, name, role, "small", "start", now, on))
    if not slim and not alone:
        marks += about("limit", text(f"{id}-limit", *place, named, "hot", "big", "end", True, on))
    return marks


def _pull(control, edge_s: float, per_bit_s: float, value: float, x: Scale) -> dict | None:
    """Return how the end of a bar is pulled by the bits of one part, unless no pull would move it."""
    before = edge_s - per_bit_s * value
    pulled = drag(control, "x", lambda bits: x(before + per_bit_s * bits))
    return pulled if max(pulled["at"]) - min(pulled["at"]) > 2 else None


def _knob(control, edge_s: float, pulled: dict | None, y: float, thick: float, x: Scale) -> list[dict]:
    return [handle(f"pull-{control.name}", x(edge_s), y + thick / 2, "primary", pulled)] if pulled else []


def _picture(r: Result, i: int, to: Place) -> list[dict]:
    """Draw the uncured step, the step after each cure so far, and below these the step with the weights cured alone."""
    x = linear(0, r.steps[0].step_s, to.at.x, to.at.right)
    marks, rows, weights_s = _frame(to, x), _rows(r, to), r.cured_s["linear weights"]
    if i + 1 < len(r.steps):
        # lies under this bar, comes down with it, and slides on as the next one
        marks += together(
            {"id": f"step{i}-0"}, *_clicked(r, i + 1, _bar(f"step{i + 1}", r.steps[i], *rows[i], x))
        )[1:]
    for row in range(1, i + 1):
        way = about("limit", _way(r, row, rows, x))
        marks += way if row < i else together({"id": f"step{i}-0"}, *way)[1:]
    marks += _clicked(r, 0, _row("step0", "as it stands", r.steps[0], *rows[0], to, x, i == 0, None))
    words = f"only {_cure(r, 'linear weights')}"
    alone_s = r.weights_alone.step_s
    pulled = _pull(WEIGHT, alone_s, weights_s / r.weight_bits, r.weight_bits, x)
    marks += _row("alone", words, r.weights_alone, *rows[-1], to, x, False, pulled)
    knobs = _knob(WEIGHT, alone_s, pulled, *rows[-1], x)
    for row in range(1, i + 1):
        step, pulled = r.steps[row], None
        if step.cured == "attention":
            pulled = _pull(CACHE, step.step_s, r.cured_s["attention"] / r.kv_bits, r.kv_bits, x)
            knobs += _knob(CACHE, step.step_s, pulled, *rows[row], x)
        words = f"{row}. {_cure(r, step.cured)}"
        drawn = _clicked(r, row, _row(f"step{row}", words, step, *rows[row], to, x, row == i, pulled))
        named = [mark for mark in drawn if mark["t"] == "text"]
        marks += [mark for mark in drawn if mark["t"] != "text"]
        marks += together(drawn[0], *named)[1:]  # a row's words come down with its bar
    return marks + knobs


def _table(r: Result):
    columns = (
        "cured",
        *(Column(part, "s", units.seconds) for part in r.steps[0].parts_s),
        Column("step", "s", units.seconds),
        "limit",
        Column("its share", show=units.percent),
    )
    rows = [(s.cured or "nothing", *s.parts_s.values(), s.step_s, s.limit, s.limit_share) for s in r.steps]
    return table(columns, rows)


def _caption(r: Result, i: int) -> str:
    now = r.steps[i]
    share = units.percent(now.limit_share, 0)
    then = f"the largest part is {now.limit}, {share} of the step"
    if i == 0:
        return f"Profile first: {then}."
    if now.limit in {one.cured for one in r.steps[: i + 1]}:
        then += ", and cured already"
    return f"With {_cure(r, now.cured)}, {then}."


NEXT = {  # part of the chain -> what to do when it is the largest
    "linear weights": "quantize the weights, with a kernel tuned for the format and the GPU",
    "attention": "fuse attention, then shrink the KV cache",
    "element-wise": "fuse the element-wise kernels into their neighbours",
    "all-reduce": "overlap the all-reduce, or split it into reduce-scatter and all-gather",
    "MoE all-to-all": "check the routing balance and where experts live",
    "sampling": "fuse the chain from logits to token",
    "launch gaps": "capture the step in a CUDA graph, or batch more",
}


def _faster(times: float) -> str:
    return f"{units.times(times)} as fast" if times >= 10 else f"{times:.2f}× as fast"


def _moves(r: Result) -> list[str]:
    """Return the largest part of each step, without those that stayed."""
    limits = [step.limit for step in r.steps]
    return [now for before, now in zip([""] + limits, limits, strict=False) if now != before]


def _takeaway(r: Result, i: int) -> str:
    if i == len(r.steps) - 1:
        moves = _moves(r)
        if r.picked:
            return f"In any order the cures end at {units.seconds(r.steps[-1].step_s)}. Largest first gets there sooner."
        if len(moves) == 1:
            return f"No cure moved the limit. From first to last it is {moves[0]}."
        often = {2: "once", 3: "twice"}.get(len(moves), f"{len(moves) - 1} times")
        names = ", ".join(moves) if len(moves) < 5 else ", ".join(SHORT.get(one, one) for one in moves)
        return f"The limit moved {often}: {names}."
    part = r.steps[i].limit
    if part not in {one.cured for one in r.steps[i + 1 :]}:
        return f"The largest part, {part}, has had its cure. The parts left to cure bring less."
    return f"Next: {NEXT[part]}."


def frames(r: Result, measured: dict | None = None, width: int = WIDE) -> list[Scene]:
    scenes, to = [], PLACES[width == WIDE]
    for i, now in enumerate(r.steps):
        step = figure(
            "one step as it stands" if i == 0 else f"one step after {units.counted(i, 'cure')}",
            now.step_s,
            units.seconds,
        )
        share = figure(f"of it is {now.limit}", now.limit_share, units.percent, "hot", "limit")
        faster = figure("as fast as at first", now.so_far, lambda v: f"{v:.2f}×", "useful")
        alone = figure(
            f"with {_cure(r, 'linear weights')} alone",
            r.weights_alone_speedup,
            _faster,
            "primary",
            "weight_bits",
        )
        formula = (
            "ceiling = 1 / (1 − {limit:share})",
            f"1 / (1 − {{limit:{units.number(now.limit_share)}}}) = {now.limit_ceiling:.2f}",
        )
        scenes.append(
            Scene(
                summary=f"{r.model}, batch {r.batch}, on {r.devices} {r.machine}: after {units.counted(i, 'cure')} a step takes "
                f"{step.text}, {faster.text} as fast as at first, and {units.count(now.tokens_per_s)} tokens a second; {now.limit} is "
                f"{share.text} of it, so if it took no time the step would be {_faster(now.limit_ceiling)}. With {r.weight_bits:g}-bit weights and nothing else the first step is {alone.text}.",
                takeaway=_takeaway(r, i),
                marks=_picture(r, i, to),
                figures=(step, faster, share, alone),
                table=_table(r),
                height=to.height,
                width=width,
                formula=(formula,),
                legend=(
                    *((ROLES[part], part) for part in r.steps[0].parts_s),
                    ("hot line", "the largest part"),
                ),
                caption=_caption(r, i),
            )
        )
    return scenes


SIMULATOR = Declaration(
    title="Decode chain",
    question="Cure one part of a step. What limits it next?",
    controls=(
        powers_of_two("batch", "Requests in the batch", 32, 1, 128),
        powers_of_two("context", "Tokens of context", 4096, 256, 32768),
        WEIGHT,
        CACHE,
        select("model", "Model", "Llama-3-70B", list(MODELS), more=True),
        powers_of_two("devices", "GPUs (tensor parallel)", 8, 1, 8, more=True),
        select("machine_name", "GPU", "H100", list(GPUS), more=True),
        *PICKS,
    ),
    presets={
        "70B, 32 requests": {},
        "One request": {"batch": 1},
        "Long contexts": {"context": 32768},
        "8B on one GPU": {"model": "Llama-3-8B", "devices": 1},
        "Smallest first": dict(zip((pick.name for pick in PICKS), SMALLEST_FIRST, strict=False)),
    },
    run=run,
    stepper=Stepper("cure", frames, lambda r: len(r.steps) - 1),
    prediction=Prediction(
        "A 70B model decodes 32 requests on 8 H100, launched kernel by kernel, in 16 bits. With weights of 4 bits, "
        "a quarter of the bytes, and nothing else changed: how many times faster is the step?",
        "weights_alone_speedup",
        "times faster",
    ),
    source="Beyond attention; Performance Engineering",
)
