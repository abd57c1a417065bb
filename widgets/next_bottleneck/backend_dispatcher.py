"""Which kernel may run: the fastest that is valid, not the fastest. Fast but invalid is a bug."""

from dataclasses import dataclass

from kernels.next_bottleneck import cost
from widgets import units
from widgets.controls import select, toggle
from widgets.declare import Declaration, Prediction
from widgets.scene import Scene, circle, figure, rect, table, text

GPUS = {75: "sm_75 (T4)", 80: "sm_80 (A100)", 86: "sm_86 (RTX 3090)", 89: "sm_89 (RTX 4090)",
        90: "sm_90 (H100, H200)", 100: "sm_100 (B200)"}  # fmt: skip
KERNELS = {
    "attention": "attention",
    "gemm": "GEMM with these weights",
    "moe": "expert GEMM (MoE)",
    "all-reduce": "all-reduce",
}
LABELS = {
    "gpu_sm": "GPU",
    "head_dim": "head size",
    "kv_dtype": "cache",
    "page_size": "page",
    "attention": "kind",
    "mask": "mask",
    "weights": "weights",
    "group": "group",
    "gpus": "GPUs",
    "nodes": "nodes",
    "nvlink": "NVLink",
    "message_bytes": "message",
}
TOP, PITCH, MOST = 64, 27, 11
WHY = 456


@dataclass(frozen=True)
class Row:
    backend: str
    preference: int
    valid: bool
    checked: tuple[str, ...]  # features that it has rules for
    broken: tuple[str, ...]  # of them, those this request breaks
    why: str


@dataclass(frozen=True)
class Result:
    operation: str
    features: dict
    rows: tuple[Row, ...]
    backends: int
    valid: int
    ahead_but_invalid: int  # faster than what runs
    chosen: str  # '' if nothing may run
    place: int  # of the chosen in the order of speed; 0 if nothing may run


def run(operation, gpu_sm, kv_dtype, weights, head_dim, page_size, attention_kind, mask, group, gpus, nodes,
        nvlink, message_bytes) -> Result:  # fmt: skip
    every = {
        "gpu_sm": gpu_sm, "kv_dtype": kv_dtype, "weights": weights, "head_dim": head_dim, "page_size": page_size,
        "attention": attention_kind, "mask": mask, "group": group, "gpus": gpus, "nodes": nodes, "nvlink": nvlink,
        "message_bytes": message_bytes,
    }  # fmt: skip
    if operation == "all-reduce" and gpus < nodes:
        raise ValueError(f"GPUs must be at least one a node, got {gpus} on {nodes} nodes; take more GPUs")
    if operation == "moe" and weights not in cost.FEATURES["moe"]["weights"]:
        known = " or ".join(cost.FEATURES["moe"]["weights"])
        raise ValueError(f"Weights of experts must be {known}, got {weights}; no grouped kernel takes others")
    features = {name: every[name] for name in cost.FEATURES[operation]}
    found = cost.dispatch(operation, **features)
    rules = {one.name: one.rules for one in cost.BACKENDS if one.operation == operation}
    rows = tuple(
        Row(
            one.backend, one.preference, one.valid,
            tuple(rule.feature for rule in rules[one.backend]),
            tuple(rule.feature for rule in one.broken_rules),
            "; ".join(_words(rule) for rule in one.broken_rules),
        )
        for one in found.verdicts
    )  # fmt: skip
    place = next((row.preference + 1 for row in rows if row.valid), 0)
    return Result(
        operation, features, rows, len(rows), sum(row.valid for row in rows), len(found.fast_but_invalid),
        found.chosen or "", place,
    )  # fmt: skip


