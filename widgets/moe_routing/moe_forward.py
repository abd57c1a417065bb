"""A mixture-of-experts layer in six steps, on numbers small enough to follow one token through."""

from dataclasses import dataclass
from typing import NamedTuple

from kernels.moe_routing import cost
from widgets import units
from widgets.controls import slider
from widgets.declare import Declaration, Prediction, Stepper
from widgets.moe_routing.moe_forward_choice import choice_panel
from widgets.moe_routing.moe_forward_launches import launch_strip
from widgets.scene import NARROW, WIDE, Column, Scene, drag, figure, handle, line, rect, table, text, together

GAP, SLOT_GAP = 8, 5  # between two experts' blocks, between two tokens' results
BRACKET = 58  # how far before its rows an expert's bracket is, with room for the names between
NAME = 40  # where a token's name ends, clear of the knob
FOLLOW = slider("follow", "Follow token", 1, 0, 5)


class Plan(NamedTuple):
    """Hold where each column begins. A phone has room for two, so a later column replaces one that is done with."""

    wide: bool
    top: int
    room: int  # for the rows, from the top down
    height: int
    inputs: int  # what one number of an input takes, with one decimal
    logit: int  # what a logit takes
    cell: int  # what one number of a result takes, with two decimals
    x: int
    logits: int
    rows: int
    going: int  # the rows again, on their way back
    returned: int  # the results, back at their tokens
    weighted: int  # the results, about to be added
    out: int
    high: float = 0  # of a row, once the numbers of rows are known


PLACES = {
    True: Plan(True, 86, 340, 428, 34, 44, 42, 46, 160, 454, 268, 560, 326, 560),
    False: Plan(False, 114, 304, 486, 30, 46, 36, 44, 146, 220, 228, 44, 40, 234),
}
ROUTER, TOP_K, PERMUTE, EXPERTS, RETURN, COMBINE = range(6)
SHOW, EXACT = units.fixed(2), units.fixed(1)  # of results, and of inputs, which have one decimal


@dataclass(frozen=True)
class Result:
    token_count: int
    expert_count: int
    top_k: int
    follow: int
    x: tuple
    gate: tuple  # the router's weights
    layer: cost.MoeForward
    rows: int
    active_experts: int
    busiest_rows: int
    separate_launches: int
    fused_launches: int
    largest_difference: float  # from the sum token by token, without any permuting
    step_launches: tuple[int, ...]  # of each step by itself


def run(top_k, follow, tokens, experts) -> Result:
    if follow >= tokens:
        raise ValueError(f"follow must be below {tokens}, the number of tokens, got {follow}; pick another")
    x, router, mlps = cost.example(tokens, experts)
    layer = cost.moe_forward(x, router, mlps, top_k)
    direct = cost.direct_forward(x, router, mlps, top_k)
    active = sum(load > 0 for load in layer.loads)
    gaps = [
        abs(a - b)
        for ours, theirs in zip(layer.combined, direct, strict=True)
        for a, b in zip(ours, theirs, strict=True)
    ]
    return Result(
        tokens,
        experts,
        top_k,
        follow,
        tuple(map(tuple, x)),
        tuple(map(tuple, router)),
        layer,
        tokens * top_k,
        active,
        max(layer.loads),
        cost.launches(active, fused=False),
        cost.launches(active, fused=True),
        max(gaps),
        cost.step_launches(active),
    )


def _high(r: Result, plan: Plan) -> float:
    """Return the height of a row with which every step's columns fit."""
    lines = sum(max(1, load) for load in r.layer.loads)
    sorted_rows = (plan.room - GAP * r.expert_count) / lines
    slots = (plan.room / r.token_count - SLOT_GAP) / r.top_k
    return min({2: 44, 3: 34}.get(r.token_count, 24), sorted_rows, slots)


def _token_y(r: Result, token: int, plan: Plan) -> float:
    """The top of a token's row, and of its results."""
    high = plan.high
    return plan.top + token * max(high + 22, r.top_k * high + SLOT_GAP)


