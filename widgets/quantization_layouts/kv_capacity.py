"""Show weights and key-value cache sharing one memory. Narrower numbers and pages make room for more requests."""

import math
from dataclasses import dataclass

from kernels.quantization_layouts import cost
from widgets import units
from widgets.charts import Box, Scale, axis_x, linear, text_width
from widgets.controls import powers_of_two, slider, steps
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

DENSE_BITS = 16
GB = 1e9
MEAN = slider("mean_tokens", "Mean request", 500, 100, 4000, step=100, unit="tokens")
WEIGHT = steps("weight_bits", "Bits of a weight", 4, (2, 3, 4, 8, 16))
# (one GPU's memory, one request's cache, height)
PLACES = {
    True: (Box(168, 34, 436, 3 * 44), Box(168, 246, 436, 3 * 44), 386),
    False: (Box(0, 34, 336, 3 * 56), Box(0, 306, 336, 3 * 62), 498),
}
STEPS = 20  # in which requests arrive, each time by the same factor more
KNOB = 18  # what a knob with its arrows takes to each side


@dataclass(frozen=True)
class Served:
    """Hold one way to keep weights and cache, with the bytes of one GPU and the requests of the group."""

    name: str
    detail: str
    weight_bits: int
    kv_bits: int
    weight_bytes: float
    free_bytes: float
    request_bytes: float  # over all GPUs
    used_share: float  # of a request's cache that holds tokens
    requests: int


@dataclass(frozen=True)
class Result:
    devices: int
    memory_bytes: float
    tokens: int
    mean_tokens: int
    page_tokens: int
    kv_bytes_per_token: float  # at 16 bits
    waste_share: float  # of whole reservations
    before: Served
    narrow: Served
    paged: Served
    grown: int  # requests with pages, if all grow to the longest
    gain: float  # narrow over before, or 0 if the 16-bit weights do not fit
    paged_gain: float
    freed_bytes: float


def run(
    weight_bits, kv_bits, tokens, mean_tokens, page_tokens, kv_heads, layers, parameters_b, devices, memory_gb
):
    waste = cost.fragmentation_waste(tokens, mean_tokens)
    paged_waste = cost.fragmentation_waste(tokens, mean_tokens, page_tokens)

    def served(name: str, detail: str, bits: int, cache_bits: int, empty: float) -> Served:
        fits = cost.serving_capacity(
            parameters_b * GB,
            devices=devices,
            memory_bytes=memory_gb * GB,
            tokens=tokens,
            layers=layers,
            kv_heads=kv_heads,
            head_dim=128,
            weight_bits=bits,
            kv_bits=cache_bits,
        )
        smaller = (1 - waste) / (1 - empty)  # a request with pages holds little more than its tokens
        requests = max(0, math.floor(fits.free_bytes / (fits.request_bytes * smaller)))
        return Served(
            name,
            detail,
            bits,
            cache_bits,
            fits.weight_bytes,
            max(0.0, fits.free_bytes),
            fits.total_request_bytes * smaller,
            1 - empty,
            requests,
        )

    before = served("16 bits", "weights and cache", DENSE_BITS, DENSE_BITS, waste)
    narrow = served("Fewer bits", f"weights {weight_bits}, cache {kv_bits}", weight_bits, kv_bits, waste)
    paged = served(
        "Plus paging", f"pages of {units.counted(page_tokens, 'token')}", weight_bits, kv_bits, paged_waste
    )
    return Result(
        devices,
        memory_gb * GB,
        tokens,
        mean_tokens,
        page_tokens,
        cost.kv_bytes_per_token(layers, kv_heads, 128),
        waste,
        before,
        narrow,
        paged,
        min(paged.requests, math.floor(narrow.free_bytes * devices / narrow.request_bytes)),
        narrow.requests / before.requests if before.requests else 0.0,
        paged.requests / narrow.requests if narrow.requests else 0.0,
        before.weight_bytes - narrow.weight_bytes,
    )


def _row(id: str, box: Box, i: int, name: str, detail: str) -> list[dict]:
    top = box.y + i * box.h / 3
    if not box.x:
        return [text(f"{id}-name", 0, top + 15, f"{name}: {detail}", "ink", "small")]
    return [
        text(f"{id}-name", box.x - 14, top + 13, name, anchor="end", bold=True),
        text(f"{id}-detail", box.x - 14, top + 29, detail, "muted", "small", "end"),
    ]


