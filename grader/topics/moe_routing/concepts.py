"""What routing is, in numbers: one short function for each step of the layer, for its padding, and for its share of a step."""

import math

import numpy as np

from grader.questions import Call, NumpyQuestion, Part
from grader.questions.draws import between
from grader.topics.moe_routing.concepts_wrong import CELLS
from kernels.moe_routing import reference
from kernels.moe_routing.rules import Rule

LESSON = "course/03_moe_routing"
SHIFT = 800.0  # beyond what exp can take


def route(x, router, k, softmax_first):
    rule = Rule(k, "softmax of all" if softmax_first else "softmax of chosen")
    return reference.route(np.asarray(x) @ np.asarray(router).T, rule)


def loads_and_offsets(chosen, experts, tile):
    found = reference.order(chosen, experts, tile)
    return found.loads, found.offsets


def permute(chosen, experts, tile):
    found = reference.order(chosen, experts, tile)
    return found.picks, found.place


def experts(rows, offsets, gate_up, down):
    if offsets[0] != 0 or offsets[-1] != len(rows) or np.any(np.diff(offsets) < 0):
        raise ValueError(f"offsets must rise from 0 to {len(rows)}, got {offsets}")
    out = np.zeros((len(rows), down.shape[1]))
    for e in range(len(down)):
        mine = slice(offsets[e], offsets[e + 1])
        with np.errstate(over="ignore"):  # exp(-g) of a gate far below 0 is infinite, and 1 over it 0
            out[mine] = reference.expert(rows[mine], gate_up[e], down[e])
    return out


def combine(rows, place, weights):
    return reference.combine_picks(rows[place], weights)


def tile_use(loads, tile, factor):
    limit = math.inf if factor is None else math.ceil(factor * sum(loads) / len(loads))
    kept = [min(load, limit) for load in loads]
    slots = sum(math.ceil(load / tile) * tile for load in kept)
    return slots - sum(kept), sum(kept) / slots, sum(loads) - sum(kept)


def layer_share(events):
    step = max(start + us for _, start, us in events) - min(start for _, start, _ in events)
    layer = sum(us for name, _, us in events if name.startswith("moe."))
    products = sum(us for name, _, us in events if name == "moe.experts")
    return layer / step, products / layer


def _router(rng, tokens, experts, hidden, shift=0.0):
    """Tokens and a router; `shift` is added to every logit by a column of ones."""
    x, w = rng.standard_normal((tokens, hidden)), rng.standard_normal((experts, hidden))
    if shift:
        x[:, 0], w[:, 0] = 1.0, shift
    return x, w


def _far_apart(rng, tokens, experts, hidden):
    """Logits of one token so far apart that the powers of all but one are 0, and of another so far below the first's."""
    x, w = _router(rng, tokens, experts, hidden)
    return x * np.where(np.arange(tokens) % 2, 1.0, 4000.0)[:, None], w


def _equals(rng, tokens, experts):
    """Logits that are small whole numbers, so that the best few of a token are often equal, and exactly so."""
    logits = rng.integers(0, 3, (tokens, experts)).astype(float)
    return np.eye(tokens), logits.T.copy()


def _chosen(rng, tokens, experts, k, only=None):
    """Different experts for each token; `only`: those that may be picked."""
    open_experts = np.arange(experts) if only is None else np.asarray(only)
    picks = [rng.permutation(open_experts)[:k] for _ in range(tokens)]
    return np.array(picks, int).reshape(tokens, k)


def _layer(rng, tokens, experts_, k, tile, hidden=5, intermediate=3, only=None, size=1.0):
    """Rows in order, with padding, and what the experts hold."""
    found = reference.order(_chosen(rng, tokens, experts_, k, only), experts_, tile)
    rows = reference.permute(size * rng.standard_normal((tokens, hidden)), found)
    gate_up = rng.standard_normal((experts_, 2 * intermediate, hidden))
    return rows, found.offsets, gate_up, rng.standard_normal((experts_, hidden, intermediate))


def _back(rng, tokens, experts_, k, tile, padding=0.0, hidden=4):
    """Rows as experts leave them, their places and the weights; `padding` is what padded rows hold."""
    found = reference.order(_chosen(rng, tokens, experts_, k), experts_, tile)
    rows = rng.standard_normal((found.rows, hidden))
    rows[found.picks == reference.EMPTY] = padding
    weights = rng.dirichlet(np.ones(k), tokens).reshape(tokens, k) * rng.uniform(0.5, 2.5)
    return rows, found.place, weights