def _out_y(r: Result, token: int, plan: Plan) -> float:
    """Return the top of a token's output, in the middle of the rows that it sums."""
    return _token_y(r, token, plan) + (r.top_k - 1) * plan.high / 2


def _row_y(r: Result, row: int, plan: Plan) -> float:
    """Return the top of a permuted row. An expert without tokens leaves one empty line."""
    expert = r.layer.chosen[r.layer.order[row][0]][r.layer.order[row][1]]
    empty = sum(load == 0 for load in r.layer.loads[:expert])
    return plan.top + (row + empty) * plan.high + expert * GAP


def _word(
    plan: Plan, id: str, x: float, y: float, s: str, role: str, bold: bool = False, on: str = ""
) -> dict:
    """A text in the middle of the row that begins at y, ending at x."""
    return text(id, x, y + plan.high / 2 + 4, s, role, "small", "end", bold=bold, on=on)


def _band(
    r: Result, plan: Plan, id: str, values, x: float, y: float, token: int, tip: str, cell: float, show=SHOW
) -> list[dict]:
    """Draw a row of numbers on its ground, solid for the followed token."""
    ground, ink = ("now", "inverse") if token == r.follow else ("idle", "ink")
    on, ends = "idle" if ground == "idle" else "", [x + (j + 1) * cell - 4 for j in range(len(values))]
    numbers = [
        _word(plan, f"{id}-{j}", end, y, show(v), ink, on=on)
        for j, (end, v) in enumerate(zip(ends, values, strict=True))
    ]
    return together(rect(id, x, y, len(values) * cell, plan.high - 1, ground, tip), *numbers)


def _name(r: Result, plan: Plan, id: str, x: float, y: float, token: int, words: str) -> dict:
    followed = token == r.follow
    return _word(plan, id, x, y, words, "now" if followed else "muted", bold=followed)


def _title(plan: Plan, id: str, x: float, words: str) -> dict:
    return text(id, x, plan.top - 12, words, "muted", "small")


def _tokens(r: Result, plan: Plan, step: int) -> list[dict]:
    """Draw each token's numbers, its logits, and its chosen experts with their weights."""
    if step >= RETURN and not plan.wide:
        return []
    marks = [_title(plan, "x-title", plan.x, "tokens x")]
    chosen = step < (RETURN if plan.wide else PERMUTE)
    if chosen:
        ends = [plan.logits + (e + 1) * plan.logit - 6 for e in range(r.expert_count)]
        marks += [
            text(f"expert-{e}", end, plan.top - 12, f"E{e}", "muted", "small", "end")
            for e, end in enumerate(ends)
        ]
    for token in range(r.token_count):
        y, tip = _token_y(r, token, plan), f"Token {token}: {_vector(r.x[token])}"
        marks.append(_name(r, plan, f"t-{token}", NAME, y, token, f"t{token}"))
        marks += _band(r, plan, f"x-{token}", r.x[token], plan.x, y, token, tip, plan.inputs, EXACT)
        marks += _choice(r, plan, token, y, step) if chosen else []
    return marks + (_key(plan, step) if step < PERMUTE else [])


def _choice(r: Result, plan: Plan, token: int, y: float, step: int) -> list[dict]:
    """Draw a token's logits. Once it has chosen, the chosen ones are solid and have their weights below."""
    marks = []
    for e, logit in enumerate(r.layer.logits[token]):
        x, role = plan.logits + e * plan.logit, "muted" if step else "ink"
        end = x + plan.logit - 6
        if step and e in r.layer.chosen[token]:
            weight = SHOW(r.layer.weights[token][r.layer.chosen[token].index(e)])
            solid, role = "now" if token == r.follow else "primary", "inverse"
            tip = f"Token {token} chooses expert {e} with weight {weight}"
            marks.append(rect(f"pick-{token}-{e}", x + 1, y, plan.logit - 4, plan.high - 1, solid, tip))
            below = y + plan.high + 12
            marks.append(text(f"w-{token}-{e}", end, below, weight, solid, "small", "end", bold=True))
        marks.append(_word(plan, f"logit-{token}-{e}", end, y, SHOW(logit), role))
    return marks


