"""Roll a request through the gates of each kernel, fastest first, until one takes it."""

from collections import Counter
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
}  # the feature that each operation's knob changes


@dataclass(frozen=True)
class Layout:
    width: int
    top: float  # of the first lane
    room: float  # for all lanes
    widest_pitch: float
    start: float  # of a lane
    end: float  # of all gates in a row
    dial: tuple[float, float]  # from, to
    height: int

    @property
    def wide(self) -> bool:
        return self.width == WIDE


LAYOUTS = {
    True: Layout(720, 122, 290, 40, 34, 716, (24, 464), 430),
    False: Layout(340, 190, 446, 62, 26, 330, (20, 320), 668),
}
REASON = 158  # units that the words of a shut gate take


@dataclass(frozen=True)
class Row:
    backend: str
    preference: int
    valid: bool
    checked: tuple[str, ...]  # features that it has rules for
    broken: tuple[str, ...]  # those that this request breaks
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
    place: int  # of the chosen in the order of speed, 0 if nothing may run
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
            tuple(rule.feature for rule in _in_order(one.broken_rules, features)),
            "; ".join(_words(rule) for rule in _in_order(one.broken_rules, features)),
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


def _in_order(rules, features: dict) -> list:
    """Return the rules in the order in which a lane has their gates."""
    return sorted(rules, key=lambda rule: list(features).index(rule.feature))


def _words(rule) -> str:
    allowed = " / ".join(_value(rule.feature, one) for one in rule.values)
    kind = {"among": "only ", "at least": "at least ", "at most": "at most ", "multiple of": "multiples of "}[
        rule.kind
    ]
    return f"{LABELS[rule.feature]}: {kind}{allowed}"


def _fitted(why: str) -> str:
    """Name the first broken rule and the number of others. The tip and the table list all."""
    first, *more = why.split("; ")
    return first.split(": ")[1] + (f", and {len(more)} more" if more else "")


def _named(backend: str, at: Layout) -> str:
    return backend if at.wide else backend.replace(" over NVLink", "").replace(", grouped", "")


def _lane_end(r: Result, at: Layout) -> float:
    """Return where a lane ends: before the names of the kernels, on a phone above them."""
    if not at.wide:
        return at.end
    return at.end - REASON - 24 - max(text_width(row.backend, "body", True) for row in r.rows)


def _columns(r: Result, at: Layout) -> dict[str, float]:
    """Return the position of each feature's gates, as wide as its words, from the lanes' start to their end."""
    left, right = at.start + 8, _lane_end(r, at) - 8
    needs = {name: _head_width(r, name) if at.wide else 20 for name in r.features}
    spare = (right - left - sum(needs.values())) / len(needs)
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


@dataclass(frozen=True)
class Moment:
    """Hold one step: the lane that the request is in, and how many gates it has passed."""

    lane: int
    passed: int  # gates of this lane that it went through
    done: bool  # the lane has refused or taken it


def _moments(r: Result) -> list[Moment]:
    """Return the steps: into a lane, through its gates, until one is shut or the kernel takes it."""
    out = []
    for row in r.rows[: r.place or len(r.rows)]:
        gates = [name for name in r.features if name in row.checked]
        through = next((i for i, name in enumerate(gates) if name in row.broken), len(gates))
        out += [Moment(row.preference, i, False) for i in range(through)]
        out.append(Moment(row.preference, through, True))
    return out


def _lane_y(r: Result, at: Layout, lane: int) -> float:
    return at.top + _pitch(r, at) * lane + 11


def _row(r: Result, row: Row, columns: dict[str, float], now: Moment, at: Layout) -> list[dict]:
    """Draw a lane with its gates and its kernel. Colours come as the request comes, and a missing rule has no gate."""
    i, y, end = row.preference, _lane_y(r, at, row.preference), _lane_end(r, at)
    over = i < now.lane or (i == now.lane and now.done)
    here, taken = i == now.lane, over and row.backend == r.chosen
    tip = f"{i + 1}. {row.backend}: " + (
        row.why or ("takes it" if row.backend == r.chosen else "would take it too")
    )
    gates = [name for name in columns if name in row.checked]
    stop = next((columns[name] for name in gates if name in row.broken), end)
    came = stop if over else columns[gates[now.passed - 1]] if here and now.passed else at.start
    marks = [line(f"row{i}-lane", at.start, y, end, y, "grid", tip)]
    if i <= now.lane:
        role = "useful" if taken else "hot" if over else "now"
        marks.append(line(f"row{i}-way", at.start, y, came, y, role, tip))
    asked = not r.place or i < r.place
    for k, name in enumerate(gates if asked else ()):
        reached = (over and columns[name] <= stop) or (here and k < now.passed)
        marks += _gate(f"row{i}-{name}", columns[name], y, name in row.broken, reached, row, name, r)
    role = "muted" if not over else "useful" if taken else "hot"
    bold = here or taken
    words = (
        "takes it"
        if taken
        else _fitted(row.why)
        if row.why and over
        else ""
        if asked
        else "slower, takes it too"
        if row.valid
        else "slower, would refuse"
    )
    name_x, low = (end + 10, y + 4) if at.wide else (at.start, y + 21)
    marks += [
        text(f"row{i}-place", at.start - 8, y + 4, str(i + 1), "muted", "small", "end"),
        text(
            f"row{i}-name",
            name_x,
            low,
            _named(row.backend, at),
            role,
            "body" if at.wide else "small",
            bold=bold,
        ),
    ]
    if words:
        marks.append(text(f"row{i}-why", at.end, low, words, role, "small", "end", bold=taken))
    return marks


