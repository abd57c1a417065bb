"""Tokens fall into experts, experts are cut into tiles, and every tile runs whole, however few tokens it holds."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby

from kernels.moe_routing import cost
from widgets import units
from widgets.charts import Box, Scale, axis_y, linear, steady, text_width
from widgets.controls import powers_of_two, slider, steps
from widgets.declare import Declaration, Prediction, Stepper
from widgets.scene import WIDE, Column, Scene, about, drag, figure, handle, line, path, rect, table, text

TILE = powers_of_two("tile", "Tile rows", 8, 8, 128, help="A tensor core runs the whole tile.")
SKEW = slider(
    "skew",
    "Skew of the router",
    1.0,
    0.0,
    2.0,
    step=0.1,
    help="Popularity falls as 1 / rank^skew: 0 is even.",
)
# (the experts' columns, sent and run, height)
PLACES = {
    True: (Box(106, 46, 530, 206), Box(106, 310, 500, 60), 382),
    False: (Box(94, 64, 244, 206), Box(0, 352, 336, 96), 460),
}
# left of the columns, between them and the axis' numbers: one tile, and the load of the first expert
RULER, TILE_AT, LOAD_AT = {True: 64, False: 52}, {True: 44, False: 38}, {True: 10, False: 10}
THIN = 8  # narrower columns are a crowd
TOUCH = 4  # from here down neighbours touch, and equal ones are drawn as one
TOKENS_SEEN, TILES_SEEN = 400, 500  # up to so many are drawn one by one
ONE_BY_ONE, HANDFULS = 40, 12  # up to so many tokens drop one by one; more come in so many handfuls


@dataclass(frozen=True)
class Expert:
    routed_tokens: int
    kept_tokens: int
    dropped_tokens: int
    tiles: int
    slots: int
    padded_slots: int


@dataclass(frozen=True)
class Step:
    """Hold the bill after some of the tokens have dropped."""

    kept: int
    slots: int
    padded_slots: int
    dropped_tokens: int
    useful_share: float


@dataclass(frozen=True)
class Result:
    tokens: int
    expert_count: int
    top_k: int
    tile: int
    experts: tuple[Expert, ...]
    capacity_tokens: int  # tokens that one expert accepts, or 0 without a limit
    routed: int
    kept: int
    tiles: int
    slots: int
    useful_share: float
    useful_of_100: float
    padded_slots: int
    dropped_tokens: int
    dropped_share: float
    even_tokens: float  # of one expert, if all got the same
    busiest: int
    straggler_ratio: float
    unlimited_slots: int  # of the same batch without a limit
    unlimited_useful_share: float
    steps: tuple[Step, ...] = ()


def run(tokens, skew, tile, capacity, experts, top_k) -> Result:
    limit = cost.capacity_limit(tokens, top_k, experts, capacity) if capacity else None
    loads = cost.expert_loads(tokens, top_k, experts, skew)
    u, free = cost.tile_utilization(loads, tile, limit), cost.tile_utilization(loads, tile, None)
    rows = tuple(Expert(e.routed, e.kept, e.dropped, e.tiles, e.slots, e.padded) for e in u.experts)
    whole = Result(
        tokens,
        experts,
        top_k,
        tile,
        rows,
        limit or 0,
        u.routed,
        u.kept,
        u.tiles,
        u.slots,
        u.useful_share,
        100 * u.useful_share,
        u.padded,
        u.dropped,
        u.dropped_share,
        u.routed / experts,
        u.busiest,
        u.straggler,
        free.slots,
        free.useful_share,
    )
    every, count = tuple(loads), _steps(whole)
    after = (_after(every, sum(loads) * n // count, tile, limit) for n in range(1, count + 1))
    return replace(
        whole, steps=tuple(Step(u.kept, u.slots, u.padded, u.dropped, u.useful_share) for u in after)
    )


@lru_cache(maxsize=16)  # for the model, then for both layouts
def _arrivals(loads: tuple[int, ...]) -> tuple[int, ...]:
    """Return the expert of each token in the order in which they drop, with each expert's spread evenly over the time."""
    times = [((i + 0.5) / load, e) for e, load in enumerate(loads) for i in range(load)]
    return tuple(e for _, e in sorted(times))