def _key(plan: Plan, step: int) -> list[dict]:
    """Name the logits' columns, below all tokens."""
    said = ["under each E: its logit"] + ["solid: kept; below it: its weight"] * (step == TOP_K)
    if plan.wide:
        return [text("logits-key", plan.x, plan.height - 4, "; ".join(said), "muted", "small")]
    y = plan.height - 18
    return [
        text(f"logits-key-{i}", plan.x, y + 15 * i, words, "muted", "small") for i, words in enumerate(said)
    ]


def _followed(r: Result, plan: Plan, step: int) -> list[dict]:
    """Draw the followed token's choice worked out, in the space for rows of the later steps. A phone has no space for
    it."""
    if step >= PERMUTE or not plan.wide:
        return []
    kept = (
        dict(zip(r.layer.chosen[r.follow], r.layer.weights[r.follow], strict=True)) if step == TOP_K else {}
    )
    return choice_panel(plan.top, r.follow, r.x[r.follow], r.gate, r.layer.logits[r.follow], kept)


def _on_their_way(r: Result, plan: Plan, step: int) -> list[dict]:
    """Draw marks of a later step at their start, so that they travel from there and don't appear."""
    marks, high = [], plan.high - 1
    given, wide = 3 * plan.inputs, 3 * (plan.inputs if step < PERMUTE else plan.cell)
    for row, (token, slot) in enumerate(r.layer.order):
        role, at = "now" if token == r.follow else "idle", (plan.x, _token_y(r, token, plan))
        if step < PERMUTE:
            marks.append(rect(f"row-{row}", *at, given, high, role))
        if step < RETURN:
            at = at if step < PERMUTE else (plan.rows, _row_y(r, row, plan))
            marks.append(rect(f"slot-{token}-{slot}", *at, wide, high, role))
        if step == RETURN and slot == 0:
            marks.append(rect(f"out-{token}", plan.returned, _token_y(r, token, plan), wide, high, role))
    return marks


def _rows(r: Result, plan: Plan, step: int) -> list[dict]:
    """Draw the rows sorted by expert: the inputs, and from the grouped GEMM on the outputs."""
    title = "rows by expert" if step < EXPERTS else "after the experts"
    x, show = plan.going if step == RETURN else plan.rows, EXACT if step < EXPERTS else SHOW
    marks = [_title(plan, "rows-title", x, title)]
    values = r.layer.permuted if step < EXPERTS else r.layer.expert_rows
    for row, (token, slot) in enumerate(r.layer.order):
        y = _row_y(r, row, plan)
        tip = f"{_ordinal(row + 1)} row: token {token}, its choice {slot}, {_vector(values[row])}"
        name = _name(r, plan, f"row-{row}-t", x - 6, y, token, f"t{token}")
        marks += together(*_band(r, plan, f"row-{row}", values[row], x, y, token, tip, plan.cell, show), name)
    return marks + (_groups(r, plan, x) if plan.wide or step < RETURN else [])


def _groups(r: Result, plan: Plan, x: float) -> list[dict]:
    """Draw each expert's bracket and name before its rows, one problem of the grouped GEMM. Lines end at the bracket."""
    marks, y = [], plan.top
    for e, load in enumerate(r.layer.loads):
        high = max(1, load) * plan.high
        place = x - 32, y + high / 2 + 4
        marks.append(text(f"group-{e}", *place, f"E{e}", "primary", "small", "end", bold=True))
        if load:
            marks.append(line(f"group-{e}-line", x - BRACKET, y, x - BRACKET, y + high - 1, "primary"))
        else:
            marks.append(_word(plan, f"group-{e}-empty", x + 58, y, "no token", "muted"))
        y += high + GAP
    return marks