def _inside(id: str, left: float, right: float, y: float, words: str, role: str, on: str = "") -> list[dict]:
    """Write a name in the middle of its bar, or its first word, or nothing, where the bar is short."""
    short, spare = (
        words.split(" ", 1)[0].rstrip(","),
        34 if on else 8,
    )  # a part of a hatched bar shows around the plate
    fits = [one for one in (words, short) if text_width(one, "small", True) + spare <= right - left]
    return (
        [text(id, (left + right) / 2, y, fits[0], role, "small", "middle", bold=True, on=on)] if fits else []
    )


def _filled(r: Result, id: str, s: Served, x: Scale, top: float, here: int) -> list[dict]:
    """Draw one GPU's memory with `here` requests, in pieces from left to right, each named where there is room."""
    full = r.memory_bytes - s.free_bytes
    taken = here * s.request_bytes / r.devices
    held = taken * s.used_share
    weights, over = f"weights {units.si_bytes(s.weight_bytes)}", s.weight_bytes - r.memory_bytes
    if over > 0:
        weights += f", {units.si_bytes(over)} too many"
    left_over = f"free {units.si_bytes(max(0.0, s.free_bytes - taken))}"
    parts = (
        ("weights", 0, full, "primary", weights),
        ("tokens", full, full + held, "useful", f"tokens {units.si_bytes(held)}"),
        ("empty", full + held, full + taken, "waste", f"reserved, empty {units.si_bytes(taken - held)}"),
        ("left", full + taken, r.memory_bytes, "idle", left_over),
    )
    marks = []
    for part, start, end, role, tip in parts:
        if end - start < 1e-6 * r.memory_bytes:
            continue
        left, right = x(start), x(end)
        bar = rect(f"m-{id}-{part}", left, top + 2, right - left, 28, role, f"{s.name}: {tip}")
        marks += about("weights" if part == "weights" else "memory", bar)
        if id == "narrow":  # its knob is where the weights end
            left, right = (left, right - KNOB) if part == "weights" else (max(left, x(full) + KNOB), right)
        if role in ("primary", "useful"):
            marks += _inside(f"m-{id}-{part}-name", left, right, top + 21, tip, "inverse")
        elif role == "waste":
            marks += _inside(f"m-{id}-{part}-name", left, right, top + 21, tip, "ink", "waste")
    return marks


def _memory(r: Result, at: Box, arrived: int) -> list[dict]:
    """Draw one GPU's memory, divided into weights, present tokens, and reserved empty room."""
    x = linear(0, r.memory_bytes, at.x, at.right)
    marks = [
        text(
            "memory-title",
            0,
            16,
            "Memory of the one GPU" if r.devices == 1 else f"Memory of one GPU of {r.devices}",
            bold=True,
        ),
        text(
            "requests-title",
            WIDE if at.x else NARROW,
            16,
            "requests at once" if at.x else "at once",
            "muted",
            "small",
            "end",
        ),
    ]
    rows = (("before", r.before, "ink"), ("narrow", r.narrow, "primary"), ("paged", r.paged, "useful"))
    for i, (id, s, ink) in enumerate(rows):
        top = at.y + i * at.h / 3 + (0 if at.x else 18)
        marks += _row(f"m-{id}", at, i, s.name, s.detail)
        here = min(arrived, s.requests)
        marks += _filled(r, id, s, x, top, here)
        if s.weight_bytes > r.memory_bytes:
            marks.append(_break(f"m-{id}-break", at.right - 14, top + 2))
        count = units.count(here)
        marks.append(
            text(
                f"m-{id}-requests",
                WIDE if at.x else NARROW,
                top + (25 if at.x else -3),
                count,
                ink,
                "huge" if at.x else "big",
                "end",
                bold=True,
            )
        )
    if r.grown < r.paged.requests:
        words = f"{units.count(r.grown)} if all grow"
        place = (WIDE, at.bottom - 2) if at.x else (NARROW, at.bottom + 7)
        marks.append(text("grown", *place, words, "hot", "small", "end", bold=True))
    per = r.narrow.weight_bytes / r.narrow.weight_bits
    marks.append(
        handle(
            "pull-weight",
            x(r.narrow.weight_bytes),
            at.y + at.h / 3 + (16 if at.x else 34),
            "primary",
            drag(WEIGHT, "x", lambda bits: x(per * bits)),
        )
    )
    if at.x:
        return marks + axis_x("memory", x, at.bottom + 2, "", units.si_bytes) + _key(at.x + 96, 7)
    return (
        marks + axis_x("memory", x, at.bottom + 16, ticks=()) + _phone_ticks(r, at) + _key(0, at.bottom + 46)
    )


def _break(id: str, x: float, top: float) -> dict:
    """Draw a torn end in a bar that is longer than its memory."""
    return path(id, [(x + (5 if i % 2 else 0), top + 4 * i) for i in range(8)], "inverse", "goes on")


