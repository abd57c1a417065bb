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
    """Hold where a row's two bars are: its time, and below or next to it the same parts as shares of the step."""

    at: Box  # the times
    thick: float
    shares: Box  # its y and height count from the row's
    pitch: float
    height: float


# as it stands, a row for each cure, and below them the weights alone
PLACES = {
    True: Place(Box(186, 30, 190, 8 * 43 + 10), 22, Box(434, 0, 234, 22), 43, 424),
    False: Place(Box(12, 52, 244, 8 * 70 + 2), 12, Box(12, -24, 324, 20), 70, 650),
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
    if _wide(to):
        marks = [
            text("parts-title", to.at.x, 14, "time of one step", "muted", "small"),
            text(
                "share-title",
                to.shares.x,
                14,
                "enlarged, the largest part in red",
                "muted",
                "small",
            ),
            text("gain-title", WIDE, 14, "faster by", "muted", "small", "end"),
        ]
    else:
        marks = [text("parts-title", 0, 12, "shares of a step (thick), its time (thin)", "muted", "small")]
        marks.append(text("gain-title", NARROW, 12, "faster by", "muted", "small", "end"))
    return marks + axis_x("ms", x, to.at.bottom, show=units.seconds, top=to.at.y, ticks=x.ticks(4))


def _bar(id: str, step: Step, y: float, x: Scale, to: Place) -> list[dict]:
    """Draw the parts of a step end to end in their colours, and as shares of it, where the largest is red."""
    marks, done, share = [], 0.0, linear(0, step.step_s, to.shares.x, to.shares.right)
    for p, (part, time_s) in enumerate(step.parts_s.items()):
        tip = f"{part}: {units.seconds(time_s)} of {units.seconds(step.step_s)}"
        limit = part == step.limit
        for kind, scale, top, high in (("", x, y, to.thick), ("share", share, y + to.shares.y, to.shares.h)):
            left, wide = scale(done), scale(done + time_s) - scale(done)
            role = "hot" if limit and kind else ROLES[part]
            bar = rect(f"{id}-{kind}{p}", left, top, max(0, wide - (1.5 if kind else 0.5)), high, role, tip)
            marks += about("limit", bar) if limit else [bar]
        done += time_s
    return marks


def _row(
    id: str, name: str, step: Step, y: float, to: Place, x: Scale, now: bool, role: str = "ink"
) -> list[dict]:
    """Draw one step with its name, its time, and the names of the parts that have room."""
    marks, done = _bar(id, step, y, x, to), 0.0
    share, low = linear(0, step.step_s, to.shares.x, to.shares.right), y + to.shares.y + to.shares.h / 2 + 4
    for p, (part, time_s) in enumerate(step.parts_s.items()):
        left, wide, limit = share(done), share(done + time_s) - share(done), part == step.limit
        percent = units.percent(time_s / step.step_s, 0)
        options = (f"{part} {percent}", part, SHORT.get(part, part), percent)
        words = next((one for one in options if wide > text_width(one, "small", limit) + 8), "")
        if words:
            on = "hot" if limit else ROLES[part]
            marks.append(
                text(f"{id}-part{p}", left + wide / 2, low, words, "inverse", "small", "middle", limit, on)
            )
        done += time_s
    time, gain = units.seconds(step.step_s), f"{step.gain:.2f}×"
    if _wide(to):
        marks.append(text(f"{id}-time", x(done) + 6, y + 16, time, role, "small", bold=now))
        marks.append(text(f"{id}-name", to.at.x - 8, y + 16, name, role, "small", "end", bold=now))
    else:
        top = y + to.shares.y - 6
        marks.append(text(f"{id}-time", x(done) + 6, y + 11, time, role, "small", bold=now))
        marks.append(text(f"{id}-name", to.at.x, top, name, role, "small", bold=now))
    if step.cured:
        top = y + 16 if _wide(to) else y + to.shares.y - 6
        marks.append(text(f"{id}-gain", _edge(to), top, gain, role, "small", "end", now))
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
    x, start = linear(0, r.steps[0].step_s, to.at.x, to.at.right), to.at.y + (4 if _wide(to) else 2)
    marks, weights, first = _frame(r, to, x), r.cured_s["linear weights"], r.steps[0]
    y = [start + to.pitch * row for row in range(len(r.steps) + 1)]
    if i + 1 < len(r.steps):
        # lies under this bar, comes down with it, and slides on as the next one
        marks += together({"id": f"step{i}-0"}, *_bar(f"step{i + 1}", r.steps[i], y[i], x, to))[1:]
    marks += _row("step0", "as it stands", first, y[0], to, x, i == 0)
    words = f"only {_cure(r, 'linear weights')}"
    marks += _row("alone", words, r.weights_alone, y[-1], to, x, False, "primary")
    marks += _knob(WEIGHT, weights, weights / r.weight_bits, r.weight_bits, y[-1], x, to.thick)
    for row in range(1, i + 1):
        step = r.steps[row]
        words = f"{row}. {_cure(r, step.cured)}"
        drawn = _row(f"step{row}", words, step, y[row], to, x, row == i)
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
                legend=(*((ROLES[part], part) for part in r.steps[0].parts_s), ("hot", "the largest")),
                caption=_caption(r, i),
            )
        )
    return scenes


SIMULATOR = Declaration(
    title="Decode chain",
    question="Each time you make the slowest part faster, which part limits the step next?",
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