def _blocks_in_a_row(r: Result, plan: Plan) -> list[dict]:
    """Draw the experts' blocks side by side on a phone, under the results that came from them."""
    y, pitch = plan.height - 26, min(24, (NARROW - 10 * (r.expert_count - 1)) / r.rows)
    marks, x, row = [text("blocks-title", 0, y - 24, "rows by expert", "muted", "small")], 0.0, 0
    for e, load in enumerate(r.layer.loads):
        if load:
            marks.append(
                text(f"block-{e}", x + load * pitch / 2, y - 6, f"E{e}", "primary", "small", "middle", True)
            )
        for token, slot in r.layer.order[row : row + load]:
            ground, ink = ("now", "inverse") if token == r.follow else ("idle", "ink")
            tip = f"expert {e}: token {token}, its choice {slot}"
            box = rect(f"block-{row}-of-{e}", x, y, pitch - 1, 22, ground, tip)
            name = f"t{token}" if pitch >= 20 else str(token)
            marks += [
                box,
                text(f"block-{row}-t", x + pitch / 2, y + 15, name, ink, "small", "middle", on=ground),
            ]
            x, row = x + pitch, row + 1
        x += 10 * (load > 0)
    return marks


def _blocks(r: Result, plan: Plan) -> list[dict]:
    """Draw the experts' blocks once more at the last step, each row as its token's name, between the tokens and their
    results: the whole way there and back is in view."""
    x, wide, half, marks = plan.logits + 62, 36, plan.high / 2, []
    ways = []
    for row, (token, slot) in enumerate(r.layer.order):
        y, own, followed = _row_y(r, row, plan), _token_y(r, token, plan), token == r.follow
        ground, ink, way = ("now", "inverse", "now") if followed else ("idle", "ink", "grid")
        tip = f"{_ordinal(row + 1)} row: token {token}, its choice {slot}"
        box = rect(f"row-{row}", x, y, wide, plan.high - 1, ground, tip)
        name = text(
            f"row-{row}-of", x + wide / 2, y + half + 4, f"t{token}", ink, "small", "middle", on=ground
        )
        marks += together(box, name)
        ways += [
            line(f"there-{row}", plan.x + 3 * plan.inputs + 4, own + half, x - 26, y + half, way),
            line(f"back-{row}", x + wide + 4, y + half, plan.weighted - 22, own + (2 * slot + 1) * half, way),
        ]
    y = plan.top
    for e, load in enumerate(r.layer.loads):
        high = max(1, load) * plan.high
        marks.append(
            text(f"group-{e}", x - 6, y + high / 2 + 4, f"E{e}", "primary", "small", "end", bold=True)
        )
        y += high + GAP
    title = _title(plan, "blocks-title", x - 22, "by expert")
    return [*sorted(ways, key=lambda mark: mark["role"] == "now"), title, *marks]


def _joins(r: Result, plan: Plan, step: int) -> list[dict]:
    """From each token to its rows, from the rows back to the token's slots, from the slots to their sum."""
    half, band, into = plan.high / 2, 3 * plan.cell, plan.rows - BRACKET - 2  # to the bracket of its expert
    marks = []
    for row, (token, slot) in enumerate(r.layer.order):
        at, own = _row_y(r, row, plan) + half, _token_y(r, token, plan) + half
        role, back = "now" if token == r.follow else "axis", own + slot * 2 * half
        if step == PERMUTE:
            left = plan.logits + r.expert_count * plan.logit if plan.wide else plan.x + 3 * plan.inputs
            marks.append(line(f"to-{row}", left + 4, own, into, at, role))
        elif step == RETURN:
            ends = (plan.going + band + 4, plan.returned - 24)
            if not plan.wide:
                ends = (plan.going - 24, plan.returned + band + 4)
            marks.append(line(f"from-{row}", ends[0], at, ends[1], back, role))
        elif step == COMBINE:
            left, sum_y = plan.weighted + band + 46, _out_y(r, token, plan) + half
            marks.append(line(f"sum-{token}-{slot}", left, back, plan.out - 20, sum_y, role))
    return sorted(marks, key=lambda mark: mark["role"] == "now")