def _gate(
    id: str, x: float, y: float, shut: bool, reached: bool, row: Row, name: str, r: Result
) -> list[dict]:
    """Draw a gate across a lane: two posts with a way between them, or a bar where it is shut."""
    said = (
        f"{row.backend}: {LABELS[name]} {_value(name, r.features[name])} is {'refused' if shut else 'taken'}"
    )
    if shut:
        return [rect(id, x - 4, y - 10, 8, 20, "hot" if reached else "idle", said)]
    role = "useful" if reached else "idle"
    return [rect(id, x - 4, y - 10, 8, 7, role, said), rect(f"{id}-low", x - 4, y + 3, 8, 7, role, said)]


def _request(r: Result, columns: dict[str, float], now: Moment, at: Layout) -> list[dict]:
    """Draw the request where it has come to: before a shut gate, in an open one, or at the kernel."""
    row, y = r.rows[now.lane], _lane_y(r, at, now.lane)
    gates = [name for name in columns if name in row.checked]
    if now.done:
        x = columns[gates[now.passed]] - 10 if now.passed < len(gates) else _lane_end(r, at) - 2
    else:
        x = columns[gates[now.passed - 1]] if now.passed else at.start
    return [circle("request", x, y, 6, "now", f"the request, at {row.backend}")]


def _head(r: Result, columns: dict[str, float], at: Layout) -> list[dict]:
    marks = [] if at.wide else [text("head-order", 0, at.top - 40, "fastest first", "muted", "small")]
    for i, (name, x) in enumerate(columns.items()):
        value = _value(name, r.features[name])
        if at.wide:
            pair = [
                text(f"head-{name}", x, at.top - 26, LABELS[name], "muted", "small", "middle"),
                text(f"head-{name}-value", x, at.top - 10, value, "ink", "small", "middle", True),
            ]
        else:
            # the columns are narrower than their names, which take two rows
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
    """Draw the feature that decides most here, with the rank by speed of the kernel that each of its values would run."""
    control = DIALS[r.operation]
    start, end = at.dial
    places = {
        stop: start + (end - start) * i / (len(control.stops) - 1) for i, stop in enumerate(control.stops)
    }
    marks = [
        text("dial-title", 0, 14, f"Change the {LABELS[control.name]}: who takes the request?", bold=True),
        line("dial", start, 34, end, 34, "axis"),
    ]
    for i, (stop, x) in enumerate(places.items()):
        chosen = stop == r.features[control.name]
        anchor, shift = ("start", -20) if i == 0 else ("end", 20) if i == len(places) - 1 else ("middle", 0)
        place, runs = r.places[i], f"{'kernel' if at.wide else 'no.'} {r.places[i]}"
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
            text(f"dial{i}-place", x + shift, 74, runs if place else "nobody", role, "small", anchor, chosen),
        ]
    knob = drag(control, "x", lambda stop: places[stop])
    return [*marks, handle("pull-dial", places[r.features[control.name]], 34, "now", knob)]


def _unused(r: Result, at: Layout) -> list[dict]:
    """The controls in view that change nothing here."""
    names = [one.label for one in (GPU, CACHE, WEIGHTS) if one.name not in r.features]
    y = at.height - (4 if at.wide else 20)
    return [text("unused", 0, y, f"No effect here: {', '.join(names)}", "muted", "small")]


CONTROLS = {"attention": "attention_kind"}  # a feature of another name than its control


def _caption(r: Result, now: Moment) -> str:
    row = r.rows[now.lane]
    if not now.done:
        gates = [name for name in r.features if name in row.checked]
        if not now.passed:
            return f"Kernel {now.lane + 1}, {row.backend}, is asked."
        name = gates[now.passed - 1]
        return (
            f"Kernel {now.lane + 1}, {row.backend}: open for {LABELS[name]} {_value(name, r.features[name])}."
        )
    if row.backend == r.chosen:
        rest = " Slower kernels are not asked." if now.lane < len(r.rows) - 1 else ""
        return f"Kernel {now.lane + 1}, {row.backend}, takes the request.{rest}"
    end = "The next one is asked" if now.lane < len(r.rows) - 1 else "There is no next one"
    return f"Kernel {now.lane + 1}, {row.backend}, refuses ({row.why}). {end}."