@lru_cache(maxsize=128)  # the model asks for each step, and the picture again
def _after(loads: tuple[int, ...], many: int, tile: int, limit: int | None) -> cost.TileUtilization:
    """Return the bill at a moment when only some tokens have dropped."""
    so_far = [0] * len(loads)
    for e in _arrivals(loads)[:many]:
        so_far[e] += 1
    return cost.tile_utilization(so_far, tile, limit)


def _steps(r: Result) -> int:
    return r.routed if r.routed <= ONE_BY_ONE else HANDFULS


def _so_far(r: Result, many: int) -> Result:
    """Return the same batch at a moment when only some tokens have dropped."""
    u = _after(_routed(r), many, r.tile, r.capacity_tokens or None)
    return replace(
        r,
        experts=tuple(Expert(e.routed, e.kept, e.dropped, e.tiles, e.slots, e.padded) for e in u.experts),
        routed=u.routed,
        kept=u.kept,
        tiles=u.tiles,
        slots=u.slots,
        padded_slots=u.padded,
        dropped_tokens=u.dropped,
    )


def _routed(r: Result) -> tuple[int, ...]:
    return tuple(e.routed_tokens for e in r.experts)


def _one_by_one(r: Result, unit: float, wide: float) -> bool:
    return r.slots + r.dropped_tokens <= TOKENS_SEEN and unit >= 4 and wide >= 10


def _height(r: Result, plot: Box) -> Scale:
    """Return the top of the axis of slots, a power of two, so that the axis doesn't move while a column grows."""
    tallest = max(16, r.capacity_tokens, r.tile, *(e.slots + e.dropped_tokens for e in r.experts))
    return linear(0, steady("slots", 1 << (tallest - 1).bit_length()), plot.bottom, plot.y)


def _pieces(r: Result, expert: Expert, whole: Result) -> list[tuple[int, int, int]]:
    """Return (first slot, tokens, slots) of each box of a column, for its tiles, or for all as one if there are many."""
    if whole.tiles > TILES_SEEN:
        return [(0, expert.kept_tokens, expert.slots)] if expert.slots else []
    starts = range(0, expert.slots, r.tile)
    return [(at, min(r.tile, expert.kept_tokens - at), r.tile) for at in starts]


def _wide(pitch: float) -> float:
    """Return the width of one expert's tiles."""
    return min(56, pitch * 0.78)


def _column(r: Result, e: int, x: float, wide: float, y: Scale, whole: Result) -> list[dict]:
    """Draw one expert, with its tiles, the tokens in them, empty slots hatched, and above them the dropped tokens."""
    expert, unit, marks = r.experts[e], y(0) - y(1), []
    apart = _one_by_one(whole, unit, wide)
    edge = 2 if apart else 0

    def tokens(id: str, left: float, w: float, first: int, count: int, role: str, tip: str) -> list[dict]:
        if not apart:
            return [rect(id, left, y(first + count), w, count * unit, role, tip)] if count else []
        apart_by = 3 if unit >= 8 else 2
        tops = [y(first + i + 1) + apart_by / 2 for i in range(count)]
        return [rect(f"{id}-{i}", left, top, w, unit - apart_by, role, tip) for i, top in enumerate(tops)]

    for t, (first, held, size) in enumerate(_pieces(r, expert, whole)):
        space = 2 if size * unit >= 8 else 0
        top, high = y(first + size) + space / 2, size * unit - space
        tip = f"Expert {e}: {units.count(held)} of {units.count(size)} slots hold a token"
        marks += about("tiles", rect(f"tile-{e}-{t}", x, top, wide, high, "idle", tip))
        if held < size:
            empty = (size - held) * unit - space - edge / 2
            marks += about(
                "padded", rect(f"pad-{e}-{t}", x + edge, top + edge / 2, wide - 2 * edge, empty, "waste", tip)
            )
        if apart:  # you pay per tile, so its outline is bold
            corners = [(x, top), (x + wide, top), (x + wide, top + high), (x, top + high), (x, top)]
            marks += about("tiles", path(f"edge-{e}-{t}", corners, "axis"))
        marks += about("kept", tokens(f"kept-{e}-{t}", x + edge, wide - 2 * edge, first, held, "useful", tip))
    lost = f"Expert {e}: {units.counted(expert.dropped_tokens, 'token')} dropped"
    above = x + edge, wide - 2 * edge, expert.slots, expert.dropped_tokens
    return marks + about("dropped", tokens(f"lost-{e}", *above, "dropped", lost))