def _results(r: Result, plan: Plan, step: int) -> list[dict]:
    """Draw a token's k results side by side again, at the last step with their weights."""
    x, adding = (plan.weighted, True) if step == COMBINE else (plan.returned, False)
    marks = [_title(plan, "slots-title", x, "result × weight" if adding else "results by token")]
    for token in range(r.token_count):
        y, high = _token_y(r, token, plan), plan.high
        marks.append(_name(r, plan, f"o-{token}", x - 4, _out_y(r, token, plan), token, f"t{token}"))
        for slot, values in enumerate(r.layer.restored[token]):
            at, weight = y + slot * high, SHOW(r.layer.weights[token][slot])
            tip = f"Token {token}, choice {slot}: {weight} × {_vector(values)}"
            marks += _band(r, plan, f"slot-{token}-{slot}", values, x, at, token, tip, plan.cell)
            if adding:
                end = x + 3 * plan.cell + 43
                role = "now" if token == r.follow else "muted"
                marks.append(_word(plan, f"ow-{token}-{slot}", end, at, f"× {weight}", role))
    return marks


def _out(r: Result, plan: Plan) -> list[dict]:
    """Draw the outputs, each token's weighted sum."""
    marks = [_title(plan, "out-title", plan.out, "outputs y")]
    for token in range(r.token_count):
        y, combined = _out_y(r, token, plan), r.layer.combined[token]
        tip = f"Output of token {token}: {_vector(combined)}"
        marks.append(_name(r, plan, f"y-{token}", plan.out - 4, y, token, f"t{token}"))
        marks += _band(r, plan, f"out-{token}", combined, plan.out, y, token, tip, plan.cell)
    return marks


def _pulled(r: Result, plan: Plan, step: int) -> list[dict]:
    """The token that is followed, chosen at the left edge."""

    def place(token: float) -> float:
        top = _out_y if step >= RETURN and not plan.wide else _token_y
        return top(r, token, plan) + plan.high / 2

    return [handle("pull-follow", 10, place(r.follow), "now", drag(FOLLOW, "y", place))]


def _vector(values) -> str:
    return "(" + ", ".join(map(SHOW, values)) + ")"


def _ordinal(n: int) -> str:
    """Return a row's ordinal, counted from the top, because rows have no numbers in the picture."""
    ending = "th" if n in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{ending}"


def _captions(r: Result) -> list[str]:
    t, layer = r.follow, r.layer
    chosen, weights = layer.chosen[t], layer.weights[t]
    named = " and ".join(f"E{e}" for e in chosen)
    shares = " and ".join(map(SHOW, weights))
    filled = [f"{_ordinal(i)}" for i, (token, _) in enumerate(layer.order, start=1) if token == t]
    rows = f"the {', '.join(filled[:-1])} and {filled[-1]} row" if filled[1:] else f"the {filled[0]} row"
    grouped = sum(first == EXPERTS for first, _ in cost.FUSED_LAUNCHES.values())
    added = " + ".join(f"{SHOW(w)}·{_vector(v)}" for w, v in zip(weights, layer.restored[t], strict=True))
    return [
        f"Router: x times the gate gives one logit an expert; t{t} gets {_vector(layer.logits[t])}.",
        f"Top-{r.top_k}: t{t} keeps {named}, and softmax over what is kept gives {shares}.",
        f"Permute: rows are sorted by expert, so that each expert's lie side by side; t{t} fills {rows}.",
        f"Grouped GEMM: {grouped} launches run {r.active_experts} experts, each on its own rows; one by one it takes "
        f"{r.step_launches[EXPERTS]}.",
        f"Un-permute: each result goes back to the token and the choice that it came from, t{t}'s too.",
        f"Combine: t{t} = {added} = {_vector(layer.combined[t])}.",
    ]