def _phone_ticks(r: Result, at: Box) -> list[dict]:
    """The axis' ends, which a phone has no margin for."""
    ends = ((0, 0.0, "start"), (1, 0.5, "middle"), (2, 1.0, "end"))
    return [
        text(
            f"memory-tick{i}",
            at.x + share * at.w,
            at.bottom + 32,
            units.si_bytes(share * r.memory_bytes),
            "muted",
            "small",
            anchor,
        )
        for i, share, anchor in ends
    ]


def _key(left: float, top: float) -> list[dict]:
    """Name the parts of both panels, because most are too short for a name."""
    marks = []
    for role, name in (("primary", "weights"), ("useful", "tokens"), ("waste", "reserved, empty")):
        marks += [
            rect(f"key-{role}", left, top, 10, 10, role, name),
            text(f"key-{role}-name", left + 15, top + 9, name, "muted", "small"),
        ]
        left += 33 + text_width(name, "small")
    return marks


def _request(r: Result, at: Box) -> list[dict]:
    """The cache of one request, drawn against the one of 16 bits."""
    x = linear(0, r.before.request_bytes, at.x, at.right)
    said = f"{units.count(r.tokens)} tokens reserved, {units.count(r.mean_tokens)} there on average"
    marks = [
        text(
            "request-title",
            0,
            at.y - (34 if at.x else 18),
            f"Cache of one request: {said}" if at.x else "Cache of one request",
            bold=True,
        ),
    ]
    for i, (id, s) in enumerate((("before", r.before), ("narrow", r.narrow), ("paged", r.paged))):
        top, held = at.y + i * at.h / 3 + (0 if at.x else 18), s.request_bytes * s.used_share
        marks += _row(f"r-{id}", at, i, s.name, f"{s.kv_bits} bits a number")
        if i == 0:
            per = held / r.mean_tokens
            place = linear(0, r.before.request_bytes / per, at.x, at.right)
            # off the bar, because it would hide the bar's end
            beside, end = (top - 6 if at.x else top + 34), place(r.mean_tokens)
            marks.append(line("mean-end", end, beside, end, top + 30, "axis"))
            pulled = handle("pull-mean", end, beside, "useful", drag(MEAN, "x", place))
        marks += [
            rect(f"r-{id}-held", x(0), top + 2, max(1.5, x(held) - x(0)), 28, "useful",
                 f"tokens: {units.si_bytes(held)}"),
            rect(f"r-{id}-empty", x(held), top + 2, x(s.request_bytes) - x(held), 28, "waste",
                 f"reserved and empty: {units.si_bytes(s.request_bytes - held)}"),
            text(f"r-{id}-bytes", WIDE if at.x else NARROW, top + (22 if at.x else -3), units.si_bytes(s.request_bytes), "ink", "body", "end", bold=True),
        ]  # fmt: skip
        empty = f"{units.percent(1 - s.used_share, 0)} empty"
        marks += _inside(
            f"r-{id}-share",
            x(held),
            x(s.request_bytes),
            top + 21,
            empty,
            "ink",
            "waste",
        )
    return [*marks, pulled]


def _warning(r: Result) -> str:
    for s in (r.narrow, r.before):
        if not s.requests:
            words = "with fewer bits too" if s is r.narrow else "in 16 bits"
            return (
                f"Nothing fits {words}: the weights take {units.si_bytes(s.weight_bytes)} for a GPU that has "
                f"{units.si_bytes(r.memory_bytes)}."
            )
    return ""


def _takeaway(r: Result) -> str:
    if not r.before.requests:
        return "16-bit weights leave no room here, so fewer bits are the only way to run."
    if r.gain <= 1:
        return "Everything has 16 bits here, so only paging makes room."
    if r.narrow.kv_bits == 16:
        return "Narrower weights free memory once, but each request still takes as much as before."
    if r.narrow.weight_bits == 16:
        return "A narrower cache fits more requests into the same room. The weights keep their share."
    if r.waste_share > 0.9:
        empty = units.percent(r.waste_share, 0)
        return f"The longest request sets what each one reserves. {empty} of it stays empty, and paging helps most here."
    return (
        f"Paging promises room that isn't reserved: {units.count(r.paged.requests)} fit while requests stay short, "
        f"{units.count(r.grown)} if all grow to {units.count(r.tokens)} tokens."
    )


def _table(r: Result):
    columns = (
        "kept as",
        Column("weights a GPU", "B", units.si_bytes),
        Column("free a GPU", "B", units.si_bytes),
        Column("cache of a request", "B", units.si_bytes),
        Column("holds tokens", show=units.percent),
        Column("requests", show=units.count),
    )
    rows = [
        (f"{s.name}: {s.detail}", s.weight_bytes, s.free_bytes, s.request_bytes, s.used_share, s.requests)
        for s in (r.before, r.narrow, r.paged)
    ]
    return table(columns, rows)