STEPPED_IN = {  # what to keep when faster ones refuse, by operation
    "attention": "{chosen} takes {feature} {value}, which {refuse} refuse.",
    "gemm": "Weights and kernel must agree. What ranks above {chosen} can't read this form of weights.",
    "moe": "Grouped kernels read one format each. What ranks above {chosen} reads another.",
    "all-reduce": "A one-shot kernel is built for one number of GPUs, so the others refuse.",
}
NCCL = "One-shot kernels take small messages within one node. NCCL ranks last and takes everything."


def _faster(some: int, every: int) -> str:
    if some == every:
        return "all faster kernels" if some == 1 else f"all {every} faster kernels"
    return f"{some} of the {every} faster kernels"


def _takeaway(r: Result) -> str:
    if not r.chosen:
        return "No kernel takes this request, so an engine must refuse it and say why."
    if r.chosen == "NCCL":
        return NCCL
    if r.ahead_but_invalid:
        ahead = r.rows[: r.place - 1]
        refused = Counter(name for row in ahead for name in row.broken)
        feature = max(refused, key=refused.get)
        words = {"feature": LABELS[feature], "value": _value(feature, r.features[feature])}
        return STEPPED_IN[r.operation].format(
            chosen=r.chosen, refuse=_faster(refused[feature], len(ahead)), **words
        )
    return "Here the fastest kernel takes the request. Change one feature and see who steps in."


def _formula(r: Result) -> tuple[tuple[str, str], ...]:
    names = [CONTROLS.get(name, name) for name in r.features]
    asked = ", ".join(
        f"{{{control}:{LABELS[name]}}}" for control, name in zip(names, r.features, strict=True)
    )
    given = ", ".join(f"{{{c}:{_value(n, r.features[n])}}}" for c, n in zip(names, r.features, strict=True))
    return ((f"runs = the fastest that takes {asked}", f"{given}: {r.chosen or 'none'}"),)


def frames(r: Result, measured: dict | None = None, width: int = WIDE) -> list[Scene]:
    """Return one scene for each gate that the request comes to. The last shows its whole way."""
    at = LAYOUTS[width == WIDE]
    columns = _columns(r, at)
    head = _head(r, columns, at)
    valid = figure(f"able to take it, of {r.backends} kernels", r.valid, units.count)
    ahead = figure("ranked higher, but refuse" if r.chosen else "refuse it", r.ahead_but_invalid, units.count)
    place = figure(
        f"runs, ranked {r.place} by speed" if r.place else "of the kernels runs",
        r.place,
        lambda place: _named(r.chosen, at) if place else "none",
        "useful" if r.place else "hot",
    )
    chosen = (
        f"{place.text} runs, ranked {units.count(r.place)}"
        if r.chosen
        else f"nothing runs: {place.text} is left"
    )
    same = {
        "summary": f"{KERNELS[r.operation]}: {valid.text} of {r.backends} kernels could take this request, "
        f"{ahead.text} {'ranked higher ' if r.chosen else ''}{'refuses' if ahead.value == 1 else 'refuse'} it, and {chosen}.",
        "takeaway": _takeaway(r),
        "figures": (place, valid, ahead),
        "table": table(
            ("kernel", "rank by speed", "takes it", "rules it breaks"),
            [(x.backend, str(x.preference + 1), "yes" if x.valid else "no", x.why or "none") for x in r.rows],
        ),
        "height": at.height,
        "width": width,
        "legend": (
            ("useful", "a gate with a gap lets it through, no gate takes anything"),
            ("hot", "a bar refuses"),
            ("idle", "not reached"),
        ),
        "formula": _formula(r),
        "warning": "" if r.chosen else "No kernel of this table takes the request.",
    }
    scenes = []
    for now in _moments(r):
        rows = [mark for row in r.rows for mark in _row(r, row, columns, now, at)]
        scenes.append(
            Scene(marks=head + rows + _request(r, columns, now, at), caption=_caption(r, now), **same)
        )
    return scenes


SIMULATOR = Declaration(
    title="Backend dispatcher",
    question="Which is the fastest kernel that takes this request?",
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
    stepper=Stepper("gate", frames, lambda r: len(_moments(r)) - 1),
    prediction=Prediction(
        "Eleven attention backends stand in order of speed. The GPU is an H100, the model has ordinary heads of 128 and "
        "a causal mask, and its cache was just made int8, in pages of 16 tokens. How many of the eleven may run?",
        "valid",
        "backends",
    ),
    source="Beyond attention",
)
