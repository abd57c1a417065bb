"""Follow a token through a mixture-of-experts layer in six steps, to its experts' blocks and back."""

from dataclasses import dataclass
from typing import NamedTuple

from kernels.moe_routing import cost
from widgets import units
from widgets.controls import slider
from widgets.declare import Declaration, Prediction, Stepper
from widgets.moe_routing.moe_forward_choice import choice_panel
from widgets.moe_routing.moe_forward_launches import launch_strip
from widgets.scene import (
    NARROW,
    WIDE,
    Column,
    Scene,
    drag,
    figure,
    handle,
    line,
    path,
    rect,
    table,
    text,
    together,
)

GAP, NAME = 6, 15  # between two experts' blocks, and an expert's name over its block
CHIP = 26  # the height of a token
HUES = ("primary", "secondary", "useful", "measured")  # of the experts, while the followed token has its own
FOLLOW = slider("follow", "Follow token", 1, 0, 5)


class Plan(NamedTuple):
    """Hold where each column begins, and how wide its boxes are."""

    wide: bool
    height: int
    strip: int  # the top of the launches
    x: tuple[int, int]
    logits: tuple[int, int]  # the column of the first expert, and from one to the next
    rows: tuple[int, int]  # the experts' blocks
    slots: tuple[int, int]  # the results, back at their tokens
    out: tuple[int, int]


TOP, ROOM = 30, 338
PLACES = {
    True: Plan(True, 428, 378, (48, 60), (150, 58), (214, 220), (500, 74), (650, 62)),
    False: Plan(False, 462, 376, (30, 36), (96, 60), (116, 90), (250, 30), (306, 30)),
}
ROUTER, TOP_K, PERMUTE, EXPERTS, RETURN, COMBINE = range(6)
SHOW = units.fixed(2)


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


def _token_y(r: Result, token: int) -> float:
    """Return the middle of a token's row."""
    return TOP + ROOM * (token + 0.5) / r.token_count


def _high(r: Result) -> float:
    """Return the height of a row of a block."""
    lines = sum(max(1, load) for load in r.layer.loads)
    return min(28, (ROOM - NAME * r.expert_count - GAP * (r.expert_count - 1)) / lines)


def _blocks_y(r: Result) -> list[float]:
    """Return the top of each expert's first row. An expert without tokens leaves one empty line."""
    sizes = [NAME + max(1, load) * _high(r) for load in r.layer.loads]
    y, tops = TOP + (ROOM - sum(sizes) - GAP * (r.expert_count - 1)) / 2, []
    for size in sizes:
        tops.append(y + NAME)
        y += size + GAP
    return tops


class _Pair(NamedTuple):
    """Hold a token at one of its experts, with the row of the block that it fills."""

    row: int
    token: int
    slot: int
    expert: int
    y: float  # the middle of its row
    back: float  # the middle of its result at the token

    @property
    def result(self) -> str:
        return f"slot-{self.token}-{self.slot}"


def _slot_high(r: Result) -> float:
    return min(24, (ROOM / r.token_count - 9) / r.top_k)


def _pairs(r: Result) -> list[_Pair]:
    tops, pairs, filled = _blocks_y(r), [], [0] * r.expert_count
    for row, (token, slot) in enumerate(r.layer.order):
        expert = r.layer.topk_ids[token][slot]
        y = tops[expert] + (filled[expert] + 0.5) * _high(r)
        filled[expert] += 1
        back = _token_y(r, token) + (slot + 0.5 - r.top_k / 2) * _slot_high(r)
        pairs.append(_Pair(row, token, slot, expert, y, back))
    return pairs


def _hue(r: Result, token: int, expert: int) -> str:
    return "now" if token == r.follow else HUES[expert]


def _box(id: str, at: tuple[int, int], y: float, high: float, role: str, words: str, tip: str) -> list[dict]:
    """Draw a box with words, in the middle of the row at y."""
    left, wide = at
    ink, on = ("ink", "idle") if role == "idle" else ("inverse", role)
    name = text(f"{id}-of", left + wide / 2, y + 4, words, ink, "small", "middle", role == "now", on)
    return together(rect(id, left, y - high / 2 + 1, wide, high - 2, role, tip), *[name] * bool(words))


