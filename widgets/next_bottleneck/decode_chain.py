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
    line,
    path,
    rect,
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
HIDDEN = 0.5  # of the all-reduces that overlap hides
WEIGHT = steps("weight_bits", "Weights, once quantized", 4, (2, 3, 4, 6, 8), unit="bits")
CACHE = steps("kv_bits", "Cache, once quantized", 8, (4, 8), unit="bits")


@dataclass(frozen=True)
class Place:
    """Hold where a row's two bars are: its time, and above it the same parts as shares of the step."""

    at: Box  # the times
    thick: float
    shares: Box  # its y and height count from the row's
    pitch: float
    height: float


# as it stands, a row for each cure, and below them the weights alone
PLACES = {
    True: Place(Box(186, 49, 456, 8 * 46 - 9), 8, Box(186, -24, 470, 20), 46, 428),
    False: Place(Box(12, 64, 244, 8 * 70 + 2), 12, Box(12, -24, 324, 20), 70, 662),
}


@dataclass(frozen=True)
class Step:
    cured: str  # the part cured last, or '' at the start
    gain: float  # how many times as fast as the step before
    step_s: float
    parts_s: dict[str, float]
    limit: str
    limit_share: float
    limit_ceiling: float  # speedup if the limit took no time
    tokens_per_s: float


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


def run(batch, context, weight_bits, kv_bits, model, devices, machine_name) -> Result:
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
    chain = cost.cure_in_turn(parts_s, cuts)
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
            _step("", 1.0, parts_s, batch),
            *(_step(one.part, one.speedup, one.parts_s, batch) for one in chain),
        ),
        cured_s,
        _step(alone.part, alone.speedup, alone.parts_s, batch),
        alone.speedup,
        before / chain[-1].after_s,
    )


def _step(cured: str, gain: float, parts_s: dict[str, float], batch: int) -> Step:
    total_s, limit = sum(parts_s.values()), cost.next_bottleneck(parts_s)
    return Step(cured, gain, total_s, parts_s, limit.part, limit.share, limit.ceiling, batch / total_s)


def _cure(r: Result, part: str) -> str:
    return CURES[part].format(weight_bits=r.weight_bits, kv_bits=r.kv_bits)


def _edge(to: Place) -> int:
    """The right edge of the picture."""
    return WIDE if _wide(to) else NARROW


def _wide(to: Place) -> bool:
    return to.at.x > 100


def _frame(r: Result, to: Place, x: Scale) -> list[dict]:
    words = "shares of a step (thick; ✓ has had its cure), and its time (thin)"
    if not _wide(to):
        words = "shares (✓ cured), and time (thin)"
    marks = [
        text("parts-title", to.at.x if _wide(to) else 0, 14, words, "muted", "small"),
        text("gain-title", _edge(to), 14, "faster by", "muted", "small", "end"),
    ]
    return marks + axis_x("ms", x, to.at.bottom, show=units.seconds, top=to.at.y, ticks=x.ticks(4))


def _share(step: Step, part: str, to: Place) -> tuple[float, float]:
    """Return where a part begins and ends in the bar of shares."""
    names = list(step.parts_s)
    before = sum(step.parts_s[one] for one in names[: names.index(part)])
    scale = linear(0, step.step_s, to.shares.x, to.shares.right)
    return scale(before), scale(before + step.parts_s[part])


def _bar(id: str, step: Step, y: float, x: Scale, to: Place) -> list[dict]:
    """Draw the parts of a step end to end in their colours, and as shares of it, where the largest has a red frame."""
    marks, done = [], 0.0
    for p, (part, time_s) in enumerate(step.parts_s.items()):
        tip = f"{part}: {units.seconds(time_s)} of {units.seconds(step.step_s)}"
        left, right = _share(step, part, to)
        bars = (
            rect(
                f"{id}-{p}", x(done), y, max(0, x(done + time_s) - x(done) - 0.5), to.thick, ROLES[part], tip
            ),
            rect(
                f"{id}-share{p}",
                left,
                y + to.shares.y,
                max(0, right - left - 1.5),
                to.shares.h,
                ROLES[part],
                tip,
            ),
        )
        marks += about("limit", *bars) if part == step.limit else bars
        done += time_s
    left, right = _share(step, step.limit, to)
    left, right, top = left - 2, right + 0.5, y + to.shares.y - 2
    low = top + to.shares.h + 4
    corners = [(left, top), (right, top), (right, low), (left, low), (left, top)]
    return marks + about("limit", path(f"{id}-frame", corners, "hot"))


def _way(r: Result, row: int, y: list[float], to: Place) -> dict:
    """Draw the line from the largest part of a step to the largest part of the next one."""
    (a, b), (c, d) = (_share(one, one.limit, to) for one in r.steps[row - 1 : row + 1])
    high, low = y[row - 1] + to.shares.y + to.shares.h + 2, y[row] + to.shares.y - 2
    return line(f"step{row}-way", (a + b) / 2, high, (c + d) / 2, low, "hot")


