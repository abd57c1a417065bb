"""One decode step as a chain of parts: cure the largest, and the next becomes the limit."""

from dataclasses import dataclass

from kernels.machines import machine
from kernels.next_bottleneck import cost
from widgets import units
from widgets.charts import Box, linear, text_width
from widgets.controls import powers_of_two, select, steps
from widgets.declare import Declaration, Prediction, Stepper
from widgets.scene import Column, Scene, figure, rect, table, text

MODELS = {m.name: m for m in (cost.LLAMA_70B, cost.LLAMA_8B)}
GPUS = ("A100", "H100", "H200", "B200")
ROLES = {"all-reduce": "network", "launch gaps": "overhead"}  # the other parts wait for memory
CURES = {
    "linear weights": "weights in {weight_bits:g} bits",
    "attention": "cache in {kv_bits:g} bits",
    "element-wise": "fused: 12 passes become 4",
    "all-reduce": "half of it overlapped",
    "sampling": "one fused kernel",
    "launch gaps": "one graph",
}
HIDDEN = 0.5  # of the all-reduces that overlap hides
PARTS = Box(124, 30, 350, 6 * 30)
STEPS = Box(124, 262, 480, 7 * 24)


@dataclass(frozen=True)
class Step:
    cured: str  # the part cured last; '' at the start
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
    alone: dict[str, float]  # speedup of the whole step if this part alone is cured
    weights_alone_speedup: float
    speedup: float  # of all cures together


def run(batch, context, weight_bits, kv_bits, model, devices, machine_name) -> Result:
    sizes, gpu = MODELS[model], machine(machine_name)
    same = {"batch": batch, "context": context, "devices": devices}
    parts_s = cost.decode_chain(sizes, gpu, **same)
    cached = 2 * sizes.layers * sizes.kv_heads * sizes.head_dim * context * batch * 2
    used = (2 * sizes.parameters + cached) / devices
    if used > gpu.memory_bytes:
        raise ValueError(
            f"Memory of a GPU must be at least {units.si_bytes(used)} for these weights and this cache, got "
            f"{units.si_bytes(gpu.memory_bytes)}; take more GPUs, a smaller batch or a shorter context"
        )
    cured_s = cost.decode_chain(
        sizes, gpu, **same, weight_bits=weight_bits, kv_bits=kv_bits, elementwise_passes=4,
        sampling_kernels=1, graphs=True,
    )  # fmt: skip
    cured_s["all-reduce"] = parts_s["all-reduce"] * (1 - HIDDEN)
    cuts = {name: 1 - cured_s[name] / parts_s[name] for name in parts_s if parts_s[name]}
    chain = cost.cure_in_turn(parts_s, cuts)
    found = [("", parts_s), *((one.part, one.parts_s) for one in chain)]
    before = sum(parts_s.values())
    alone = {name: before / (before - parts_s[name] * share) for name, share in cuts.items()}
    return Result(
        model, batch, context, devices, machine_name, weight_bits, kv_bits, used,
        tuple(_step(name, now, batch) for name, now in found),
        alone, alone["linear weights"], before / chain[-1].after_s,
    )  # fmt: skip


def _step(cured: str, parts_s: dict[str, float], batch: int) -> Step:
    total_s, limit = sum(parts_s.values()), cost.next_bottleneck(parts_s)
    return Step(cured, total_s, parts_s, limit.part, limit.share, limit.ceiling, batch / total_s)


def _cure(r: Result, part: str) -> str:
    return CURES[part].format(weight_bits=r.weight_bits, kv_bits=r.kv_bits)


def _role(now: Step, part: str) -> str:
    return "hot" if part == now.limit else ROLES.get(part, "memory")


def _parts(r: Result, i: int) -> list[dict]:
    """The parts of the step now, over what they took at first."""
    first, now = r.steps[0], r.steps[i]
    done = {one.cured for one in r.steps[1 : i + 1]}
    x = linear(0, max(first.parts_s.values()), PARTS.x, PARTS.right)
    marks = [
        text("parts-title", PARTS.x, 16, "parts of one step; outlined: before its cure", "muted", "small"),
        text("alone-title", 720, 16, "whole step, its cure alone", "muted", "small", "end"),
    ]
    for row, (part, at_first) in enumerate(first.parts_s.items()):
        y, time_s = PARTS.y + 30 * row, now.parts_s[part]
        tip = f"{part}: {units.seconds(time_s)}, {units.seconds(at_first)} at first"
        limit = part == now.limit
        words = units.seconds(time_s)
        if part in done:
            words += f" · {_cure(r, part)}"
        elif limit:
            words += " · the limit now"
        end = x(time_s) + 8
        if end + text_width(words, bold=limit) > x(at_first):
            end = x(at_first) + 8
        marks += [
            text(f"part{row}-name", PARTS.x - 10, y + 15, part, "hot" if limit else "ink", anchor="end", bold=limit),
            rect(f"part{row}-first", PARTS.x, y, x(at_first) - PARTS.x, 20, "idle", tip),
            rect(f"part{row}", PARTS.x, y, max(1.5, x(time_s) - PARTS.x), 20, _role(now, part), tip),
            text(f"part{row}-time", end, y + 15, words, "hot" if limit else "ink", bold=limit),
        ]  # fmt: skip
        gain = f"{r.alone[part]:.2f}×" if part in r.alone else "none"
        role = "muted" if part in done or part not in r.alone else "ink"
        marks.append(text(f"part{row}-alone", 720, y + 15, gain, role, anchor="end"))
    return marks


