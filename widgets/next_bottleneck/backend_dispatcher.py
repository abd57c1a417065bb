"""Which kernel may run: the fastest that is valid, not the fastest. Fast but invalid is a bug."""

from dataclasses import dataclass

from kernels.next_bottleneck import cost
from widgets import units
from widgets.controls import select, toggle
from widgets.declare import Declaration, Prediction, Stepper
from widgets.scene import WIDE, Scene, about, circle, drag, figure, handle, line, rect, table, text

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
MOST = 11  # backends of an operation
GPU = select("gpu_sm", "GPU", 90, GPUS, help="For attention and GEMMs.")
CACHE = select(
    "kv_dtype",
    "Cache holds",
    "int8",
    {v: v for v in cost.FEATURES["attention"]["kv_dtype"]},
    help="For attention.",
)
# (first row, its pitch, gates from and to, where the reason stands, right edge, height)
PLACES = {True: (122, 26, 190, 440, 456, 720, 418), False: (186, 40, 150, 334, 26, 340, 636)}


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


def _row(r: Result, row: Row, columns: dict[str, float], tried: int, places) -> list[dict]:
    """A backend and its gates, one for each feature it has a rule for; open once the request has come to it."""
    top, pitch, _, _, why_at, edge, _ = places
    i, y, wide = row.preference, top + pitch * row.preference, edge > 400
    chosen, reached, here = row.backend == r.chosen, i <= tried, i == tried
    role = ("useful" if chosen else "hot") if reached else "muted"
    tip = f"{i + 1}. {row.backend}: " + (row.why or ("runs" if chosen else "valid, and slower"))
    marks = [rect(f"row{i}-ground", 0, y, edge, pitch - 3, "idle", tip)] if here else []
    on = "idle" if here else ""
    marks.append(text(f"row{i}-place", 18, y + 17, str(i + 1), "muted", "small", "end", on=on))
    marks.append(
        text(
            f"row{i}-name",
            26,
            y + 17,
            row.backend if wide else row.backend.split(",")[0],
            role,
            "body" if wide else "small",
            bold=here,
            on=on,
        )
    )
    for name, x in columns.items():
        if name in row.broken:
            marks.append(
                text(
                    f"row{i}-{name}",
                    x,
                    y + 18,
                    "×",
                    "hot" if reached else "muted",
                    "big",
                    "middle",
                    True,
                    on=on,
                )
            )
        elif name in row.checked:
            said = f"{row.backend}: {LABELS[name]} {_value(name, r.features[name])} is taken"
            marks.append(circle(f"row{i}-{name}", x, y + 12, 5, "useful" if reached else "idle", said))
    if not reached:
        return marks
    words = (
        "runs: the fastest that is valid"
        if chosen
        else _fitted(row.why)
        if row.why
        else "valid too, but slower"
    )
    down = 17 if wide else 32
    return [*marks, text(f"row{i}-why", why_at, y + down, words, role, "small", bold=chosen, on=on)]


def _request(r: Result, columns: dict[str, float], tried: int, places) -> list[dict]:
    """The request, on its way down the order of speed: it stops at the first gate that is shut."""
    top, pitch, _, right, _, _, _ = places
    row = r.rows[tried]
    shut = next((columns[name] for name in columns if name in row.broken), min(right + 4, places[5] - 10))
    return [circle("request", shut, top + pitch * tried + 12, 9, "now", f"the request, at {row.backend}")]