def _unbounded(rng):
    """Rows that somebody waits for hold infinities and a NaN, one of them with a weight of 0."""
    rows, place, weights = _back(rng, 12, 6, 2, 8, padding=np.nan)
    rows[place[0, 0], 0], rows[place[3, 1], 1], rows[place[5, 0], 2] = np.inf, -np.inf, np.nan
    rows[place[7, 1]], weights[7, 1] = np.inf, 0.0
    return rows, place, weights


def _loads(rng, experts_, least=0, most=60):
    loads = rng.integers(least, most + 1, experts_)
    loads[rng.integers(experts_)] += between(rng, 1, 40)
    return [int(load) for load in loads]


def _just_above(rng) -> list[int]:
    """Loads of eight experts whose mean, and 1.25 times it, lie a little above whole numbers; one load lies above both."""
    mean = 4 * between(rng, 2, 6)
    loads = [mean - 3] * 7 + [mean + 22]
    return [loads[i] for i in rng.permutation(8)]


NAMES = ("norm", "attention", "moe.router", "moe.order", "moe.experts", "moe.combine")


def _events(rng, blocks, shuffled=False):
    """A step of some blocks, with gaps between what runs, that begins anywhere; `shuffled`: nor is the first listed first."""
    at, found = rng.uniform(5, 500), []
    for name in [name for _ in range(blocks) for name in NAMES] + ["logits"]:
        us = float(rng.uniform(2, 60))
        found.append((name, float(at), us))
        at += us + rng.uniform(0.5, 20)
    cut = between(rng, 1, len(found) - 1) if shuffled else 0
    return found[cut:] + found[:cut]


def _short(args: tuple) -> tuple:
    """Numbers that can be read, for calls that are shown."""
    return tuple(np.round(a, 1) if isinstance(a, np.ndarray) and a.dtype.kind == "f" else a for a in args)


