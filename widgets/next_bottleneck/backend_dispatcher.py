"""Which kernel may run: the fastest that is valid, not the fastest. Fast but invalid is a bug."""

from dataclasses import dataclass

from kernels.next_bottleneck import cost
from widgets import units
from widgets.charts import text_width
from widgets.controls import select, toggle
from widgets.declare import Declaration, Prediction, Stepper
from widgets.scene import WIDE, Scene, about, circle, drag, figure, handle, line, rect, table, text

GPUS = {
    75: "sm_75 (T4)",
    80: "sm_80 (A100)",
    86: "sm_86 (RTX 3090)",
    89: "sm_89 (RTX 4090)",
    90: "sm_90 (H100, H200)",
    100: "sm_100 (B200)",
}
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
SHORT = {"sliding window": "window"}  # what a column's head has room for


def _value(feature: str, value) -> str:
    if feature == "message_bytes":
        return units.binary_bytes(value)
    if feature == "gpu_sm":
        return f"sm_{value}"
    if feature == "group":
        return "channel" if value == 0 else str(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return SHORT.get(value, str(value))


def _options(operation: str, feature: str) -> dict:
    return {value: _value(feature, value) for value in cost.FEATURES[operation][feature]}


GPU = select("gpu_sm", "GPU", 90, GPUS, help="Changes attention, GEMMs and experts.")
CACHE = select(
    "kv_dtype", "Cache holds", "int8", _options("attention", "kv_dtype"), help="Changes attention only."
)
WEIGHTS = select(
    "weights", "Weights", "int4 W4A16", _options("gemm", "weights"), help="Changes GEMMs and experts only."
)
GROUP = select("group", "GEMM: group of a scale", 128, _options("gemm", "group"), more=True)
MESSAGE = select(
    "message_bytes", "All-reduce: message", 16 * 2**10, _options("all-reduce", "message_bytes"), more=True
)
DIALS = {
    "attention": CACHE,
    "gemm": GPU,
    "moe": GROUP,
    "all-reduce": MESSAGE,
}  # what each operation's knob turns


@dataclass(frozen=True)
class Layout:
    width: int
    top: float  # of the first row
    room: float  # for all rows
    widest_pitch: float
    right: float  # of the columns
    bars: tuple[float, float]  # from, to
    reason: float
    dial: tuple[float, float]  # from, to
    height: int

    @property
    def wide(self) -> bool:
        return self.width == WIDE


LAYOUTS = {
    True: Layout(720, 126, 286, 40, 474, (492, 546), 556, (24, 464), 430),
    False: Layout(340, 190, 440, 56, 324, (206, 334), 26, (20, 320), 668),
}


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
    places: tuple[int, ...]  # the same for each value that the knob can be pulled to


def run(
    operation,
    gpu_sm,
    kv_dtype,
    weights,
    head_dim,
    page_size,
    attention_kind,
    mask,
    group,
    gpus,
    nodes,
    nvlink,
    message_bytes,
) -> Result:
    every = {
        "gpu_sm": gpu_sm,
        "kv_dtype": kv_dtype,
        "weights": weights,
        "head_dim": head_dim,
        "page_size": page_size,
        "attention": attention_kind,
        "mask": mask,
        "group": group,
        "gpus": gpus,
        "nodes": nodes,
        "nvlink": nvlink,
        "message_bytes": message_bytes,
    }
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
            one.backend,
            one.preference,
            one.valid,
            tuple(rule.feature for rule in rules[one.backend]),
            tuple(rule.feature for rule in one.broken_rules),
            "; ".join(_words(rule) for rule in one.broken_rules),
        )
        for one in found.verdicts
    )
    places = cost.places_over(DIALS[operation].name, operation, **features)
    return Result(
        operation,
        features,
        rows,
        len(rows),
        sum(row.valid for row in rows),
        len(found.fast_but_invalid),
        found.chosen or "",
        found.place,
        tuple(places[stop] for stop in DIALS[operation].stops),
    )


def _words(rule) -> str:
    allowed = " / ".join(_value(rule.feature, one) for one in rule.values)
    kind = {"among": "only ", "at least": "at least ", "at most": "at most ", "multiple of": "multiples of "}[
        rule.kind
    ]
    return f"{LABELS[rule.feature]}: {kind}{allowed}"


def _fitted(why: str) -> str:
    """What the first broken rule asks for, and how many more there are: all stand in the tip and the table."""
    first, *more = why.split("; ")
    return first.split(": ")[1] + (f" (+ {len(more)})" if more else "")