def _value(feature: str, value) -> str:
    if feature == "message_bytes":
        return units.binary_bytes(value)
    if feature == "gpu_sm":
        return f"sm_{value}"
    if feature == "group":
        return "channel" if value == 0 else str(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _words(rule) -> str:
    allowed = " / ".join(_value(rule.feature, one) for one in rule.values)
    kind = {"among": "only", "at least": "from", "at most": "up to", "multiple of": "multiples of"}[rule.kind]
    return f"{LABELS[rule.feature]}: {kind} {allowed}{' on' if rule.kind == 'at least' else ''}"


def _fitted(why: str) -> str:
    """The first reason, and how many more: all of them stand in the tip and the table."""
    first, *more = why.split("; ")
    return first + (f" (+ {len(more)})" if more else "")


def _row(r: Result, row: Row, columns: dict[str, float]) -> list[dict]:
    i, y = row.preference, TOP + PITCH * row.preference
    chosen = row.backend == r.chosen
    ahead = not row.valid and (r.place == 0 or i < r.place - 1)
    role = "useful" if chosen else "ink" if row.valid else "muted"
    tip = f"{row.backend}: " + (row.why or ("runs" if chosen else "valid, and slower"))
    marks = [rect(f"row{i}-ground", 0, y, 720, PITCH - 3, "idle", tip)] if chosen else []
    marks.append(text(f"row{i}-place", 18, y + 17, str(i + 1), "muted", "small", "end"))
    marks.append(text(f"row{i}-name", 26, y + 17, row.backend, role, bold=chosen))
    for name, x in columns.items():
        if name in row.broken:
            marks.append(text(f"row{i}-{name}", x, y + 18, "×", "hot", "big", "middle", True))
        elif name in row.checked:
            said = f"{row.backend}: {LABELS[name]} {_value(name, r.features[name])} is taken"
            marks.append(circle(f"row{i}-{name}", x, y + 12, 5, "useful", said))
    if chosen:
        words = "runs: the fastest that is valid"
    else:
        words = _fitted(row.why) if row.why else "valid too, but slower"
    role = "useful" if chosen else "hot" if ahead else "muted"
    return [*marks, text(f"row{i}-why", WHY, y + 17, words, role, "small", bold=chosen)]


def _head(r: Result, columns: dict[str, float]) -> list[dict]:
    marks = [text("head-order", 0, TOP - 8, "fastest first", "muted", "small"),
             text("head-key", 720, 12, "● fits, × does not, blank: no rule", "muted", "small", "end")]  # fmt: skip
    for i, (name, x) in enumerate(columns.items()):
        y = TOP - 52 + 28 * (i % 2)  # two levels, so that long values do not meet
        marks.append(text(f"head-{name}", x, y, LABELS[name], "muted", "small", "middle"))
        value = _value(name, r.features[name])
        marks.append(text(f"head-{name}-value", x, y + 14, value, "ink", "small", "middle", True))
    return marks


def _takeaway(r: Result) -> str:
    if not r.chosen:
        return "Nothing here may run this: an engine must refuse, not pick the nearest kernel."
    if r.ahead_but_invalid:
        return "Fast but invalid is a bug: first ask what may run, then take the fastest of it."
    return "Here the fastest kernel may run. Change one feature, and see who has to step in."


def scene(r: Result, measured: dict | None = None) -> Scene:
    names = list(cost.FEATURES[r.operation])
    left = 190 if len(names) > 4 else 240  # few features leave room for long names
    columns = {name: left + (WHY - 16 - left) * (i + 0.5) / len(names) for i, name in enumerate(names)}
    marks = _head(r, columns)
    for row in r.rows:
        marks += _row(r, row, columns)
    valid = figure(f"of {r.backends} may run", r.valid, units.count, "useful")
    ahead = figure(
        "faster, and invalid", r.ahead_but_invalid, units.count, "hot" if r.ahead_but_invalid else "ink"
    )
    place = figure("place of what runs, by speed", r.place, units.count)
    chosen = (
        f"{r.chosen} runs, in place {place.text} by speed"
        if r.chosen
        else f"nothing runs (place {place.text})"
    )
    return Scene(
        summary=f"{KERNELS[r.operation]}: {valid.text} of {r.backends} backends may run this request, {ahead.text} "
        f"faster ones are invalid, and {chosen}.",
        takeaway=_takeaway(r),
        marks=marks,
        figures=(valid, ahead, place),
        table=table(
            ("backend", "place by speed", "valid", "rules it breaks"),
            [(x.backend, str(x.preference + 1), "yes" if x.valid else "no", x.why or "none") for x in r.rows],
        ),
        height=TOP + PITCH * MOST + 4,
        warning="" if r.chosen else "No backend of this matrix is valid: say so, and stop.",
    )  # fmt: skip


def _options(operation: str, feature: str) -> dict:
    return {value: _value(feature, value) for value in cost.FEATURES[operation][feature]}


SIMULATOR = Declaration(
    title="Backend dispatcher",
    question="Which kernel may run this, and which of those is fastest?",
    controls=(
        select("operation", "Operation", "attention", KERNELS, help="A simplified matrix; engines keep their own."),
        select("gpu_sm", "GPU", 90, GPUS, help="For attention and GEMMs."),
        select("kv_dtype", "Cache holds", "int8", _options("attention", "kv_dtype"), help="For attention."),
        select("weights", "Weights", "int4 W4A16", _options("gemm", "weights"), help="For GEMMs and experts."),
        select("head_dim", "Attention: head size", 128, _options("attention", "head_dim"), more=True),
        select("page_size", "Attention: tokens a page", 16, _options("attention", "page_size"), more=True),
        select("attention_kind", "Attention: kind", "standard", _options("attention", "attention"), more=True),
        select("mask", "Attention: mask", "causal", _options("attention", "mask"), more=True),
        select("group", "GEMM: group of a scale", 128, _options("gemm", "group"), more=True),
        select("gpus", "All-reduce: GPUs", 8, _options("all-reduce", "gpus"), more=True),
        select("nodes", "All-reduce: nodes", 1, _options("all-reduce", "nodes"), more=True),
        toggle("nvlink", "All-reduce: NVLink", True, more=True),
        select("message_bytes", "All-reduce: message", 16 * 2**10, _options("all-reduce", "message_bytes"), more=True),
    ),
    presets={
        "An int8 cache on H100": {},
        "A 16-bit cache": {"kv_dtype": "16-bit"},
        "Latent attention, B200": {"gpu_sm": 100, "attention_kind": "latent", "kv_dtype": "fp8", "page_size": 64},
        "int4 GEMM, groups of 32": {"operation": "gemm", "group": 32},
        "All-reduce of 1 MiB": {"operation": "all-reduce", "message_bytes": 2**20},
    },
    run=run,
    scene=scene,
    prediction=Prediction(
        "Eleven attention backends stand in order of speed. The GPU is an H100, the model has ordinary heads of 128 and "
        "a causal mask, and its cache was just made int8, in pages of 16 tokens. How many of the eleven may run?",
        "valid",
        "backends",
    ),
    source="Beyond attention",
)  # fmt: skip