def _crowded(r: Result, plot: Box) -> bool:
    return _wide(plot.w / r.expert_count) < THIN


def _crowd(r: Result, y: Scale, plot: Box) -> list[dict]:
    """Draw very many experts on the same axis, one beside the other. Equal neighbours that touch are one box."""
    pitch = plot.w / r.expert_count
    touch, marks = pitch < TOUCH, []

    def boxes(id: str, term: str, role: str, low: Callable, high: Callable, said: Callable) -> None:
        alike = lambda e: (low(r.experts[e]), high(r.experts[e])) if touch else e  # noqa: E731
        for _, some in groupby(range(r.expert_count), alike):
            first, *_, last = [*some] * 2
            one, x = r.experts[first], plot.x + first * pitch
            foot, top = y(low(one)), y(high(one))
            wide = (last + 1 - first) * pitch if touch else 0.86 * pitch
            who = f"Expert {first}" if first == last else f"Experts {first} to {last}, each"
            if foot > top:
                marks.extend(
                    about(
                        term,
                        rect(f"small-{id}-{first}", x, top, wide, foot - top, role, f"{who}: {said(one)}"),
                    )
                )

    count = units.count
    boxes("pad", "padded", "waste", lambda e: 0, lambda e: e.slots, lambda e: f"{count(e.slots)} slots")
    boxes(
        "kept",
        "kept",
        "useful",
        lambda e: 0,
        lambda e: e.kept_tokens,
        lambda e: f"{count(e.kept_tokens)} of {count(e.slots)} slots hold a token",
    )
    boxes(
        "lost",
        "dropped",
        "dropped",
        lambda e: e.slots,
        lambda e: e.slots + e.dropped_tokens,
        lambda e: f"{count(e.dropped_tokens)} dropped",
    )
    ends = ((0, plot.x, "start"), (r.expert_count - 1, plot.right, "end"))
    for e, x, anchor in ends:
        marks.append(text(f"name-{e}", x, plot.bottom + 16, f"E{e}", "muted", "small", anchor))
        words = f"{_held(r.experts[e])} {_noun(r)}{'' if r.experts[e].routed_tokens == 1 else 's'}"
        marks.append(text(f"held-{e}", x, plot.bottom + 32, words, "ink", "small", anchor))
    words = f"{units.count(r.expert_count)} experts, side by side"
    return [
        *marks,
        text("crowd-name", plot.x + plot.w / 2, plot.bottom + 16, words, "muted", "small", "middle"),
    ]