def _head(r: Result, columns: dict[str, float], places) -> list[dict]:
    top, _, left, _, _, edge, _ = places
    wide = edge > 400
    marks = [text("head-order", 0, top - 8, "fastest first", "muted", "small"),
             text("head-key", edge, 14, "● fits, × does not, blank: no rule" if wide else "● fits, × does not", "muted", "small", "end")]  # fmt: skip
    for i, (name, x) in enumerate(columns.items()):
        value = _value(name, r.features[name])
        if wide:
            y = top - 52 + 28 * (i % 2)  # two levels, so that long values do not meet
            pair = [text(f"head-{name}", x, y, LABELS[name], "muted", "small", "middle"),
                    text(f"head-{name}-value", x, y + 14, value, "ink", "small", "middle", True)]  # fmt: skip
        else:
            at, y = (i % 2) * 170, 78 + 20 * (i // 2)
            pair = [text(f"head-{name}", at, y, f"{i + 1} {LABELS[name]}: {value}", "ink", "small"),
                    text(f"head-{name}-value", x, top - 8, str(i + 1), "muted", "small", "middle", True)]  # fmt: skip
        marks += about(CONTROLS.get(name, name), pair)
    return marks + _dial(r, wide)


def _dial(r: Result, wide: bool) -> list[dict]:
    """The feature that changes most: a knob on its values, the GPU's generations or what the cache holds."""
    control = {"attention": CACHE, "gemm": GPU}.get(r.operation)
    name = control.name if control else next(iter(r.features))
    stops = control.stops if control else cost.FEATURES[r.operation][name]
    x0, pitch = 84 if wide else 12, (300 if wide else 300) / max(1, len(stops) - 1)
    marks = [text("dial-title", 0, 14, "The request" if control else f"The request: {LABELS[name]}", bold=True),
             line("dial", x0, 34, x0 + pitch * (len(stops) - 1), 34, "axis")]  # fmt: skip
    for i, stop in enumerate(stops):
        chosen, x = stop == r.features[name], x0 + pitch * i
        anchor = "middle" if wide or 0 < i < len(stops) - 1 else "start" if i == 0 else "end"
        shift = 0 if anchor == "middle" else -10 if anchor == "start" else 10
        words = _value(name, stop).replace("sm_", "") if len(stops) > 4 else _value(name, stop)
        marks.append(
            text(f"dial{i}", x + shift, 58, words, "ink" if chosen else "muted", "small", anchor, bold=chosen)
        )
    if control:
        places = {stop: x0 + pitch * i for i, stop in enumerate(stops)}
        marks.append(
            handle(
                "pull-dial",
                places[r.features[name]],
                34,
                "now",
                drag(control, "x", lambda stop: places[stop]),
            )
        )
    return marks


CONTROLS = {"attention": "attention_kind"}  # a feature of another name than its control


def _caption(r: Result, tried: int) -> str:
    row = r.rows[tried]
    if row.backend == r.chosen:
        return f"Try {tried + 1}, {row.backend}: no gate is shut, and it runs. Slower ones are not asked."
    return f"Try {tried + 1}, {row.backend}: it may not run ({_fitted(row.why)}), so the next one is asked."


def _takeaway(r: Result) -> str:
    if not r.chosen:
        return "Nothing here may run this: an engine must refuse, not pick the nearest kernel."
    if r.valid == 1 and r.ahead_but_invalid:
        return "One of them is left: a format that a single kernel reads decides the speed of all of it."
    if r.ahead_but_invalid:
        return "Fast but invalid is a bug: first ask what may run, then take the fastest of it."
    return "Here the fastest kernel may run. Change one feature, and see who has to step in."


def _formula(r: Result) -> tuple[tuple[str, str], ...]:
    names = [CONTROLS.get(name, name) for name in r.features]
    asked = ", ".join(
        f"{{{control}:{LABELS[name]}}}" for control, name in zip(names, r.features, strict=True)
    )
    given = ", ".join(f"{{{c}:{_value(n, r.features[n])}}}" for c, n in zip(names, r.features, strict=True))
    return ((f"runs = first by speed that takes {asked}", f"{given}: {r.chosen or 'none'}"),)


def frames(r: Result, measured: dict | None = None, width: int = WIDE) -> list[Scene]:
    """One for each backend that is asked, in the order of speed, down to the one that runs."""
    places = PLACES[width == WIDE]
    left, right = places[2:4]
    left += 54 if len(r.features) <= 4 else 0  # few features leave room for long names
    names = list(r.features)
    columns = {name: left + (right - left) * (i + 0.5) / len(names) for i, name in enumerate(names)}
    head = _head(r, columns, places)
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
    same = {
        "summary": f"{KERNELS[r.operation]}: {valid.text} of {r.backends} backends may run this request, {ahead.text} "
        f"faster ones are invalid, and {chosen}.",
        "takeaway": _takeaway(r),
        "figures": (valid, ahead, place),
        "table": table(
            ("backend", "place by speed", "valid", "rules it breaks"),
            [(x.backend, str(x.preference + 1), "yes" if x.valid else "no", x.why or "none") for x in r.rows],
        ),
        "height": places[-1],
        "width": width,
        "formula": _formula(r),
        "warning": "" if r.chosen else "No backend of this matrix is valid: say so, and stop.",
    }
    scenes = []
    for tried in range(r.place or len(r.rows)):
        rows = [mark for row in r.rows for mark in _row(r, row, columns, tried, places)]
        scenes.append(
            Scene(marks=head + rows + _request(r, columns, tried, places), caption=_caption(r, tried), **same)
        )
    return scenes


def _options(operation: str, feature: str) -> dict:
    return {value: _value(feature, value) for value in cost.FEATURES[operation][feature]}


SIMULATOR = Declaration(
    title="Backend dispatcher",
    question="Which kernel may run this, and which of those is fastest?",
    controls=(
        select("operation", "Operation", "attention", KERNELS, help="A simplified matrix; engines keep their own."),
        GPU,
        CACHE,
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
    stepper=Stepper("try", frames, lambda r: (r.place or len(r.rows)) - 1),
    prediction=Prediction(
        "Eleven attention backends stand in order of speed. The GPU is an H100, the model has ordinary heads of 128 and "
        "a causal mask, and its cache was just made int8, in pages of 16 tokens. How many of the eleven may run?",
        "valid",
        "backends",
    ),
    source="Beyond attention",
)  # fmt: skip