def _titles(plan: Plan, step: int) -> list[dict]:
    named = [("tokens", plan.x)]
    if step >= PERMUTE:
        named.append(("rows, sorted by expert" if plan.wide else "by expert", plan.rows))
    if step >= RETURN:
        named.append(("results" if plan.wide else "back", plan.slots))
    if step == COMBINE:
        named.append(("outputs" if plan.wide else "sums", plan.out))
    return [
        text(f"title-{i}", left + wide / 2, 14, words, "muted", "small", "middle")
        for i, (words, (left, wide)) in enumerate(named)
    ]


def _tokens(r: Result, plan: Plan) -> list[dict]:
    """Draw the tokens, with the numbers of the followed one."""
    marks = []
    for token in range(r.token_count):
        y, tip = _token_y(r, token), f"Token {token}: {_vector(r.x[token])}"
        role = "now" if token == r.follow else "idle"
        marks += _box(f"x-{token}", plan.x, y, CHIP, role, f"t{token}", tip)
    if plan.wide:
        numbers = _vector(r.x[r.follow]).strip("()")  # clear of the token's way to its experts
        y = _token_y(r, r.follow) + CHIP / 2 + 16
        marks.append(text("x-numbers", 2, y, numbers, "now", "small", on="ground"))
    return marks


def _choices(r: Result, plan: Plan, step: int) -> list[dict]:
    """Draw a cell for each token's logits, with the numbers of the followed one. The chosen ones are solid."""
    left, pitch = plan.logits
    marks = [
        text(f"expert-{e}", left + e * pitch + pitch / 2, 14, f"E{e}", HUES[e], "small", "middle", True)
        for e in range(r.expert_count)
    ]
    for token in range(r.token_count):
        y, chosen = _token_y(r, token), r.layer.topk_ids[token] if step == TOP_K else ()
        marks.append(
            line(f"way-{token}", sum(plan.x) + 4, y, left - 2, y, "now" if token == r.follow else "axis")
        )
        for e, logit in enumerate(r.layer.logits[token]):
            at, words = (left + 2 + e * pitch, pitch - 4), SHOW(logit) if token == r.follow else ""
            tip = f"Token {token}, expert {e}: logit {SHOW(logit)}"
            role = _hue(r, token, e) if e in chosen else "idle"
            if e in chosen:
                weight = SHOW(r.layer.topk_weights[token][chosen.index(e)])
                tip, words = f"{tip}, chosen with weight {weight}", words or f"E{e}"
            marks += _box(f"logit-{token}-{e}", at, y, CHIP, role, words, tip)
    return marks


def _followed(r: Result, plan: Plan, step: int) -> list[dict]:
    """Draw the followed token's choice worked out, in the space for rows of the later steps. A phone has no space for
    this."""
    if not plan.wide:
        return []
    kept = (
        dict(zip(r.layer.topk_ids[r.follow], r.layer.topk_weights[r.follow], strict=True))
        if step == TOP_K
        else {}
    )
    return choice_panel(TOP, r.follow, r.x[r.follow], r.gate, r.layer.logits[r.follow], kept)


def _on_their_way(r: Result, plan: Plan, step: int) -> list[dict]:
    """Draw marks of a later step at their start, so that they travel from there and don't appear."""
    marks, high = [], _high(r) - 2
    for pair in _pairs(r):
        hue, token_y = _hue(r, pair.token, pair.expert), _token_y(r, pair.token)
        at = (plan.x, token_y) if step < PERMUTE else (plan.rows, pair.y)
        if step < PERMUTE:
            marks.append(rect(f"row-{pair.row}", at[0][0], at[1] - high / 2, at[0][1], high, hue))
        if step < RETURN:
            marks.append(rect(pair.result, at[0][0], at[1] - high / 2, at[0][1], high, hue))
        if step < COMBINE and pair.slot == 0:
            at = at if step < RETURN else (plan.slots, pair.back)
            role = "now" if pair.token == r.follow else "idle"
            marks.append(rect(f"out-{pair.token}", at[0][0], at[1] - high / 2, at[0][1], high, role))
    return marks