def _beside(rng):
    """A step in which a copy runs beside all else and ends last, and names are much like the layer's and its experts'."""
    found = _events(rng, 2)
    end = found[-1][1] + found[-1][2]
    alike = [("moe", 3.0), ("moefier", 4.0), ("shared.experts", 5.0), ("moe.experts.copy", 6.0)]
    found += [
        (name, end + 10.0 * number, us * rng.uniform(0.5, 1.5)) for number, (name, us) in enumerate(alike)
    ]
    start = found[len(found) // 2][1]
    return found + [("copy", start, end + 100.0 - start + rng.uniform(5, 60))]


FIRST = np.random.default_rng(3)
ROUTE = NumpyQuestion(
    id="moe_routing.route",
    notebook="concepts",
    asks="route(x, router, k, softmax_first): (chosen, weights), both (tokens, k), of x (tokens, hidden) and router (experts, hidden): the k experts with the largest logits x @ router.T, best first and of equals the lower number; their weights are a softmax over all experts if softmax_first, else one over the k that were chosen",
    entry="route",
    parts=(Part("values", 3, "calls"),),
    reference=route,
    public=(
        Call(_short((*_router(FIRST, 3, 4, 2), 2, False)), "top-k, then softmax"),
        Call(_short((*_router(FIRST, 3, 4, 2), 2, True)), "softmax, then top-k"),
        Call((np.eye(2), np.array([[1.0, 0.0], [1.0, 2.0], [0.0, 2.0], [1.0, 2.0]]), 2, False), "equals"),
        Call((np.zeros((0, 2)), np.ones((3, 2)), 2, False), "no tokens"),
    ),
    hidden=lambda rng: [
        *(
            Call((*_router(rng, between(rng, 2, 20), n, between(rng, 2, 9)), between(rng, 2, n - 1), first))
            for n in (4, 9, 16)
            for first in (False, True)
        ),
        *(Call((*_router(rng, 5, 6, 3), 1, first), "one expert a token") for first in (False, True)),
        *(Call((*_router(rng, 4, 5, 3), 5, first), "every expert") for first in (False, True)),
        *(Call((*_equals(rng, 40, 8), 3, first), "equal logits") for first in (False, True)),
        *(Call((*_router(rng, 6, 8, 4, SHIFT), 3, first), "large logits") for first in (False, True)),
        *(Call((*_far_apart(rng, 8, 9, 4), 4, first), "logits far apart") for first in (False, True)),
        Call((*_router(rng, 0, 7, 4), 3, True), "no tokens"),
    ],
    where=f'{LESSON}/a_experts.ipynb, "The router"',
    hints=(
        "Two things are asked, and the first is the same both ways: a softmax changes no order. Which sort keeps equals in their order?",
        "np.argsort(-logits, axis=1, kind='stable')[:, :k] chooses. For the weights take np.take_along_axis before or after a softmax along the experts; subtract each row's maximum before np.exp.",
        "chosen = np.argsort(-logits, axis=1, kind='stable')[:, :k]; s = logits if softmax_first else np.take_along_axis(logits, chosen, 1); p = np.exp(s - s.max(1, keepdims=True)); p /= p.sum(1, keepdims=True)",
    ),
    mistakes=CELLS.mistakes("route"),
)

COUNT = NumpyQuestion(
    id="moe_routing.count",
    notebook="concepts",
    asks="count(chosen, experts, tile): (loads, offsets) of chosen (tokens, k): how many picks each expert got, and the first row of each expert when all rows are cut into tiles and each expert's are padded to whole ones, with the end of the last one behind: experts + 1 numbers",
    entry="count",
    parts=(Part("values", 2, "calls"),),
    reference=loads_and_offsets,
    public=(
        Call((np.array([[0, 2], [2, 0], [2, 3]]), 4, 4), "an expert without a token"),
        Call((np.array([[0, 1], [1, 0]]), 2, 2), "whole tiles"),
        Call((np.array([[1], [1], [1]]), 2, 1), "a tile of one row"),
        Call((np.zeros((0, 2), int), 3, 4), "no tokens"),
    ),
    hidden=lambda rng: [
        *(
            Call((_chosen(rng, between(rng, 5, 40), n, k), n, between(rng, 2, 16)))
            for n, k in ((4, 2), (9, 3), (16, 1))
        ),
        Call(
            (_chosen(rng, 24, 6, 2, only=[1, 2, 4]), 6, 8),
            "experts without tokens, the first and the last among them",
        ),
        Call((_chosen(rng, 16, 4, 4), 4, 8), "loads that are whole tiles"),
        Call((_chosen(rng, 19, 5, 2), 5, 3), "tiles of three rows"),
        Call((np.zeros((between(rng, 5, 30), 1), int), 5, 4), "all tokens on one expert"),
        Call((_chosen(rng, 0, 8, 2), 8, 16), "no tokens"),
    ],
    where=f'{LESSON}/b_order_and_tiles.ipynb, "Count, scan, permute"',
    hints=(
        "Two familiar things: a histogram, and a running sum. Of what is the sum?",
        "np.bincount(chosen.ravel(), minlength=experts) counts; a load fills ceil(load / tile) tiles, none if it is 0. The offsets are the running sum of whole tiles' rows, with a 0 in front.",
        "loads = np.bincount(chosen.ravel(), minlength=experts); offsets = np.concatenate([[0], np.cumsum(-(-loads // tile) * tile)])",
    ),
    mistakes=CELLS.mistakes("count"),
)

PERMUTE = NumpyQuestion(
    id="moe_routing.permute",
    notebook="concepts",
    asks="permute(chosen, experts, tile): (picks, place): picks[row] is the pick that stands there, token * k + slot, or -1 for padding; place[token, slot] is the row of that pick. Experts follow each other, each padded to whole tiles at its end; within one, picks keep their order",
    entry="permute",
    parts=(Part("values", 3, "calls"),),
    reference=permute,
    public=(
        Call((np.array([[0, 2], [2, 0], [2, 3]]), 4, 4), "an expert without a token"),
        Call((np.array([[1, 0], [1, 0], [0, 1]]), 2, 1), "no padding"),
        Call((np.zeros((0, 2), int), 3, 4), "no tokens"),
    ),
    hidden=lambda rng: [
        *(
            Call((_chosen(rng, between(rng, 6, 40), n, k), n, between(rng, 2, 8)))
            for n, k in ((4, 2), (9, 3), (16, 2))
        ),
        Call((_chosen(rng, 24, 6, 2, only=[1, 2, 4]), 6, 8), "experts without tokens"),
        Call((np.zeros((between(rng, 5, 30), 1), int), 5, 4), "all tokens on one expert"),
        Call((_chosen(rng, 60, 3, 2), 3, 1), "many tokens, no padding"),
        Call((_chosen(rng, 0, 8, 2), 8, 16), "no tokens"),
    ],
    where=f'{LESSON}/b_order_and_tiles.ipynb, "Count, scan, permute"',
    hints=(
        "Number all picks in the order of reading: token 0's k picks, then token 1's. Which sort brings those of one expert together and leaves them in order?",
        "order = np.argsort(chosen.ravel(), kind='stable') lists the picks by expert. The i-th of an expert stands at offsets[expert] + i, and i is its rank in the list less how many picks lower experts have.",
        "e = flat[order]; row = offsets[e] + np.arange(len(flat)) - before[e], with before the running sum of the loads from 0; then picks[row] = order, place[order] = row",
    ),
    mistakes=CELLS.mistakes("permute"),
)

EXPERTS = NumpyQuestion(
    id="moe_routing.experts",
    notebook="concepts",
    asks="experts(rows, offsets, gate_up, down): each row through its expert: rows offsets[e] to offsets[e + 1] - 1 are expert e's, whose gate_up[e] holds the rows of gate above those of up, and which gives (silu(row @ gate.T) * (row @ up.T)) @ down[e].T",
    entry="experts",
    parts=(Part("values", 2, "calls"),),
    reference=experts,
    public=(
        Call(_short(_layer(np.random.default_rng(5), 3, 2, 1, 2, hidden=3, intermediate=2)), "two experts"),
        Call(
            _short(_layer(np.random.default_rng(6), 4, 4, 1, 2, 3, 2, only=[1, 3])), "experts without tokens"
        ),
        Call(_short(_layer(np.random.default_rng(7), 0, 2, 1, 4, 3, 2)), "no tokens"),
    ),
    hidden=lambda rng: [
        *(Call(_layer(rng, between(rng, 4, 20), n, 2, t)) for n, t in ((3, 4), (6, 1), (8, 3))),
        Call(_layer(rng, 9, 6, 2, 4, only=[1, 2, 4]), "experts without tokens"),
        Call(_layer(rng, 7, 4, 1, 4, only=[2]), "all tokens on one expert"),
        Call(_layer(rng, 24, 4, 2, 4, size=2000.0), "large gates"),
        Call(_layer(rng, 0, 5, 2, 8), "no tokens"),
    ],
    where=f'{LESSON}/a_experts.ipynb, "Six steps"',
    hints=(
        "A loop over the experts: which rows are e's, and what is there to do for an expert that has none?",
        "both = rows[a:b] @ gate_up[e].T has the gate in its first half of columns and up in its second. SiLU(g) is g times its sigmoid, g / (1 + exp(-g)).",
        "g, u = np.split(rows[a:b] @ gate_up[e].T, 2, axis=1); out[a:b] = (g / (1 + np.exp(-g)) * u) @ down[e].T",
    ),
    mistakes=CELLS.mistakes("experts"),
)

COMBINE = NumpyQuestion(
    id="moe_routing.combine",
    notebook="concepts",
    asks="combine(rows, place, weights): (tokens, hidden): each token's rows, rows[place[token, slot]], times weights[token, slot], added up; rows that no place names may hold anything",
    entry="combine",
    parts=(Part("values", 2, "calls"),),
    reference=combine,
    public=(
        Call(_short(_back(np.random.default_rng(8), 3, 3, 2, 2, hidden=2)), "rows with padding"),
        Call(
            _back(np.random.default_rng(9), 2, 3, 2, 4, padding=np.nan, hidden=2), "padding that is no number"
        ),
        Call(_short(_back(np.random.default_rng(9), 0, 3, 2, 4)), "no tokens"),
    ),
    hidden=lambda rng: [
        *(
            Call(_back(rng, between(rng, 4, 20), n, k, t))
            for n, k, t in ((4, 2, 3), (9, 4, 1), (6, 1, 4), (5, 5, 8))
        ),
        Call(_back(rng, 12, 6, 2, 8, padding=np.nan), "padding that is no number"),
        Call(_unbounded(rng), "rows with infinities"),
        Call(_back(rng, 0, 5, 2, 8), "no tokens"),
    ],
    where=f'{LESSON}/c_kernel_and_combine.ipynb, "Un-permute and combine, without atomics"',
    hints=(
        "place says where each pick's row lies. What shape has rows[place]?",
        "rows[place] is (tokens, k, hidden), a token's k rows beside each other. Multiply by the weights, one for each row, and sum over k.",
        "(rows[place] * weights[:, :, None]).sum(1)",
    ),
    mistakes=CELLS.mistakes("combine"),
)

TILE_USE = NumpyQuestion(
    id="moe_routing.tile_use",
    notebook="concepts",
    asks="tile_use(loads, tile, factor): (padded, share, dropped): rows that only pad a tile, real rows as a share of all rows in tiles, and picks dropped by a limit of ceil(factor * mean load) an expert; no limit where factor is None",
    entry="tile_use",
    parts=(Part("values", 2, "calls"),),
    reference=tile_use,
    public=(
        Call(([20, 4, 0, 8], 8, None), "no limit"),
        Call(([20, 4, 0, 8], 8, 1.25), "a limit"),
        Call(([8, 8, 8, 8], 8, 1.0), "balanced"),
    ),
    hidden=lambda rng: [
        *(Call((_loads(rng, n), 2 ** between(rng, 2, 6), None), "no limit") for n in (4, 8, 16)),
        *(
            Call((_loads(rng, n), 2 ** between(rng, 2, 5), f), "a limit")
            for n, f in ((4, 1.0), (8, 1.25), (16, 1.5))
        ),
        *(Call((_just_above(rng), 4, 1.25), "a mean that is no whole number") for _ in range(2)),
        Call(([0, 90, 0, 3, 0, 0, 11, 0], 16, 1.125), "experts without tokens"),
        Call(([between(rng, 300, 400), 0, 0, 0], 32, 2.0), "all tokens on one expert"),
        Call(([17, 19, 18, 21], 16, 8.0), "a limit that nobody reaches"),
        Call(([64, 32, 0, 16, 48, 7, 32, 80], 16, None), "loads that are whole tiles"),
    ],
    where=f'{LESSON}/b_order_and_tiles.ipynb, "Capacity, and dropping nobody"',
    hints=(
        "Work expert by expert: what does it keep, how many tiles does that open, and how many rows are those?",
        "The limit is one number, from the mean of all loads. kept = min(load, limit); rows = ceil(kept / tile) * tile. Padded and dropped are then differences of sums.",
        "limit = math.inf if factor is None else math.ceil(factor * sum(loads) / len(loads)); kept = [min(n, limit) for n in loads]; slots = sum(math.ceil(n / tile) * tile for n in kept)",
    ),
    mistakes=CELLS.mistakes("tile_use"),
)

LAYER_SHARE = NumpyQuestion(
    id="moe_routing.layer_share",
    notebook="concepts",
    asks='layer_share(events): (the layer\'s share of the step, the share of moe.experts in the layer) of events (name, start, us): the layer is what begins with "moe.", and the step lasts from the first start to the last end, gaps and all',
    entry="layer_share",
    parts=(Part("values", 2, "calls"),),
    reference=layer_share,
    public=(
        Call(([("norm", 10.0, 2.0), ("moe.router", 12.0, 1.0), ("moe.experts", 15.0, 5.0)],), "three events"),
        Call(
            ([(name, round(at, 1), round(us, 1)) for name, at, us in _events(np.random.default_rng(10), 1)],),
            "a block",
        ),
    ),
    hidden=lambda rng: [
        *(Call((_events(rng, n),), "other steps") for n in (1, 2, 5)),
        Call((_events(rng, 3, shuffled=True),), "events in no order"),
        Call(([("before.moe.in", 1.0, 2.0)] + _events(rng, 2),), "a name with moe. further on"),
        Call((_beside(rng),), "an event beside others, and names that are much alike"),
    ],
    where=f'{LESSON}/d_measured.ipynb, "Its share of a step"',
    hints=(
        "Two divisions of three times. Which of the three is no sum?",
        "Sum the durations of what begins with moe. and of moe.experts alone; the step is the largest start + us less the smallest start.",
        "step = max(s + d for _, s, d in events) - min(s for _, s, _ in events); layer = sum(d for name, _, d in events if name.startswith('moe.'))",
    ),
    mistakes=CELLS.mistakes("layer_share"),
)

QUESTIONS = (ROUTE, COUNT, PERMUTE, EXPERTS, COMBINE, TILE_USE, LAYER_SHARE)
# Answers that hold for some calls alone.
SHORTCUTS = {
    ROUTE.id: {"two experts a token": lambda x, router, k, first: route(x, router, 2, first)},
    COUNT.id: {"tiles of eight": lambda chosen, n, tile: loads_and_offsets(chosen, n, 8)},
    PERMUTE.id: {"tiles of eight": lambda chosen, n, tile: permute(chosen, n, 8)},
}