def _history(r: Result, i: int) -> list[dict]:
    """The whole step, one bar for each cure so far; the rest stands empty."""
    x = linear(0, r.steps[0].step_s, STEPS.x, STEPS.right)
    marks = [text("steps-title", STEPS.x, STEPS.y - 10, "the whole step, after each cure", "muted", "small")]
    for row, step in enumerate(r.steps[: i + 1]):
        y, at = STEPS.y + 24 * row, 0.0
        name, now = step.cured or "as it stands", row == i
        marks.append(
            text(f"step{row}-name", STEPS.x - 10, y + 13, name, "ink" if now else "muted", anchor="end", bold=now)
        )  # fmt: skip
        for p, (part, time_s) in enumerate(step.parts_s.items()):
            left, wide = x(at), x(at + time_s) - x(at)
            tip = f"{part}: {units.seconds(time_s)} of {units.seconds(step.step_s)}"
            marks.append(rect(f"step{row}-{p}", left, y, max(0, wide - 1.5), 17, _role(step, part), tip))
            if part == step.limit and wide > text_width(part, "small", True) + 10:
                marks.append(
                    text(f"step{row}-limit", left + wide / 2, y + 13, part, "inverse", "small", "middle", True)
                )  # fmt: skip
            at += time_s
        marks.append(text(f"step{row}-time", x(at) + 8, y + 13, units.seconds(step.step_s), bold=now))
    return marks


def _table(r: Result):
    columns = ("cured", *(Column(part, "s", units.seconds) for part in r.steps[0].parts_s),
               Column("step", "s", units.seconds), "limit", Column("its share", show=units.percent))  # fmt: skip
    rows = [(s.cured or "nothing", *s.parts_s.values(), s.step_s, s.limit, s.limit_share) for s in r.steps]
    return table(columns, rows)


def _caption(r: Result, i: int) -> str:
    now = r.steps[i]
    share = units.percent(now.limit_share, 0)
    then = f"the largest part is {now.limit}, {share} of the step"
    if i == 0:
        return f"Profile first: {then}."
    return f"{now.cured}: {_cure(r, now.cured)}. Profiled again, {then}."


def _takeaway(r: Result, i: int) -> str:
    if i == len(r.steps) - 1:
        return "Each cure hands the limit to the next part: profile again before you cure again."
    part = r.steps[i].limit
    if part not in {one.cured for one in r.steps[i + 1 :]}:
        return "The largest part has had its cure: from here on, only smaller parts are left."
    remedy = cost.REMEDIES[part]
    return f"Try next: {remedy}."


def frames(r: Result, measured: dict | None = None) -> list[Scene]:
    scenes = []
    for i, now in enumerate(r.steps):
        step = figure("one step", now.step_s, units.seconds, "primary")
        share = figure(f"of it: {now.limit}", now.limit_share, units.percent, "hot")
        ceiling = figure("ceiling, if that took no time", now.limit_ceiling, units.times)
        tokens = figure("tokens a second", now.tokens_per_s, units.count)
        formula = (
            "ceiling = 1 / (1 − share)",
            f"1 / (1 − {units.number(now.limit_share)}) = {ceiling.text}",
        )
        scenes.append(
            Scene(
                summary=f"{r.model}, batch {r.batch}, on {r.devices} {r.machine}: after {i} cures a step takes "
                f"{step.text}, {tokens.text} tokens a second; {now.limit} is {share.text} of it, so no cure of "
                f"that part alone brings more than {ceiling.text}.",
                takeaway=_takeaway(r, i),
                marks=_parts(r, i) + _history(r, i),
                figures=(step, share, ceiling, tokens),
                table=_table(r),
                height=STEPS.y + 7 * 24,
                formula=(formula,),
                caption=_caption(r, i),
            )
        )
    return scenes


SIMULATOR = Declaration(
    title="Decode chain",
    question="One part is fast now: which one decides next?",
    controls=(
        powers_of_two("batch", "Requests in the batch", 32, 1, 128),
        powers_of_two("context", "Tokens of context", 4096, 256, 32768),
        steps("weight_bits", "Weights, once quantized", 4, (2, 3, 4, 6, 8), unit="bits"),
        steps("kv_bits", "Cache, once quantized", 8, (4, 8), unit="bits"),
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
    stepper=Stepper("cure", frames, lambda r: 2),
    prediction=Prediction(
        "A 70B model decodes 32 requests on 8 H100, launched kernel by kernel, in 16 bits. With weights of 4 bits, "
        "a quarter of the bytes, and nothing else changed: how many times faster is the step?",
        "weights_alone_speedup",
        "times faster",
    ),
    source="Beyond attention; Performance Engineering",
)  # fmt: skip
