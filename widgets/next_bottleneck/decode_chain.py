"""Show one decode step as a chain of parts. Cure the largest, and the next becomes the limit."""

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
)

MODELS = {m.name: m for m in (cost.LLAMA_70B, cost.LLAMA_8B)}
GPUS = ("A100", "H100", "H200", "B200")
ROLES = {
    "linear weights": "memory",
    "attention": "compute",
    "element-wise": "useful",
    "all-reduce": "network",
    "sampling": "useful",
    "launch gaps": "overhead",
}
CURES = {
    "linear weights": "weights in {weight_bits:g} bits",
    "attention": "cache in {kv_bits:g} bits",
    "element-wise": "fused: 4 passes, not 12",
    "all-reduce": "half of it overlapped",
    "sampling": "one fused kernel",
    "launch gaps": "one graph",
}
HIDDEN = 0.5  # of the all-reduces that overlap hides
WEIGHT = steps("weight_bits", "Weights, once quantized", 4, (2, 3, 4, 6, 8), unit="bits")
CACHE = steps("kv_bits", "Cache, once quantized", 8, (4, 8), unit="bits")
KNOB = 14  # more room under a part whose cure is pulled
# (the parts of one step, the step after each cure, height); both panels have one scale, and so one width
PLACES = {
    True: (Box(144, 28, 464, 6 * 28 + 2 * KNOB), Box(144, 246, 464, 7 * 21), 424),
    False: (Box(8, 42, 244, 6 * 44 + 2 * KNOB), Box(8, 364, 244, 7 * 36), 646),
}


@dataclass(frozen=True)
class Step:
    cured: str  # the part cured last, or '' at the start
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
    alone: dict[str, float]  # speedup of the whole step if this part alone is cured
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
    found = [("", parts_s), *((one.part, one.parts_s) for one in chain)]
    before = sum(parts_s.values())
    alone = {name: before / (before - parts_s[name] * share) for name, share in cuts.items()}
    return Result(
        model,
        batch,
        context,
        devices,
        machine_name,
        weight_bits,
        kv_bits,
        used,
        tuple(_step(name, now, batch) for name, now in found),
        cured_s,
        alone,
        alone["linear weights"],
        before / chain[-1].after_s,
    )


def _step(cured: str, parts_s: dict[str, float], batch: int) -> Step:
    total_s, limit = sum(parts_s.values()), cost.next_bottleneck(parts_s)
    return Step(cured, total_s, parts_s, limit.part, limit.share, limit.ceiling, batch / total_s)


def _cure(r: Result, part: str) -> str:
    return CURES[part].format(weight_bits=r.weight_bits, kv_bits=r.kv_bits)


def _outline(id: str, left: float, right: float, top: float, low: float) -> dict:
    """Draw a frame around the limit, because every part keeps its colour in all rows."""
    corners = [(left, top), (right, top), (right, low), (left, low), (left, top)]
    return path(id, [(x + (x == right) - (x == left), y) for x, y in corners], "hot")


def _wide(at: Box) -> bool:
    return at.x > 100


def _edge(at: Box) -> int:
    """The right edge of the picture."""
    return WIDE if _wide(at) else NARROW


def _scale(r: Result, at: Box) -> Scale:
    return linear(0, r.steps[0].step_s, at.x, at.right)


CURED_BY = {"linear weights": WEIGHT, "attention": CACHE}  # the parts whose cure has a size


def _axis(r: Result, parts_at: Box, steps_at: Box) -> list[dict]:
    """One time axis for both panels."""
    return axis_x("ms", _scale(r, steps_at), steps_at.bottom + 4, show=units.seconds, top=parts_at.y)


def _heads(at: Box) -> list[dict]:
    if _wide(at):
        return [
            text("parts-title", at.x, 16, "parts of one step; outlined: before its cure", "muted", "small"),
            text("alone-title", WIDE, 16, "whole step, this cure alone", "muted", "small", "end"),
        ]
    return [
        text("parts-title", at.x, 16, "parts of one step", "muted", "small"),
        text("parts-title-2", at.x, 31, "outlined: before its cure", "muted", "small"),
        text("alone-title", NARROW, 16, "whole step,", "muted", "small", "end"),
        text("alone-title-2", NARROW, 31, "its cure alone", "muted", "small", "end"),
    ]