def _columns(
    r: Result, y: Scale, plot: Box, whole: Result, last: int, coming: int, drawn: dict
) -> list[dict]:
    """Draw all experts. `drawn` keeps a column for the steps in which it stays as it is."""
    pitch = plot.w / r.expert_count
    most = max(whole.experts, key=lambda expert: expert.routed_tokens)
    named = text_width(_held(most) if whole.dropped_tokens else f"E{r.expert_count - 1}", "small") + 8
    wide = _wide(pitch)
    if _crowded(r, plot):
        return _crowd(r, y, plot)
    every = next(n for n in (1, 2, 4, 8, 16, 32, 64) if n * pitch >= named)
    marks = []
    for e, expert in enumerate(r.experts):
        middle = plot.x + (e + 0.5) * pitch
        if (e, expert.routed_tokens) not in drawn:
            drawn[e, expert.routed_tokens] = _column(r, e, middle - wide / 2, wide, y, whole)
        marks += drawn[e, expert.routed_tokens]
        if e % every == 0:
            held = _held(expert)
            marks.append(text(f"name-{e}", middle, plot.bottom + 16, f"E{e}", "muted", "small", "middle"))
            marks.append(text(f"held-{e}", middle, plot.bottom + 32, held, "ink", "small", "middle"))
    named = plot.w < 400 and whole.capacity_tokens and last > 0.6 * r.expert_count  # the limit, on a phone
    if last >= 0 and not named and _one_by_one(whole, y(0) - y(1), wide):
        marks += _news(r, last, plot.x + (last + 0.5) * pitch, wide, y)
    if coming >= 0 and _one_by_one(whole, y(0) - y(1), wide):
        marks.append(_coming(r, coming, plot.x + (coming + 0.5) * pitch - wide / 2, wide, y))
    return marks


def _news(r: Result, e: int, middle: float, wide: float, y: Scale) -> list[dict]:
    """Say over its expert what the last token cost: a whole tile, or nothing."""
    expert = r.experts[e]
    if expert.dropped_tokens:
        words, role = "lost", "dropped"
    elif (expert.kept_tokens - 1) % r.tile:
        words, role = "+0", "useful"
    else:
        words, role = f"+{r.tile}", "hot"
    top = y(expert.slots + expert.dropped_tokens) - 8
    said = [
        text(
            "news",
            middle,
            top,
            words,
            role,
            "big" if wide > 30 and role == "hot" else "body",
            "middle",
            True,
            on="ground",
        )
    ]
    if role != "hot":
        return said
    first = y(expert.slots - r.tile) - 1
    x, high = middle - wide / 2, y(expert.slots) + 1
    corners = [(x, high), (x + wide, high), (x + wide, first), (x, first), (x, high)]
    return [path("opened", corners, "hot", f"this token opens a tile of {r.tile} slots"), *said]


def _noun(r: Result) -> str:
    """Return the noun for one token's row at an expert. A token that goes to several experts counts several times."""
    return "token" if r.top_k == 1 else "pair"


def _held(expert: Expert) -> str:
    """Say an expert's tokens, and how many were sent where some were dropped."""
    kept = units.count(expert.kept_tokens)
    return f"{kept} of {units.count(expert.routed_tokens)}" if expert.dropped_tokens else kept


def _coming(r: Result, e: int, x: float, wide: float, y: Scale) -> dict:
    """Draw the next token over its expert. It bears the name of the slot that it drops into."""
    expert, unit = r.experts[e], y(0) - y(1)
    top, tip = y.end - 8 - unit, f"the next token, for expert {e}"
    if r.capacity_tokens and expert.kept_tokens >= r.capacity_tokens:
        return rect(f"lost-{e}-{expert.dropped_tokens}", x + 2, top, wide - 4, unit - 2, "now", tip)
    t, i = divmod(expert.kept_tokens, r.tile)
    return rect(f"kept-{e}-{t}-{i}", x + 2, top, wide - 4, unit - 2, "now", tip)


def _edge(r: Result, y: Scale, plot: Box) -> list[dict]:
    """The upper edge of one tile, left of the columns: pulled, every tile grows."""
    x = plot.x - TILE_AT[plot.w > 400]
    return [
        *about("tile", line("one-tile", x, y(0), x, y(r.tile), "primary", f"one tile: {r.tile} rows")),
        handle("pull-tile", x, y(r.tile), "primary", drag(TILE, "y", y)),
    ]