def _row(
    id: str, name: str, step: Step, y: float, to: Place, x: Scale, now: bool, cured: set, role: str = "ink"
) -> list[dict]:
    """Draw one step with its name, its time, and the names of the parts that have room."""
    marks, low = _bar(id, step, y, x, to), y + to.shares.y + to.shares.h / 2 + 4
    for p, (part, time_s) in enumerate(step.parts_s.items()):
        (left, right), limit = _share(step, part, to), part == step.limit
        percent, had = units.percent(time_s / step.step_s, 0), "✓ " * (part in cured)
        options = (f"{had}{part} {percent}", f"{had}{part}", had + SHORT.get(part, part), had + percent, had)
        words = next((one for one in options if right - left > text_width(one, "small", limit) + 8), "")
        if words:
            middle = (left + right) / 2 - 0.5
            marks.append(
                text(
                    f"{id}-part{p}",
                    middle,
                    low,
                    words.strip(),
                    "inverse",
                    "small",
                    "middle",
                    limit,
                    ROLES[part],
                )
            )
    time, top = units.seconds(step.step_s), low if _wide(to) else y + to.shares.y - 7
    below, over = y + to.thick / 2 + 4, "ground"  # the way of the largest part passes under the words
    marks.append(text(f"{id}-time", x(step.step_s) + 6, below, time, role, "small", bold=now, on=over))
    at, anchor = (to.at.x - 10, "end") if _wide(to) else (to.at.x, "start")
    marks.append(text(f"{id}-name", at, top, name, role, "small", anchor, now, over))
    if step.cured:
        marks.append(text(f"{id}-gain", _edge(to), top, f"{step.gain:.2f}×", role, "small", "end", now, over))
    return marks


def _knob(
    control, edge_s: float, per_bit_s: float, value: float, y: float, x: Scale, thick: float
) -> list[dict]:
    """Hang a knob under the end of a part whose cure has a size, unless no pull would move it."""
    at, before = x(edge_s), edge_s - per_bit_s * value
    place = drag(control, "x", lambda bits: x(before + per_bit_s * bits))
    if max(place["at"]) - min(place["at"]) <= 2:
        return []
    return [
        line(f"pull-{control.name}-line", at, y + thick, at, y + thick + 10, "primary"),
        handle(f"pull-{control.name}", at, y + thick + 10, "primary", place),
    ]


def _picture(r: Result, i: int, to: Place) -> list[dict]:
    """Draw the step as it stands, after each cure so far, and below with the weights cured alone."""
    x = linear(0, r.steps[0].step_s, to.at.x, to.at.right)
    marks, weights, first = _frame(r, to, x), r.cured_s["linear weights"], r.steps[0]
    y = [to.at.y + to.pitch * row for row in range(len(r.steps) + 1)]
    ways = {row: about("limit", _way(r, row, y, to))[0] for row in range(1, i + 1)}
    if i + 1 < len(r.steps):
        # lies under this bar, comes down with it, and slides on as the next one
        marks += together({"id": f"step{i}-0"}, *_bar(f"step{i + 1}", r.steps[i], y[i], x, to))[1:]
    marks += [ways[row] for row in ways if row < i]  # under the words that they pass
    if ways:
        marks += together({"id": f"step{i}-0"}, ways[i])[1:]
    marks += _row("step0", "as it stands", first, y[0], to, x, i == 0, set())
    words = f"only {_cure(r, 'linear weights')}"
    marks += _row("alone", words, r.weights_alone, y[-1], to, x, False, {"linear weights"}, "primary")
    marks += _knob(WEIGHT, weights, weights / r.weight_bits, r.weight_bits, y[-1], x, to.thick)
    for row in range(1, i + 1):
        step, cured = r.steps[row], {one.cured for one in r.steps[: row + 1]}
        words = f"{row}. {_cure(r, step.cured)}"
        drawn = _row(f"step{row}", words, step, y[row], to, x, row == i, cured)
        named = [mark for mark in drawn if mark["t"] == "text"]
        marks += [mark for mark in drawn if mark["t"] != "text"]
        marks += together(drawn[0], *named)[1:]  # a row's words come down with its bar
        if step.cured == "attention":
            edge, attention = (
                step.parts_s["linear weights"] + step.parts_s["attention"],
                r.cured_s["attention"],
            )
            marks += _knob(CACHE, edge, attention / r.kv_bits, r.kv_bits, y[row], x, to.thick)
    return marks


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
    return f"{times:.2f}× as fast"


def _moves(r: Result) -> list[str]:
    """Return the largest part of each step, without those that stayed."""
    limits = [step.limit for step in r.steps]
    return [now for before, now in zip([""] + limits, limits, strict=False) if now != before]


def _takeaway(r: Result, i: int) -> str:
    if i == len(r.steps) - 1:
        moves = _moves(r)
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
        ceiling = figure("if that part took no time", now.limit_ceiling, _faster, "hot")
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
                f"{step.text}, {units.count(now.tokens_per_s)} tokens a second; {now.limit} is {share.text} of it, so if it took "
                f"no time the step would be {ceiling.text}. With {r.weight_bits:g}-bit weights and nothing else the first step is {alone.text}.",
                takeaway=_takeaway(r, i),
                marks=_picture(r, i, to),
                figures=(step, share, ceiling, alone),
                table=_table(r),
                height=to.height,
                width=width,
                formula=(formula,),
                legend=(*((ROLES[part], part) for part in r.steps[0].parts_s), ("hot line", "the largest")),
                caption=_caption(r, i),
            )
        )
    return scenes


SIMULATOR = Declaration(
    title="Decode chain",
    question="Cure the largest part that still has a cure. Which one limits the step next?",
    controls=(
        powers_of_two("batch", "Requests in the batch", 32, 1, 128),
        powers_of_two("context", "Tokens of context", 4096, 256, 32768),
        WEIGHT,
        CACHE,
        select("model", "Model", "Llama-3-70B", list(MODELS), more=True),
        powers_of_two("devices", "GPUs (tensor parallel)", 8, 1, 8, more=True),
        select("machine_name", "GPU", "H100", list(GPUS), more=True),
    ),
    presets={
        "70B, 32 requests": {},
        "One request": {"batch": 1},
        "Long contexts": {"context": 32768},
        "8B on one GPU": {"model": "Llama-3-8B", "devices": 1},
        "Two bits": {"weight_bits": 2},
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