def _joins(r: Result, plan: Plan, step: int) -> list[dict]:
    """Draw lines from each token to its rows, from the rows back to the token, and from its results to their sum."""
    marks, high = [], 3
    for pair in _pairs(r):
        role, own = "now" if pair.token == r.follow else "grid", _token_y(r, pair.token)
        marks.append(line(f"to-{pair.row}", sum(plan.x) + high, own, plan.rows[0] - 4, pair.y, role))
        if step >= RETURN:
            ends = sum(plan.rows) + 4, plan.slots[0] - high
            marks.append(line(f"from-{pair.row}", ends[0], pair.y, ends[1], pair.back, role))
        if step == COMBINE:
            ends = sum(plan.slots) + high, plan.out[0] - high
            marks.append(line(f"sum-{pair.token}-{pair.slot}", ends[0], pair.back, ends[1], own, role))
    return sorted(marks, key=lambda mark: mark["role"] == "now")


def _blocks(r: Result, plan: Plan, step: int) -> list[dict]:
    """Draw each expert's block with its rows, the inputs, and from the grouped GEMM on the outputs."""
    marks, (left, wide), high = [], plan.rows, _high(r)
    for e, (top, load) in enumerate(zip(_blocks_y(r), r.layer.loads, strict=True)):
        words, role = f"E{e}: {units.counted(load, 'row')}" if load else f"E{e}: no token", HUES[e]
        marks.append(
            text(
                f"group-{e}",
                left - 3,
                top - 6,
                words,
                role if load else "muted",
                "small",
                bold=True,
                on="ground",
            )
        )
        low = top + max(1, load) * high
        corners = [
            (left - 3, top - 2),
            (left + wide + 3, top - 2),
            (left + wide + 3, low + 2),
            (left - 3, low + 2),
        ]
        marks.append(path(f"block-{e}", corners, role if load else "idle", words, closed=True))
    values = r.layer.permuted if step < EXPERTS else r.layer.expert_rows
    for pair in _pairs(r):
        tip = f"{_ordinal(pair.row + 1)} row: token {pair.token}, its choice {pair.slot}, {_vector(values[pair.row])}"
        words = f"t{pair.token}"
        if plan.wide and pair.token == r.follow:
            words += f"  {_vector(values[pair.row])}"
        marks += _box(
            f"row-{pair.row}", plan.rows, pair.y, high, _hue(r, pair.token, pair.expert), words, tip
        )
    return marks


def _results(r: Result, plan: Plan, step: int) -> list[dict]:
    """Draw each token's k results, in the colours of their experts. At the last step the followed ones have weights."""
    marks = []
    for pair in _pairs(r):
        values, weight = (
            r.layer.restored[pair.token][pair.slot],
            SHOW(r.layer.topk_weights[pair.token][pair.slot]),
        )
        tip = f"Token {pair.token}, choice {pair.slot}, expert {pair.expert}: {weight} × {_vector(values)}"
        words = f"E{pair.expert}"
        if plan.wide and step == COMBINE and pair.token == r.follow:
            words += f" × {weight}"
        hue = _hue(r, pair.token, pair.expert)
        marks += _box(pair.result, plan.slots, pair.back, _slot_high(r), hue, words, tip)
    return marks


def _out(r: Result, plan: Plan) -> list[dict]:
    """Draw the outputs, each token's weighted sum, with the numbers of the followed one."""
    marks = []
    for token in range(r.token_count):
        tip = f"Output of token {token}: {_vector(r.layer.combined[token])}"
        role = "now" if token == r.follow else "idle"
        marks += _box(f"out-{token}", plan.out, _token_y(r, token), CHIP, role, f"t{token}", tip)
    if plan.wide:
        y = _token_y(r, r.follow) + CHIP / 2 + 13
        numbers = _vector(r.layer.combined[r.follow]).strip("()")
        marks.append(text("out-numbers", sum(plan.out) + 6, y, numbers, "now", "small", "end", on="ground"))
    return marks


def _pulled(r: Result) -> list[dict]:
    """The token that is followed, chosen at the left edge."""
    return [
        handle("pull-follow", 10, _token_y(r, r.follow), "now", drag(FOLLOW, "y", lambda t: _token_y(r, t)))
    ]


def _launches(r: Result, plan: Plan, step: int) -> list[dict]:
    """Draw the launches below the picture."""
    marks = launch_strip(r.step_launches, step, WIDE if plan.wide else NARROW)
    return [{**m, **{way: m[way] + plan.strip for way in ("y", "y2") if way in m}} for m in marks]


def _vector(values) -> str:
    return "(" + ", ".join(map(SHOW, values)) + ")"


def _ordinal(n: int) -> str:
    """Return a row's ordinal, counted from the top, because rows have no numbers in the picture."""
    ending = "th" if n in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{ending}"