@lru_cache(maxsize=256)  # each state asks for every stop of the slider
def _most(tokens: int, top_k: int, experts: int, skew: float) -> int:
    """Return the tokens of the busiest expert at this skew."""
    return max(cost.expert_loads(tokens, top_k, experts, skew))


def _busiest(r: Result, y: Scale, plot: Box) -> list[dict]:
    """Let the load of the busiest expert be pulled, at its side: the router's skew."""
    x, level = plot.x - LOAD_AT[plot.w > 400], y(r.experts[r.busiest].routed_tokens)
    pitch = plot.w / r.expert_count
    to = plot.x + (0 if _crowded(r, plot) else (r.busiest + 0.5) * pitch - _wide(pitch) / 2)

    def load(skew: float) -> float:
        return y(_most(r.tokens, r.top_k, r.expert_count, skew))

    return [
        line(
            "load",
            x,
            level,
            to,
            level,
            "now",
            f"Expert {r.busiest}: {_held(r.experts[r.busiest])} {_noun(r)}s",
        ),
        handle("pull-skew", x, level, "now", drag(SKEW, "y", load)),
    ]


def _limit(r: Result, y: Scale, plot: Box) -> list[dict]:
    """The limit of an expert, if there is one, as a dashed line named on the right."""
    if not r.capacity_tokens:
        return []
    level, words = y(r.capacity_tokens), f"limit: {units.count(r.capacity_tokens)}"
    marks = [line("limit-line", plot.x, level, plot.right + 4, level, "limit", words)]
    if plot.w > 400:
        return [*marks, text("limit-name", plot.right + 8, level + 4, words, "ink", "small")]
    # a phone has no margin: on its line's right end, where the columns are lowest
    return [*marks, text("limit-name", plot.right, level - 4, words, "ink", "small", "end", on="ground")]


def _paid(r: Result, bars: Box, whole: Result) -> list[dict]:
    """Draw the tokens sent and the slots run, to one scale. You pay for the second bar."""
    scale, wide, pitch = linear(0, max(whole.slots, whole.routed), bars.x, bars.right), bars.x > 0, bars.h / 2
    lost = f"{units.count(r.dropped_tokens)} of " if r.dropped_tokens else ""
    rows = (
        (
            f"{_noun(r)}s sent",
            [
                (r.kept, "useful", "kept"),
                (r.dropped_tokens, "dropped", "dropped"),
            ],
            f"{lost}{units.count(r.routed)} dropped" if lost else f"{units.count(r.routed)} in all",
        ),
        (
            "slots run",
            [(r.kept, "useful", "with a token"), (r.padded_slots, "waste", "empty")],
            f"{units.count(r.slots)} in all",
        ),
    )
    marks = []
    for i, (name, parts, end) in enumerate(rows):
        top, at = bars.y + pitch * i + (4 if wide else 18), 0.0
        marks.append(
            text(
                f"paid-name{i}",
                bars.x - 8 if wide else 0,
                top + 16 if wide else top - 5,
                name if wide else f"{name}: {end}",
                anchor="end" if wide else "start",
            )
        )
        for size, role, word in parts:
            words, left, right = f"{units.count(size)} {word}", scale(at), scale(at + size)
            term = {"useful": "kept", "waste": "padded", "dropped": "dropped"}[role]
            marks += about(term, rect(f"paid-{i}-{word}-bar", left, top, right - left, 22, role, words))
            on = "" if role == "useful" else role
            if size and right - left > text_width(words, "body", True) * (1.5 if on else 1) + 16:
                ink = "inverse" if role == "useful" else "ink"
                marks.append(
                    text(
                        f"paid-{i}-{word}",
                        (left + right) / 2,
                        top + 16,
                        words,
                        ink,
                        anchor="middle",
                        bold=True,
                        on=on,
                    )
                )
            at += size
        if wide:
            marks.append(text(f"paid-end{i}", scale(at) + 6, top + 16, end))
    return marks