def _table(r: Result):
    columns = ("token", "experts", *(Column(f"weight {k}", show=SHOW) for k in range(r.top_k)))
    outputs = tuple(Column(f"y{j}", show=SHOW) for j in range(3))
    rows = [
        (f"t{t}", ", ".join(f"E{e}" for e in r.layer.chosen[t]), *r.layer.weights[t], *r.layer.combined[t])
        for t in range(r.token_count)
    ]
    return table((*columns, *outputs), rows)


def _takeaway(r: Result) -> str:
    if r.top_k == 1:
        return "With one expert per token nothing is added up, and sorting is all that routing costs."
    if r.busiest_rows >= 2 * r.rows / r.expert_count:
        return "The blocks are as uneven as the router: one expert gets at least twice its share of rows."
    if r.token_count <= 2:
        return "With so few tokens an expert gets a row or two, and the layer is nearly all launches."
    return "Sorting tokens by expert turns scattered small products into a few blocks, and back again."


def frames(r: Result, measured: dict | None = None, width: int = WIDE) -> list[Scene]:
    plan = PLACES[width == WIDE]
    plan = plan._replace(high=_high(r, plan))
    rows = figure("rows for the experts", r.rows, units.count)
    label = f"{'row' if r.busiest_rows == 1 else 'rows'} for the busiest expert"
    busiest = figure(label, r.busiest_rows, units.count)
    separate = figure("launches, one kernel per step", r.separate_launches, units.count)
    fused = figure("launches, fused", r.fused_launches, units.count, "useful")
    same = {
        "summary": f"{r.token_count} tokens, top-{r.top_k} of {r.expert_count} experts: {rows.text} rows in all, "
        f"{busiest.text} for the busiest expert; {separate.text} launches if each step is a kernel of its own, "
        f"{fused.text} if the steps are fused.",
        "takeaway": _takeaway(r),
        "figures": (rows, busiest, separate, fused),
        "table": _table(r),
        "height": plan.height,
        "width": width,
        "formula": (
            (
                "y = Σ over {top_k:top-k} of weight · expert(x)",
                "expert(x) = (silu(x · gate) ⊙ (x · up)) · down",
            ),
            (
                "rows = {tokens} · {top_k:top-k}",
                f"{{tokens:{r.token_count}}} · {{top_k:{r.top_k}}} = {r.rows}",
            ),
        ),
    }
    scenes = []
    for step, caption in enumerate(_captions(r)):
        marks = launch_strip(r.step_launches, step, width)
        marks += _joins(r, plan, step) + _on_their_way(r, plan, step) + _tokens(r, plan, step)
        marks += _followed(r, plan, step)
        if PERMUTE <= step < COMBINE:
            marks += _rows(r, plan, step)
        if step >= RETURN:
            marks += _results(r, plan, step)
        if step == COMBINE:
            marks += (_blocks if plan.wide else _blocks_in_a_row)(r, plan) + _out(r, plan)
        marks += _pulled(r, plan, step)
        scenes.append(Scene(marks=marks, caption=caption, **same))
    return scenes


SIMULATOR = Declaration(
    title="MoE forward, step by step",
    question="How do scattered tokens become a few blocks of work, and find their way back?",
    controls=(
        slider("top_k", "Experts a token picks (top-k)", 2, 1, 3),
        FOLLOW,
        slider("tokens", "Tokens", 6, 2, 6),
        slider("experts", "Experts", 4, 3, 4),
    ),
    presets={
        "Two of four": {},
        "One of four": {"top_k": 1},
        "Three of four": {"top_k": 3},
        "Two tokens": {"tokens": 2},
    },
    run=run,
    stepper=Stepper("step", frames, lambda r: COMBINE),
    prediction=Prediction(
        "6 tokens pick 2 of 4 experts, and every expert gets some. Each step is a kernel of its own: router, "
        "top-k, combine, and for each expert gather, three GEMMs, activation, scatter. How many launches?",
        "separate_launches",
        "launches",
        0.04,
    ),
    source="GEMM & MoE kernels",
)