def _parts(r: Result, i: int, at: Box) -> list[dict]:
    """Draw the parts of the step now, over their first times. A square before each gives its colour in all rows."""
    first, now, x = r.steps[0], r.steps[i], _scale(r, at)
    done = {one.cured for one in r.steps[1 : i + 1]}
    marks, y, pitch = _heads(at), at.y + (0 if _wide(at) else 18), (at.h - 2 * KNOB) / 6
    for row, (part, at_first) in enumerate(first.parts_s.items()):
        time_s = now.parts_s[part]
        tip = f"{part}: {units.seconds(time_s)}, {units.seconds(at_first)} at first"
        limit, high = part == now.limit, 13 if _wide(at) else 12
        words = units.seconds(time_s)
        if part in done:
            words += f" · {_cure(r, part)}"
        elif limit:
            words += " · the limit now"
        end = x(time_s) + 8
        if end + text_width(words, bold=limit) > x(at_first):
            end = x(at_first) + 8
        ink = "hot" if limit else "ink"
        if _wide(at):
            names = [rect(f"part{row}-key", at.x - 16, y + 2, 10, 10, ROLES[part]),
                     text(f"part{row}-name", at.x - 22, y + 11, part, ink, anchor="end", bold=limit),
                     text(f"part{row}-time", end, y + 11, words, ink, bold=limit, on="idle" if end < x(at_first) else "")]  # fmt: skip
        else:
            names = [rect(f"part{row}-key", at.x, y - 16, 10, 10, ROLES[part]),
                     text(f"part{row}-name", at.x + 15, y - 6, f"{part}: {words}", ink, "small", bold=limit)]  # fmt: skip
        marks += [
            rect(f"part{row}-first", at.x, y, x(at_first) - at.x, high, "idle", tip),
            *about("limit" if limit else "rest", rect(f"part{row}", at.x, y, max(1.5, x(time_s) - at.x), high, ROLES[part], tip)),
        ]  # fmt: skip
        if limit:
            marks += about("limit", _outline("limit-frame", at.x, x(time_s), y - 1, y + high + 1))
        marks += names
        pulled = part == "linear weights" or part in CURED_BY and part in done  # else it moves nothing yet
        if pulled:
            # the end of the part after its cure, which is pulled
            control = CURED_BY[part]
            per = r.cured_s[part] / getattr(r, control.name)
            at_cured, below = x(r.cured_s[part]), y + high + 11
            marks += [
                line(f"pull-{control.name}-line", at_cured, y, at_cured, below, "primary"),
                handle(f"pull-{control.name}", at_cured, below, "primary",
                       drag(control, "x", lambda bits, per=per: x(per * bits))),
            ]  # fmt: skip
        gain = f"{r.alone[part]:.2f}×" if part in r.alone else "none"
        asked = part == "linear weights"
        role = "primary" if asked else "muted" if part in done or part not in r.alone else "ink"
        marks.append(text(f"part{row}-alone", _edge(at), y + 11, gain, role, anchor="end", bold=asked))
        y += pitch + KNOB * (part in CURED_BY)
    return marks


def _history(r: Result, i: int, at: Box) -> list[dict]:
    """Draw the whole step, one bar for each cure so far, and the least that the next one leaves."""
    marks = [text("steps-title", at.x, at.y - 10, "the whole step, after each cure", "muted", "small")]
    for row in range(min(len(r.steps), i + 2)):
        y = at.y + at.h / 7 * row + (0 if _wide(at) else 18)
        marks += _so_far(r, i, row, y, at) if row <= i else _to_come(r, i, row, y, at)
    return marks


def _row_name(row: int, y: float, at: Box, words: str, now: bool) -> dict:
    x, low, anchor = (at.x - 10, y + 12, "end") if _wide(at) else (at.x, y - 5, "start")
    size = "body" if _wide(at) else "small"
    return text(f"step{row}-name", x, low, words, "ink" if now else "muted", size, anchor, bold=now)