def _share(useful: float, r: Result, y: Scale, plot: Box) -> list[dict]:
    """Write the answer where the columns are lowest, or on what is empty, if there is room."""
    tallest = max(e.slots + e.dropped_tokens for e in r.experts[r.expert_count // 2 :])
    if not _crowded(r, plot) and y(tallest) < plot.y + 56:
        return []
    on = "waste" if _crowded(r, plot) else "ground"
    size, words = ("huge", "of the slots are useful") if plot.w > 400 else ("big", "useful")
    x, y = plot.right - 6, plot.y + 28
    return about(
        "kept",
        text("share", x, y, units.percent(useful, 0 if useful > 0.1 else 1), "useful", size, "end", True, on),
        text("share-name", x, y + 17, words, "useful", "small", "end", True, on),
    )


def _takeaway(r: Result) -> str:
    if r.dropped_tokens:
        before, after = (units.percent(share) for share in (r.unlimited_useful_share, r.useful_share))
        saved = units.counted(r.unlimited_slots - r.slots, "slot")
        lost = units.counted(r.dropped_tokens, _noun(r))
        return f"The limit drops {lost} to save {saved}: {before} of the slots were useful before, {after} are now."
    if r.useful_share == 1:
        return "Every tile is full, so you pay for no empty slot."
    if r.useful_share < 0.75:
        empty = units.percent(1 - r.useful_share)
        return f"A tile costs the same with one token as with all. Here {empty} of the slots are empty."
    return "With enough tokens per expert only the last tile of each has empty slots, and padding fades."


def _warning(r: Result) -> str:
    if r.dropped_share <= 0.1:
        return ""
    share = units.percent(r.dropped_share)
    return f"{share} of all pairs are dropped: this changes what the model says, not only how fast."


def _table(r: Result):
    columns = [Column(name, show=units.count) for name in ("kept tokens", "tiles", "padded slots", "dropped")]
    rows = [
        (f"E{e}", x.kept_tokens, x.tiles, x.padded_slots, x.dropped_tokens) for e, x in enumerate(r.experts)
    ]
    return table(("expert", *columns), rows)


def frames(r: Result, measured: dict | None = None, width: int = WIDE) -> list[Scene]:
    """Return one scene for each token that has dropped, or for each handful. The last shows all."""
    plot, bars, height = PLACES[width == WIDE]
    y = _height(r, plot)
    limit = f" and a limit of {units.count(r.capacity_tokens)}" if r.capacity_tokens else ""
    same = dict(
        takeaway=_takeaway(r),
        table=_table(r),
        height=height,
        width=width,
        formula=(
            (
                "slots = Σ ⌈{kept} / {tile}⌉ · {tile}",
                f"{units.count(r.tiles)} tiles · {{tile:{r.tile}}} = {units.count(r.slots)}",
            ),
            (
                "useful = {kept} / slots",
                f"{{kept:{units.count(r.kept)}}} / {units.count(r.slots)} = {units.percent(r.useful_share)}",
            ),
        ),
        warning=_warning(r),
    )
    label = f"Slots of each expert, run in whole tiles of {r.tile}"
    if width != WIDE:
        label = f"Slots, in whole tiles of {r.tile}"
    left = plot.x - RULER[width == WIDE]
    fixed = axis_y("slots", y, left, right=plot.right, ticks=[y.hi * q / 4 for q in range(5)])
    fixed.append(text("slots-label", 0, 16, label, bold=True))
    limited, edge, arrivals = (
        _limit(r, y, plot),
        _edge(r, y, plot) + _busiest(r, y, plot),
        _arrivals(_routed(r)),
    )
    count = _steps(r)
    scenes, drawn = [], {}
    for step in range(1, count + 1):
        many = len(arrivals) * step // count
        now = r if many == len(arrivals) else _so_far(r, many)
        coming = arrivals[many] if many < len(arrivals) == count else -1
        last = arrivals[many - 1] if coming >= 0 else -1  # in the end nothing is new
        columns = _columns(now, y, plot, r, last, coming, drawn)
        share = _share(r.steps[step - 1].useful_share, r, y, plot)
        marks = fixed + columns + limited + share + edge + _paid(now, bars, r)
        scenes.append(
            Scene(
                marks=marks,
                caption=_caption(
                    now, arrivals, many, "" if count == len(arrivals) else f"Part {step} of {count}: "
                ),
                **_bill(r, r.steps[step - 1], limit),
                **same,
            )
        )
    return scenes


def _bill(r: Result, now: Step, limit: str) -> dict:
    """Return the figures of a step, and the sentence that says them."""
    useful = figure("of the slots hold a token", now.useful_share, units.percent, "useful", "kept")
    slots = figure("slots run", now.slots, units.count)
    padded = figure("of them empty", now.padded_slots, units.count, "waste", "padded")
    lost = figure(
        f"{_noun(r)}{'' if now.dropped_tokens == 1 else 's'} dropped",
        now.dropped_tokens,
        units.count,
        "dropped",
        "dropped",
    )
    away = f"; {lost.text} are dropped" if r.capacity_tokens else ""
    return {
        "figures": (useful, slots, padded, lost) if r.capacity_tokens else (useful, slots, padded),
        "summary": f"{units.count(r.tokens)} tokens, top-{r.top_k}, {r.expert_count} experts, tiles of {r.tile}"
        f"{limit}: tensor cores run {slots.text} slots for {units.counted(now.kept, _noun(r))}, so {useful.text} hold one and "
        f"{padded.text} are empty{away}.",
    }


def _caption(now: Result, arrivals: tuple[int, ...], many: int, part: str) -> str:
    """Say whether the last token filled a slot, opened a tile, or was turned away. Where tokens come in handfuls, `part`
    is the number of this handful, as the player counts them."""
    sent = f"{units.count(many)} of {units.counted(len(arrivals), _noun(now))}"
    said = f"{part}{sent}{', ' if part else ': '}{units.count(now.slots)} slots run"
    if many == len(arrivals):
        return f"{said} for {units.counted(now.kept, _noun(now))}."
    e = arrivals[many - 1]
    expert = now.experts[e]
    if expert.dropped_tokens:
        return f"{said}. Expert {e} is at its limit and turns the last token away."
    if expert.kept_tokens % now.tile == 1 or now.tile == 1:
        return f"{said}. The last token opens a whole tile at expert {e}."
    return f"{said}. The last token fills a slot that expert {e} already runs."


SIMULATOR = Declaration(
    title="MoE tile utilization",
    question="How many of the slots that you pay for hold a token?",
    controls=(
        powers_of_two("tokens", "Tokens in the batch", 32, 8, 1024),
        SKEW,
        TILE,
        steps(
            "capacity",
            "Limit of an expert",
            0,
            (0, 1, 1.25, 1.5, 2, 3, 4),
            lambda f: f"{units.number(f)}× even" if f else "none",
            help="In even shares. Tokens beyond it are dropped.",
        ),
        powers_of_two("experts", "Experts", 8, 4, 256, more=True),
        powers_of_two("top_k", "Experts a token picks (top-k)", 1, 1, 8, more=True),
    ),
    presets={
        "Skewed, 8 experts": {},
        "Even, 4 experts": {"skew": 0.0, "experts": 4},
        "With a capacity limit": {"capacity": 2},
        "More tokens": {"tokens": 512},
        "256 experts, top-8": {"experts": 256, "top_k": 8, "tokens": 128, "tile": 64, "skew": 0.5},
    },
    run=run,
    stepper=Stepper("token", frames, lambda r: _steps(r) - 1),
    prediction=Prediction(
        "A router sends 32 tokens to 8 experts, one each and unevenly: 12, 6, 4, 3, 2, 2, 2, 1. Tensor cores "
        "run whole tiles of 8 slots. Of 100 slots that run, how many hold a token?",
        "useful_of_100",
    ),
    source="Real kernels; GEMM & MoE kernels",
)