def _arrivals(r: Result) -> list[int]:
    """Return how many requests have come at each step, by the same factor more each time, up to the most that fit."""
    most = max(1, r.before.requests, r.narrow.requests, r.paged.requests)
    return sorted({max(1, round(most ** (k / STEPS))) for k in range(1, STEPS + 1)} | {most})


def _caption(r: Result, arrived: int) -> str:
    """Say which ways are full."""
    came = f"{units.counted(arrived, 'request')} {'has' if arrived == 1 else 'have'} come"
    full = [s.name.lower() for s in (r.before, r.narrow, r.paged) if s.requests <= arrived]
    if not full:
        return f"{came}, and all three ways have room."
    if len(full) == 3:
        return f"{came}. Now every way is full."
    return f"{came}. Already full: {', '.join(full)}."


def frames(r: Result, measured: dict | None = None, width: int = WIDE) -> list[Scene]:
    """Return one scene for each wave of requests. The last has all that fit."""
    memory_at, request_at, height = PLACES[width == WIDE]
    before = figure("requests in 16 bits", r.before.requests, units.count)
    narrow = figure("with fewer bits", r.narrow.requests, units.count, "primary")
    paged = figure(
        f"plus paging, at {units.count(r.mean_tokens)} tokens each", r.paged.requests, units.count, "useful"
    )
    figures = (before, narrow, paged)
    request = units.si_bytes(r.narrow.request_bytes)
    if r.devices > 1:
        request = f"({request} / {units.counted(r.devices, 'GPU')})"
    times = f", {units.times(r.gain)} as many" if r.before.requests else " from none before"
    same = dict(
        summary=f"{units.counted(r.devices, 'GPU')} {'holds' if r.devices == 1 else 'hold'} {before.text} requests of "
        f"{units.count(r.tokens)} tokens with 16-bit weights and cache, {narrow.text} with fewer bits{times}, and "
        f"{paged.text} with pages.",
        takeaway=_takeaway(r),
        figures=figures,
        table=_table(r),
        height=height,
        width=width,
        formula=(
            (
                "requests = ({memory_gb:memory} − {weights}) / cache of a request",
                f"({{memory_gb:{units.si_bytes(r.memory_bytes)}}} − {{weights:{units.si_bytes(r.narrow.weight_bytes)}}}) / "
                f"{request} = {narrow.text}",
            ),
            (
                "a token = 2 · {layers} · {kv_heads:KV heads} · 128 · bytes",
                f"{units.si_bytes(r.kv_bytes_per_token)} in 16 bits",
            ),
        ),
        warning=_warning(r),
    )
    one = _request(r, request_at)
    return [Scene(marks=_memory(r, memory_at, n) + one, caption=_caption(r, n), **same) for n in _arrivals(r)]


SIMULATOR = Declaration(
    title="KV-cache capacity",
    question="How many requests fit next to the weights?",
    controls=(
        WEIGHT,
        steps("kv_bits", "Bits of a cached number", 8, (4, 8, 16)),
        powers_of_two(
            "tokens",
            "Longest request",
            4096,
            1024,
            32768,
            unit="tokens",
            help="Without pages, room for all of them is reserved.",
        ),
        MEAN,
        powers_of_two("page_tokens", "Tokens of a page", 16, 1, 256, more=True),
        powers_of_two(
            "kv_heads", "Key-value heads", 8, 1, 64, more=True, help="Fewer than query heads with GQA."
        ),
        slider("layers", "Layers", 80, 8, 128, step=8, more=True),
        slider("parameters_b", "Weights of the model", 70, 1, 400, unit="billion", more=True),
        powers_of_two("devices", "GPUs", 8, 1, 16, more=True),
        steps("memory_gb", "Memory of a GPU", 80, (24, 40, 80, 141, 192), unit="GB", more=True),
    ),
    presets={
        "4-bit weights, 8-bit cache": {},
        "Only the cache": {"weight_bits": 16},
        "Only the weights": {"kv_bits": 16},
        "Long requests": {"tokens": 32768, "mean_tokens": 1000},
        "One GPU of 80 GB": {"devices": 1},
    },
    run=run,
    stepper=Stepper("wave of requests", frames, lambda r: len(_arrivals(r)) - 1),
    prediction=Prediction(
        "Eight GPUs of 80 GB hold a 70B model and 372 requests of 4,096 tokens, all in 16 bits. How many requests "
        "with 4-bit weights and an 8-bit cache?",
        "narrow.requests",
        "requests",
        0.1,
        units.count,
    ),
    source="Performance Engineering",
)