def _named(backend: str, at: Layout) -> str:
    return backend if at.wide else backend.replace(" over NVLink", "").replace(", grouped", "")


def _columns(r: Result, at: Layout) -> dict[str, float]:
    """The middle of each feature's column: as wide as its words, between the names and the right end."""
    size = "body" if at.wide else "small"
    left = 40 + max(text_width(_named(row.backend, at), size, True) for row in r.rows)
    needs = {name: _head_width(r, name) if at.wide else 20 for name in r.features}
    spare = (at.right - left - sum(needs.values())) / len(needs)
    columns, x = {}, left
    for name, needed in needs.items():
        columns[name] = x + (needed + spare) / 2
        x += needed + spare
    return columns


def _head_width(r: Result, name: str) -> float:
    words = (
        text_width(LABELS[name], "small"),
        text_width(_value(name, r.features[name]), "small", bold=True),
        22,
    )
    return max(words) + 2  # neighbours never touch


def _pitch(r: Result, at: Layout) -> float:
    return min(at.widest_pitch, at.room / r.backends)


def _row(r: Result, row: Row, columns: dict[str, float], tried: int, at: Layout) -> list[dict]:
    """A backend, its gates and its rank; the colours come once the request has come to it."""
    i, pitch = row.preference, _pitch(r, at)
    y = at.top + pitch * i
    chosen, reached, here = row.backend == r.chosen, i <= tried, i == tried
    role = ("useful" if chosen else "hot") if reached else "muted"
    tip = f"{i + 1}. {row.backend}: " + (row.why or ("runs" if chosen else "valid, and slower"))
    on = "idle" if here else ""
    line_y = y + (17 if at.wide else 16)
    marks = [rect(f"row{i}-ground", 0, y, at.width, 23 if at.wide else 37, "idle", tip)] if here else []
    marks += [
        text(f"row{i}-place", 18, line_y, str(i + 1), "muted", "small", "end", on=on),
        text(
            f"row{i}-name",
            26,
            line_y,
            _named(row.backend, at),
            role,
            "body" if at.wide else "small",
            bold=here,
            on=on,
        ),
    ]
    for name, x in columns.items():
        cell = f"row{i}-{name}"
        if name in row.broken:
            marks.append(
                text(cell, x, line_y + 1, "×", "hot" if reached else "muted", "big", "middle", True, on=on)
            )
        elif name in row.checked:
            said = f"{row.backend}: {LABELS[name]} {_value(name, r.features[name])} is taken"
            marks.append(circle(cell, x, line_y - 5, 5, "useful" if reached else "muted", said))
        else:
            ink = "useful" if reached else "muted"
            marks.append(text(cell, x, line_y, "any", ink, "small", "middle", chosen and at.wide, on=on))
    if at.wide:  # a phone has the rank's number: a bar would lie under the columns' marks
        marks.append(_bar(r, row, reached, y, at))
    words = "runs" if chosen else _fitted(row.why) if row.why else "valid, slower"
    down = 17 if at.wide else 31
    if reached or not chosen:
        marks.append(text(f"row{i}-why", at.reason, y + down, words, role, "small", bold=chosen, on=on))
    return marks


def _bar(r: Result, row: Row, reached: bool, y: float, at: Layout) -> dict:
    """Its rank as a length: the matrix knows an order of speed, and no times."""
    start, end = at.bars
    long = (end - start) * (r.backends - row.preference) / r.backends
    role = "idle" if not reached else "useful" if row.backend == r.chosen else "dropped"
    tip = f"{row.backend}: place {row.preference + 1} of {r.backends} by speed" + (
        ", and invalid" if row.broken else ""
    )
    return rect(f"row{row.preference}-rank", start, y + 7, long, 11, role, tip)


def _request(r: Result, columns: dict[str, float], tried: int, at: Layout) -> list[dict]:
    """The request, on its way down the order of speed: it stops before the first gate that is shut."""
    row = r.rows[tried]
    before, radius = (14, 6) if at.wide else (12, 4)  # between two columns' marks
    shut = next((x - before for name, x in columns.items() if name in row.broken), at.right + 9)
    y = at.top + _pitch(r, at) * tried + (12 if at.wide else 11)
    return [circle("request", shut, y, radius, "now", f"the request, at {row.backend}")]


