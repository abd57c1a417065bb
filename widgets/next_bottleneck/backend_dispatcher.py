"""Ask each kernel in order of speed, and see at which gate it refuses the request or that it runs."""

from dataclasses import dataclass

from kernels.next_bottleneck import cost
from widgets import units
from widgets.charts import text_width
from widgets.controls import select, toggle
from widgets.declare import Declaration, Prediction, Stepper
from widgets.scene import WIDE, Scene, about, circle, drag, figure, handle, line, rect, sets, table, text

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
CARDS = {75: "T4", 80: "A100", 86: "RTX 3090", 89: "RTX 4090", 90: "H100", 100: "B200"}
LABELS = {
    "gpu_sm": "GPU",
    "head_dim": "head",
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
OTHERS = {  # what the kernels of another job are for
    "attention": "another kind of attention",
    "weights": "other weights",
    "gpus": "another number of GPUs",
}


def _value(feature: str, value) -> str:
    if feature == "message_bytes":
        return units.binary_bytes(value)
    if feature == "gpu_sm":
        return CARDS[value]
    if feature == "group":
        return "channel" if value == 0 else str(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return SHORT.get(value, str(value))


def _options(operation: str, feature: str) -> dict:
    return {value: _value(feature, value) for value in cost.FEATURES[operation][feature]}


GPU = select("gpu_sm", "GPU", 90, GPUS, help="Attention, GEMM and experts ask for it.")
CACHE = select("kv_dtype", "Attention: cache", "int8", _options("attention", "kv_dtype"), more=True)
WEIGHTS = select("weights", "GEMM and experts: weights", "int4 W4A16", _options("gemm", "weights"), more=True)
GROUP = select("group", "GEMM and experts: group of a scale", 128, _options("gemm", "group"), more=True)
MESSAGE = select(
    "message_bytes", "All-reduce: message", 16 * 2**10, _options("all-reduce", "message_bytes"), more=True
)
CONTROLS = {"attention": "attention_kind"}  # a feature of another name than its control
DIALS = {
    "attention": CACHE,
    "gemm": GPU,
    "moe": GROUP,
    "all-reduce": MESSAGE,
}  # the feature that each operation's knob changes


@dataclass(frozen=True)
class Layout:
    width: int
    top: float  # of the first lane
    pitch: float  # of seven lanes, more where there are fewer
    start: float  # of a lane, where the request comes in
    first: float  # gate
    last: float
    end: float  # of a lane, where its kernel runs
    dial: tuple[float, float]  # from, to
    height: int

    @property
    def wide(self) -> bool:
        return self.width == WIDE


LAYOUTS = {
    True: Layout(720, 156, 34, 178, 228, 545, 650, (30, 690), 408),
    False: Layout(340, 184, 46, 10, 46, 292, 330, (22, 318), 506),
}


@dataclass(frozen=True)
class Row:
    backend: str
    preference: int
    valid: bool
    checked: tuple[str, ...]  # features that it has rules for
    broken: tuple[str, ...]  # those that this request breaks
    why: str
    opens: dict  # control -> the nearest value that its first broken rule takes


@dataclass(frozen=True)
class Result:
    operation: str
    features: dict
    rows: tuple[Row, ...]  # the kernels of this job, fastest first
    backends: int  # of the operation, those of another job too
    other_jobs: int
    valid: int
    ahead_but_invalid: int  # faster than what runs
    chosen: str  # '' if nothing may run
    place: int  # of the chosen in the order of speed, 0 if nothing may run
    chosen_at: tuple[str, ...]  # the same for each value that the knob can be pulled to


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
    job = found.of_job(operation)
    rules = {one.name: one.rules for one in cost.BACKENDS if one.operation == operation}
    rows = tuple(
        Row(
            one.backend,
            one.preference,
            one.valid,
            tuple(rule.feature for rule in rules[one.backend]),
            tuple(rule.feature for rule in _in_order(one.broken_rules, features)),
            "; ".join(_words(rule) for rule in _in_order(one.broken_rules, features)),
            _opening(operation, features, one.backend, _in_order(one.broken_rules, features)),
        )
        for one in job.verdicts
    )
    dial = DIALS[operation]
    return Result(
        operation,
        features,
        rows,
        len(found.verdicts),
        len(found.verdicts) - len(rows),
        sum(row.valid for row in rows),
        len(job.fast_but_invalid),
        job.chosen or "",
        job.place,
        tuple(cost.dispatch(operation, **{**features, dial.name: stop}).chosen or "" for stop in dial.stops),
    )


def _opening(operation: str, features: dict, backend: str, broken: list) -> dict:
    """Return the nearest value of the first broken rule's feature that this kernel would take."""
    if not broken:
        return {}
    name = broken[0].feature
    options = list(cost.FEATURES[operation][name])
    here = options.index(features[name])

    def takes(value) -> bool:
        verdicts = cost.dispatch(operation, **{**features, name: value}).verdicts
        left = next(one for one in verdicts if one.backend == backend)
        return all(rule.feature != name for rule in left.broken_rules)

    near = sorted(options, key=lambda value: abs(options.index(value) - here))
    return {CONTROLS.get(name, name): next(value for value in near if takes(value))}


def _in_order(rules, features: dict) -> list:
    """Return the rules in the order in which a lane has their gates."""
    return sorted(rules, key=lambda rule: list(features).index(rule.feature))


def _words(rule) -> str:
    allowed = [_value(rule.feature, one) for one in rule.values]
    some = " or ".join(filter(None, (", ".join(allowed[:-1]), allowed[-1])))
    said = {
        "among": f"only {some}",
        "at least": f"{some} or newer" if rule.feature == "gpu_sm" else f"{some} at least",
        "at most": f"{some} or older" if rule.feature == "gpu_sm" else f"{some} at most",
        "multiple of": f"multiples of {some}",
    }[rule.kind]
    return f"{LABELS[rule.feature]}: {said}"


def _named(backend: str) -> str:
    return backend.replace(" over NVLink", "").replace("dequantize, then", "unpack then")


def _columns(r: Result, at: Layout) -> dict[str, float]:
    """Return the position of each gate. What tells a job from another has none, because all lanes are of one job."""
    told = {feature for row in r.rows for feature in row.broken} | {DIALS[r.operation].name}
    names = [name for name in r.features if name in told]  # a gate that stops none has no place
    if len(names) == 1:
        return {names[0]: (at.first + at.last) / 2}
    return {name: at.first + (at.last - at.first) * i / (len(names) - 1) for i, name in enumerate(names)}


@dataclass(frozen=True)
class Moment:
    """Hold one step, with the lane that the request is in, and whether it has rolled to its stop."""

    lane: int
    done: bool


def _moments(r: Result) -> list[Moment]:
    """Return the steps, into a lane and then to the gate that is shut or to the lane's end."""
    lanes = range(r.place or len(r.rows))
    return [Moment(lane, done) for lane in lanes for done in (False, True)]


def _lane_y(r: Result, at: Layout, lane: int) -> float:
    return at.top + min(at.pitch * 2.6, at.pitch * 7 / len(r.rows)) * lane


def _stop(r: Result, row: Row, columns: dict[str, float], at: Layout) -> float:
    """Return how far the request comes in this lane."""
    return columns[row.broken[0]] - 13 if row.broken else at.end


def _row(r: Result, row: Row, columns: dict[str, float], now: Moment, at: Layout) -> list[dict]:
    """Draw a lane, with the way of the request and the gate at which it ends, with the words of its rule."""
    i, y = row.preference, _lane_y(r, at, row.preference)
    over = i < now.lane or (i == now.lane and now.done)
    asked, taken = not r.place or i < r.place, over and row.backend == r.chosen
    tip = f"{i + 1}. {row.backend}: " + (row.why or ("runs" if row.backend == r.chosen else "would run too"))
    marks = [line(f"row{i}-lane", at.start, y, at.end, y, "grid", tip)]
    if asked and i <= now.lane:
        came = _stop(r, row, columns, at) if over else at.start
        if taken:
            marks.append(rect(f"row{i}-taken", at.start, y - 5, came - at.start, 10, "useful", tip))
        else:
            marks.append(line(f"row{i}-way", at.start, y, came, y, "now", tip))
    if asked and row.broken:
        x, words = columns[row.broken[0]], row.why.split("; ")[0].split(": ")[1]
        half, role = 13 if at.wide else 9, "hot" if over else "idle"  # on a phone a name is above the lane
        gate = rect(f"row{i}-gate", x - 5, y - half, 10, 2 * half, role, f"{tip}; click to open the gate")
        marks += sets(row.opens, gate)
        if over:
            wide = text_width(words, "small", True)
            left = x + 12 if x + 12 + wide < at.width else at.width - wide
            low = y + 4 if at.wide or left == x + 12 else y - 14
            why = text(f"row{i}-why", left, low, words, "hot", "small", bold=True, on="ground")
            marks += sets(row.opens, why)
    role, bold = ("useful", True) if taken else ("ink", i == now.lane) if asked else ("muted", False)
    name = f"{i + 1}  {_named(row.backend)}"
    x, low, size = (0, y + 4, "body") if at.wide else (0, y - 14, "small")
    marks.append(text(f"row{i}-name", x, low, name, role, size, bold=bold))
    if taken:
        marks.append(text(f"row{i}-runs", at.end + 12, y + 5, "runs", "useful", "body", bold=True) if at.wide
                     else text(f"row{i}-runs", at.end, y - 14, "runs", "useful", "small", "end", bold=True))  # fmt: skip
    elif not asked:
        words = "not asked, would run too" if row.valid else "not asked, would refuse"
        place = (at.first - 10, y + 4, words, "muted", "small", "start") if at.wide else (
            at.end, y - 14, words, "muted", "small", "end")  # fmt: skip
        marks.append(text(f"row{i}-why", *place, on="ground" if at.wide else ""))
    return marks


def _request(r: Result, columns: dict[str, float], now: Moment, at: Layout) -> dict:
    """Draw the request at its present position, a lane's start, a shut gate, or the kernel."""
    row = r.rows[now.lane]
    x = _stop(r, row, columns, at) if now.done else at.start
    role = "useful" if now.done and row.backend == r.chosen else "now"
    return circle("request", x, _lane_y(r, at, now.lane), 8, role, f"the request, at {row.backend}")


def _head(r: Result, columns: dict[str, float], at: Layout) -> list[dict]:
    """Name the gates by what the request brings, with a line down all lanes that have one."""
    low = _lane_y(r, at, len(r.rows) - 1) + 12
    marks = _dial(r, at)
    if at.wide:
        marks.append(text("head-order", 0, at.top - 26, "Fastest kernel first", "muted", "small"))
    for name, x in columns.items():
        pair = [
            text(f"head-{name}", x, at.top - (44 if at.wide else 56), LABELS[name], "muted", "small", "middle"),
            text(f"head-{name}-value", x, at.top - (28 if at.wide else 40), _value(name, r.features[name]), "ink", "small", "middle", True),
        ]  # fmt: skip
        marks += about(name, [*pair, line(f"head-{name}-gates", x, at.top - 16, x, low, "grid")])
    if r.other_jobs:
        others = units.counted(r.other_jobs, "more kernel")
        words = f"{others} {'is' if r.other_jobs == 1 else 'are'} built for {OTHERS[cost.JOBS[r.operation]]}."
        marks.append(text("others", 0, low + (28 if at.wide else 20), words, "muted", "small"))
    return marks


def _dial(r: Result, at: Layout) -> list[dict]:
    """Draw the feature that decides most here, with the kernel that each of its values would run."""
    control = DIALS[r.operation]
    start, end = at.dial
    n = len(control.stops)
    places = {stop: start + (end - start) * i / (n - 1) for i, stop in enumerate(control.stops)}
    title = f"Pull the {LABELS[control.name]}, or click a red gate{' to open it' if at.wide else ''}"
    marks = [text("dial-title", 0, 14, title, bold=True), line("dial", start, 38, end, 38, "axis")]
    for i, (stop, x) in enumerate(places.items()):
        chosen, runs = stop == r.features[control.name], r.chosen_at[i] or "none"
        value = _value(control.name, stop)
        anchor = "start" if i == 0 else "end" if i == n - 1 else "middle"
        shift = {"start": -start, "end": at.width - end, "middle": 0}[anchor]
        role = "muted" if not chosen else "useful" if r.chosen else "hot"
        shown, ink = value if at.wide else value.removeprefix("RTX "), "ink" if chosen else "muted"
        marks.append(text(f"dial{i}", x + shift, 64, shown, ink, "small", anchor, chosen))
        if at.wide or chosen:
            # a phone has room for the kernel of the chosen value alone
            where = (x + shift, anchor) if at.wide else (0, "start")
            words = (_named(runs) if n < 5 else _named(runs).split(",")[0]) if at.wide else f"{value}: {runs}"
            marks.append(text(f"dial{i}-runs", where[0], 80 if at.wide else 84, words, role, "small", where[1], chosen))  # fmt: skip
    knob = drag(control, "x", lambda stop: places[stop])
    return [*marks, handle("pull-dial", places[r.features[control.name]], 38, "now", knob)]


def _caption(r: Result, now: Moment) -> str:
    row = r.rows[now.lane]
    if not now.done:
        return f"Kernel {now.lane + 1}, {row.backend}, is asked."
    if row.backend == r.chosen:
        rest = " Slower kernels are not asked." if now.lane < len(r.rows) - 1 else ""
        return f"Kernel {now.lane + 1}, {row.backend}, runs.{rest}"
    end = "The next kernel is asked" if now.lane < len(r.rows) - 1 else "There is no next kernel"
    return f"Kernel {now.lane + 1}, {row.backend}, refuses ({row.why}). {end}."


def _takeaway(r: Result) -> str:
    if not r.chosen:
        return "No kernel can run this request, so the engine must refuse it and say why."
    if not r.ahead_but_invalid:
        return f"The fastest kernel for this job, {r.chosen}, runs. Change one feature, and another steps in."
    ahead = r.rows[: r.place - 1]
    stopping = list(dict.fromkeys(row.broken[0] for row in ahead))
    named = [f"{LABELS[feature]} ({_value(feature, r.features[feature])})" for feature in stopping]
    few = {1: "the only faster kernel", 2: "both faster kernels"}.get(
        len(ahead), f"all {len(ahead)} faster kernels"
    )
    if len(named) == 1:
        return f"The {named[0]} stops {few}, so {_named(r.chosen)} runs."
    return f"The {', the '.join(named[:-1])} and the {named[-1]} stop {few}, so {_named(r.chosen)} runs."


def _warning(r: Result) -> str:
    """Say which pull of the dial would find a kernel, where none runs."""
    if r.chosen:
        return ""
    control = DIALS[r.operation]
    found = [(stop, name) for stop, name in zip(control.stops, r.chosen_at, strict=True) if name]
    if not found:
        return f"No other {LABELS[control.name]} helps."
    stop, name = found[0]
    return f"With another {LABELS[control.name]}, {_value(control.name, stop)}, {_named(name)} would run."


def _formula(r: Result) -> tuple[tuple[str, str], ...]:
    names = [CONTROLS.get(name, name) for name in r.features]
    asked = ", ".join(
        f"{{{control}:{LABELS[name]}}}" for control, name in zip(names, r.features, strict=True)
    )
    given = ", ".join(f"{{{c}:{_value(n, r.features[n])}}}" for c, n in zip(names, r.features, strict=True))
    return ((f"runs = the fastest kernel that takes {asked}", f"{given}: {r.chosen or 'none'}"),)


def frames(r: Result, measured: dict | None = None, width: int = WIDE) -> list[Scene]:
    """Return two scenes for each kernel that the dispatcher asks. The last shows the request's whole way."""
    at = LAYOUTS[width == WIDE]
    columns = _columns(r, at)
    head = _head(r, columns, at)
    valid = figure(f"of {r.backends} kernels can run it", r.valid, units.count)
    ahead = figure("faster, but refuse it" if r.chosen else "refuse it", r.ahead_but_invalid, units.count)
    runs = figure(
        "runs" if r.place else "of the kernels runs",
        r.place,
        lambda place: _named(r.chosen) if place else "none",
        "useful" if r.place else "hot",
    )
    same = {
        "summary": f"{KERNELS[r.operation]}: {runs.text} {'runs' if r.chosen else 'of the kernels runs'}; {ahead.text} "
        f"of this job {'are faster, but refuse it' if r.chosen else 'refuse it'}, and {valid.text} of {r.backends} kernels can run it.",
        "takeaway": _takeaway(r),
        "figures": (runs, ahead, valid),
        "table": table(
            ("kernel for this job", "asked as number", "can run it", "rules it breaks"),
            [(x.backend, str(x.preference + 1), "yes" if x.valid else "no", x.why or "none") for x in r.rows],
        ),
        "height": at.height,
        "width": width,
        "formula": _formula(r),
        "warning": _warning(r),
    }
    scenes = []
    for now in _moments(r):
        rows = [mark for row in r.rows for mark in _row(r, row, columns, now, at)]
        scenes.append(
            Scene(marks=[*head, *rows, _request(r, columns, now, at)], caption=_caption(r, now), **same)
        )
    return scenes


SIMULATOR = Declaration(
    title="Backend dispatcher",
    question="Which kernel runs your request, if the fast ones may refuse it?",
    controls=(
        select(
            "operation",
            "Operation",
            "attention",
            KERNELS,
            help="A simplified table. Engines keep their own.",
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
    stepper=Stepper("move", frames, lambda r: len(_moments(r)) - 1),
    prediction=Prediction(
        "Eleven attention kernels are installed. The GPU is an H100, the model has ordinary heads of 128 and "
        "a causal mask, and its cache was just made int8, in pages of 16 tokens. How many of the eleven can run?",
        "valid",
        "kernels",
    ),
    source="Beyond attention",
)