def _captions(r: Result) -> list[str]:
    t, layer = r.follow, r.layer
    chosen, weights = layer.topk_ids[t], layer.topk_weights[t]
    named = " and ".join(f"E{e}" for e in chosen)
    shares = " and ".join(map(SHOW, weights))
    filled = [f"{_ordinal(i)}" for i, (token, _) in enumerate(layer.order, start=1) if token == t]
    rows = f"the {', '.join(filled[:-1])} and {filled[-1]} row" if filled[1:] else f"the {filled[0]} row"
    grouped = sum(first == EXPERTS for first, _ in cost.FUSED_LAUNCHES.values())
    added = " + ".join(f"{SHOW(w)}·E{e}" for w, e in zip(weights, chosen, strict=True))
    return [
        f"Router: x times the gate gives one logit an expert; t{t} gets {_vector(layer.logits[t])}.",
        f"Top-{r.top_k}: t{t} keeps {named}, and softmax over what is kept gives {shares}.",
        f"Permute: rows are sorted by expert, so that each expert's lie side by side; t{t} fills {rows}.",
        f"Grouped GEMM: {grouped} launches run {r.active_experts} experts, each on its own rows; one by one it takes "
        f"{r.step_launches[EXPERTS]}.",
        f"Un-permute: each result goes back to the token and the choice that it came from, t{t}'s too.",
        f"Combine: the results for t{t}, {added}, add up to {_vector(layer.combined[t])}.",
    ]


def _table(r: Result):
    columns = ("token", "experts", *(Column(f"weight {k}", show=SHOW) for k in range(r.top_k)))
    outputs = tuple(Column(f"y{j}", show=SHOW) for j in range(3))
    rows = [
        (
            f"t{t}",
            ", ".join(f"E{e}" for e in r.layer.topk_ids[t]),
            *r.layer.topk_weights[t],
            *r.layer.combined[t],
        )
        for t in range(r.token_count)
    ]
    return table((*columns, *outputs), rows)


def _takeaway(r: Result) -> str:
    if r.top_k == 1:
        return "With one expert per token nothing is added up: each only goes to its expert and comes back."
    if r.busiest_rows >= 2 * r.rows / r.expert_count:
        return "The blocks are as uneven as the router: one expert gets at least twice its share of rows."
    if r.busiest_rows == 1:
        return "With so few tokens a block is one row, and the layer is nearly all launches."
    if r.token_count <= 2:
        return "With so few tokens an expert gets a row or two, and the layer is nearly all launches."
    return "Sorting tokens by expert turns scattered small products into a few blocks, and back again."


def frames(r: Result, measured: dict | None = None, width: int = WIDE) -> list[Scene]:
    plan = PLACES[width == WIDE]
    rows = figure("rows in all", r.rows, units.count)
    blocks = figure(
        f"{'block' if r.active_experts == 1 else 'blocks'}, one for each expert picked",
        r.active_experts,
        units.count,
        "primary",
    )
    label = f"{'row' if r.busiest_rows == 1 else 'rows'} in the largest block"
    busiest = figure(label, r.busiest_rows, units.count)
    same = {
        "summary": f"{r.token_count} tokens, top-{r.top_k} of {r.expert_count} experts: {rows.text} rows in all, in "
        f"{units.counted(r.active_experts, 'block')}, {busiest.text} in the largest; {r.separate_launches} launches if each step is "
        f"a kernel of its own, {r.fused_launches} if the steps are fused.",
        "takeaway": _takeaway(r),
        "figures": (rows, blocks, busiest),
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
        marks = _on_their_way(r, plan, step)
        if step < PERMUTE:
            marks += _choices(r, plan, step) + _followed(r, plan, step)
        else:
            marks += _joins(r, plan, step) + _blocks(r, plan, step)
        marks += _titles(plan, step) + _tokens(r, plan)
        if step >= RETURN:
            marks += _results(r, plan, step)
        if step == COMBINE:
            marks += _out(r, plan)
        marks += _launches(r, plan, step) + _pulled(r)
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
        "6 tokens pick 2 of 4 experts each. Their rows are sorted by expert, so that each expert has one block. How many "
        "rows do the blocks have together?",
        "rows",
        "rows",
        0.04,
        units.count,
    ),
    source="GEMM & MoE kernels",
)