def _head(r: Result, columns: dict[str, float], at: Layout) -> list[dict]:
    key = "● fits, × does not, any: no rule; orange ●: request"
    marks = [
        text("head-order", 0, at.top - 8, "fastest first", "muted", "small"),
        text("head-key", at.width, 14 if at.wide else at.height - 4, key, "muted", "small", "end"),
    ]
    if at.wide:
        marks += [
            text("head-speed", at.bars[0], at.top - 26, "rank, not time", "muted", "small"),
            text("head-speed-way", at.bars[0], at.top - 10, "longer: faster", "muted", "small"),
        ]
    for i, (name, x) in enumerate(columns.items()):
        value = _value(name, r.features[name])
        if at.wide:
            pair = [
                text(f"head-{name}", x, at.top - 26, LABELS[name], "muted", "small", "middle"),
                text(f"head-{name}-value", x, at.top - 10, value, "ink", "small", "middle", True),
            ]
        else:
            # the columns are narrower than their names, which stand in two rows
            left, y = (i % 2) * 170, 100 + 17 * (i // 2)
            pair = [
                text(f"head-{name}", left, y, f"{LABELS[name]}: {value}", "ink", "small"),
                text(
                    f"head-{name}-value",
                    x,
                    at.top - (24 if i % 2 else 8),
                    LABELS[name],
                    "muted",
                    "small",
                    "middle",
                ),
            ]
        marks += about(CONTROLS.get(name, name), pair)
    return marks + _dial(r, at) + _unused(r, at)


def _dial(r: Result, at: Layout) -> list[dict]:
    """The feature that decides most here, and what each value of it would cost: the place of what then runs."""
    control = DIALS[r.operation]
    start, end = at.dial
    places = {
        stop: start + (end - start) * i / (len(control.stops) - 1) for i, stop in enumerate(control.stops)
    }
    marks = [
        text("dial-title", 0, 14, f"Pull: {LABELS[control.name]}, and who then runs", bold=True),
        line("dial", start, 34, end, 34, "axis"),
    ]
    for i, (stop, x) in enumerate(places.items()):
        chosen = stop == r.features[control.name]
        anchor, shift = ("start", -20) if i == 0 else ("end", 20) if i == len(places) - 1 else ("middle", 0)
        place, runs = r.places[i], f"place {r.places[i]}"
        role = "muted" if not chosen else "hot" if place == 0 else "useful"
        marks += [
            text(
                f"dial{i}",
                x + shift,
                58,
                _value(control.name, stop),
                "ink" if chosen else "muted",
                "small",
                anchor,
                chosen,
            ),
            text(f"dial{i}-place", x + shift, 74, runs if place else "none", role, "small", anchor, chosen),
        ]
    knob = drag(control, "x", lambda stop: places[stop])
    return [*marks, handle("pull-dial", places[r.features[control.name]], 34, "now", knob)]


def _unused(r: Result, at: Layout) -> list[dict]:
    """The controls in view that change nothing here."""
    names = [one.label for one in (GPU, CACHE, WEIGHTS) if one.name not in r.features]
    y = at.height - (4 if at.wide else 20)
    return [text("unused", 0, y, f"Changes nothing here: {', '.join(names)}", "muted", "small")]


CONTROLS = {"attention": "attention_kind"}  # a feature of another name than its control


def _caption(r: Result, step: int, tried: int) -> str:
    row = r.rows[tried]
    if step > tried:
        return f"{row.backend} runs, found at try {tried + 1}: the slower ones are not asked."
    if row.backend == r.chosen:
        return f"Try {tried + 1}, {row.backend}: no gate is shut, and it runs. Slower ones are not asked."
    end = "the next one is asked" if step < len(r.rows) - 1 else "there is no next one"
    return f"Try {tried + 1}, {row.backend}: it may not run ({row.why}), so {end}."


STEPPED_IN = {  # what to keep when faster ones are invalid, by operation
    "attention": "The request decides before any tuning does: nothing ranked above {chosen} may run it.",
    "gemm": "Layout and kernel must agree: what ranks above {chosen} does not take this form of weights.",
    "moe": "Grouped kernels come one a format: what ranks above {chosen} reads another.",
    "all-reduce": "A one-shot kernel is built for its number of GPUs: the others are ruled out, not slower.",
}
NCCL = "One-shot kernels serve one node and small messages: past that limit NCCL runs, ranked last and always valid."


def _takeaway(r: Result) -> str:
    if not r.chosen:
        return "Nothing here may run this: an engine must refuse, not pick the nearest kernel."
    if r.chosen == "NCCL":
        return NCCL
    if r.ahead_but_invalid:
        return STEPPED_IN[r.operation].format(chosen=r.chosen)
    return "Here the fastest kernel may run. Change one feature, and see who has to step in."


def _formula(r: Result) -> tuple[tuple[str, str], ...]:
    names = [CONTROLS.get(name, name) for name in r.features]
    asked = ", ".join(
        f"{{{control}:{LABELS[name]}}}" for control, name in zip(names, r.features, strict=True)
    )
    given = ", ".join(f"{{{c}:{_value(n, r.features[n])}}}" for c, n in zip(names, r.features, strict=True))
    return ((f"runs = first by speed that takes {asked}", f"{given}: {r.chosen or 'none'}"),)


def frames(r: Result, measured: dict | None = None, width: int = WIDE) -> list[Scene]:
    """One for each backend in the order of speed; below the one that runs nothing is asked, so it stays."""
    at = LAYOUTS[width == WIDE]
    columns = _columns(r, at)
    head = _head(r, columns, at)
    valid = figure(f"of {r.backends} may run", r.valid, units.count, "useful")
    ahead = figure(
        "ranked above what runs, and invalid" if r.chosen else "ranked, and invalid",
        r.ahead_but_invalid,
        units.count,
        "hot" if r.ahead_but_invalid else "ink",
    )
    place = figure(
        "place of what runs, by speed", r.place, lambda place: units.count(place) if place else "none"
    )
    chosen = (
        f"{r.chosen} runs, in place {place.text} by speed"
        if r.chosen
        else f"nothing runs: {place.text} has a place"
    )
    same = {
        "summary": f"{KERNELS[r.operation]}: {valid.text} of {r.backends} backends may run this request, {ahead.text} "
        f"{'ranked above what runs' if r.chosen else 'of them'} are invalid, and {chosen}.",
        "takeaway": _takeaway(r),
        "figures": (valid, ahead, place),
        "table": table(
            ("backend", "place by speed", "valid", "rules it breaks"),
            [(x.backend, str(x.preference + 1), "yes" if x.valid else "no", x.why or "none") for x in r.rows],
        ),
        "height": at.height,
        "width": width,
        "formula": _formula(r),
        "warning": "" if r.chosen else "No backend of this matrix is valid: say so, and stop.",
    }
    scenes = []
    last = r.place - 1 if r.place else len(r.rows) - 1
    for step in range(len(r.rows)):
        tried = min(step, last)
        rows = [mark for row in r.rows for mark in _row(r, row, columns, tried, at)]
        marks = head + rows + _request(r, columns, tried, at)
        scenes.append(Scene(marks=marks, caption=_caption(r, step, tried), **same))
    return scenes


SIMULATOR = Declaration(
    title="Backend dispatcher",
    question="Which kernel may run this, and which of those is fastest?",
    controls=(
        select(
            "operation",
            "Operation",
            "attention",
            KERNELS,
            help="A simplified matrix; engines keep their own.",
        ),
        GPU,
        CACHE,
        WEIGHTS,
        select("head_dim", "Attention: head size", 128, _options("attention", "head_dim"), more=True),
        select("page_size", "Attention: tokens a page", 16, _options("attention", "page_size"), more=True),
        select(
            "attention_kind", "Attention: kind", "standard", _options("attention", "attention"), more=True
        ),
        select("mask", "Attention: mask", "causal", _options("attention", "mask"), more=True),
        GROUP,
        select("gpus", "All-reduce: GPUs", 8, _options("all-reduce", "gpus"), more=True),
        select("nodes", "All-reduce: nodes", 1, _options("all-reduce", "nodes"), more=True),
        toggle("nvlink", "All-reduce: NVLink", True, more=True),
        MESSAGE,
    ),
    presets={
        "An int8 cache on H100": {},
        "A 16-bit cache": {"kv_dtype": "16-bit"},
        "Latent attention, B200": {
            "gpu_sm": 100,
            "attention_kind": "latent",
            "kv_dtype": "fp8",
            "page_size": 64,
        },
        "int4 GEMM, groups of 32": {"operation": "gemm", "group": 32},
        "All-reduce of 1 MiB": {"operation": "all-reduce", "message_bytes": 2**20},
    },
    run=run,
    stepper=Stepper("try", frames, lambda r: len(r.rows) - 1),
    prediction=Prediction(
        "Eleven attention backends stand in order of speed. The GPU is an H100, the model has ordinary heads of 128 and "
        "a causal mask, and its cache was just made int8, in pages of 16 tokens. How many of the eleven may run?",
        "valid",
        "backends",
    ),
    source="Beyond attention",
)