def _so_far(r: Result, i: int, row: int, y: float, at: Box) -> list[dict]:
    """Draw one step's parts end to end, and name the one that decides, inside or at the end."""
    step, now, x, done, inside = r.steps[row], row == i, _scale(r, at), 0.0, False
    marks = [_row_name(row, y, at, step.cured or "as it stands", now)]
    for p, (part, time_s) in enumerate(step.parts_s.items()):
        left, wide = x(done), x(done + time_s) - x(done)
        tip = f"{part}: {units.seconds(time_s)} of {units.seconds(step.step_s)}"
        marks.append(rect(f"step{row}-{p}", left, y, max(0, wide - 1.5), 15, ROLES[part], tip))
        if part == step.limit and wide > 4:
            marks.append(_outline(f"step{row}-frame", left, left + wide - 1.5, y - 1, y + 16))
        # no words on the close stripes of the launch gaps, because their colour is in the key
        if wide > text_width(part, "small", True) + 10 and ROLES[part] != "overhead":
            inside |= part == step.limit
            marks.append(
                text(f"step{row}-part{p}", left + wide / 2, y + 12, part, "inverse", "small", "middle", True)
            )
        done += time_s
    end = x(done) + 8
    marks.append(text(f"step{row}-time", end, y + 12, units.seconds(step.step_s), bold=now))
    if not inside:
        end += text_width(units.seconds(step.step_s), bold=now) + 6
        fits = end + text_width(step.limit, "small", True) < _edge(at)
        place = (end, y + 12, "start") if fits else (_edge(at), y - 5, "end")
        marks.append(text(f"step{row}-limit", *place[:2], step.limit, "hot", "small", place[2], bold=True))
    return marks


def _to_come(r: Result, i: int, row: int, y: float, at: Box) -> list[dict]:
    """Bound the next step, which is no shorter than this one without the part that is cured next."""
    x, now, part = _scale(r, at), r.steps[i], r.steps[row].cured
    floor = now.step_s - now.parts_s[part]
    least, tip = f"more than {units.seconds(floor)}", f"all but {part}: {units.seconds(floor)}"
    return [
        _row_name(row, y, at, f"next: {part}", False),
        line(f"step{row}-floor", x(floor), y, x(floor), y + 15, "limit", tip),
        text(f"step{row}-least", x(floor) + 8, y + 12, least, "muted", "small"),
    ]


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
    return f"{now.cured[0].upper()}{now.cured[1:]}: {_cure(r, now.cured)}. Profiled again, {then}."


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


def _takeaway(r: Result, i: int) -> str:
    if i == len(r.steps) - 1:
        moved = sum(a.limit != b.limit for a, b in zip(r.steps, r.steps[1:], strict=False))
        here = f"{moved} of {i} cures moved it, and it ended at {r.steps[-1].limit}."
        return f"Profile again after each cure, because the limit may move. Here {here}"
    part = r.steps[i].limit
    if part not in {one.cured for one in r.steps[i + 1 :]}:
        return f"The largest part, {part}, has had its cure. The parts left to cure bring less."
    return f"Next: {NEXT[part]}."


def frames(r: Result, measured: dict | None = None, width: int = WIDE) -> list[Scene]:
    scenes, (parts_at, steps_at, height) = [], PLACES[width == WIDE]
    for i, now in enumerate(r.steps):
        step = figure("one step", now.step_s, units.seconds, "primary")
        share = figure(f"share of {now.limit}", now.limit_share, units.percent, "hot", "limit")
        ceiling = figure("most that a cure of it brings", now.limit_ceiling, units.times)
        alone = figure(
            f"step with {r.weight_bits:g}-bit weights alone",
            r.weights_alone_speedup,
            _faster,
            "primary",
            "weight_bits",
        )
        formula = (
            "ceiling = 1 / (1 − {limit:share})",
            f"1 / (1 − {{limit:{units.number(now.limit_share)}}}) = {ceiling.text}",
        )
        scenes.append(
            Scene(
                summary=f"{r.model}, batch {r.batch}, on {r.devices} {r.machine}: after {units.counted(i, 'cure')} a step takes "
                f"{step.text}, {units.count(now.tokens_per_s)} tokens a second; {now.limit} is {share.text} of it, so no cure of "
                f"that part alone brings more than {ceiling.text}. With {r.weight_bits:g}-bit weights and nothing else the first step is {alone.text}.",
                takeaway=_takeaway(r, i),
                marks=_axis(r, parts_at, steps_at) + _parts(r, i, parts_at) + _history(r, i, steps_at),
                figures=(alone, step, share, ceiling),
                table=_table(r),
                height=height,
                width=width,
                formula=(formula,),
                caption=_caption(r, i),
            )
        )
    return scenes


SIMULATOR = Declaration(
    title="Decode chain",
    question="One part is fast now. Which one limits the step next?",
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
    stepper=Stepper("cure", frames, lambda r: 0),
    prediction=Prediction(
        "A 70B model decodes 32 requests on 8 H100, launched kernel by kernel, in 16 bits. With weights of 4 bits, "
        "a quarter of the bytes, and nothing else changed: how many times faster is the step?",
        "weights_alone_speedup",
        "times faster",
    ),
    source="Beyond attention; Performance Engineering",
)
