"""Share sizes, references and costs among questions of expert load balance."""

from functools import partial

import numpy as np

from grader.questions.draws import between, log_uniform
from grader.questions.on_condition import KIND as NEAR
from grader.questions.on_condition import NAMED
from kernels.expert_load_balance import cost, cost_search

MOST_SEARCHED = 12  # experts that the exact search can place in a moment
OF_OPTIMUM, OF_GREEDY = 4 / 3, 1.02


def busiest(loads: np.ndarray, device_of: np.ndarray, devices: int) -> float:
    return float(np.bincount(device_of, loads, devices).max())


def allowed(loads: np.ndarray, devices: int) -> tuple[float, str]:
    """Return the number of tokens that the busiest device may have, and the reason for this number."""
    if len(loads) <= MOST_SEARCHED:
        best = max(cost.device_loads(loads, cost_search.optimum(loads.tolist(), devices), devices))
        return OF_OPTIMUM * best, f"4/3 of the {best:g} of the best placement there is"
    greedy = max(cost.device_loads(loads, cost.greedy(loads.tolist(), devices), devices))
    return OF_GREEDY * greedy, f"2% above the {greedy:g} of heaviest first"


def good_placement(loads: np.ndarray, devices: int, got: np.ndarray) -> str:
    """Return an empty text if each device's slots are full and the busiest device keeps within its limit."""
    if not np.isin(got, np.arange(devices)).all():
        odd = next(int(e) for e in np.flatnonzero(~np.isin(got, np.arange(devices))))
        return f"expert {odd} must be on a device from 0 to {devices - 1}, got {got[odd]:g}"
    device_of, slots = got.astype(int), len(loads) // devices
    held = np.bincount(device_of, minlength=devices)
    if (held != slots).any():
        device = int((held != slots).argmax())
        return f"device {device} must hold {slots} experts, its slots, got {held[device]}"
    most, why = allowed(loads, devices)
    tokens = busiest(loads, device_of, devices)
    if tokens <= most * (1 + 1e-9):
        return ""
    device = int(np.bincount(device_of, loads, devices).argmax())
    return f"device {device} runs {tokens:g} tokens, at most {most:.5g} are allowed: {why}"


OF_COUNTS = "8 bytes of counts for each other rank, and 8 for each of its experts"


def to_ranks(topk_ids: np.ndarray, per: int, ranks: int) -> np.ndarray:
    """Return (ranks, tokens): whether a token has an expert on a rank."""
    return np.array([(topk_ids // per == rank).any(axis=1) for rank in range(ranks)]).reshape(
        ranks, len(topk_ids)
    )


def bytes_between(each, per: int) -> np.ndarray:
    """Return (senders, receivers): the tokens that must travel. A rank sends none to itself."""
    table = np.array([to_ranks(given[1], per, len(each)).sum(axis=1) for given in each])
    np.fill_diagonal(table, 0)
    return table


def picks_between(each, per: int) -> np.ndarray:
    """Return the same counted by choices, so that a token with two experts on a rank counts twice."""
    ranks = len(each)
    table = np.array([[(given[1] // per == rank).sum() for rank in range(ranks)] for given in each])
    np.fill_diagonal(table, 0)
    return table


def counts(ranks: int, per: int) -> int:
    """Bytes of counts that a rank may send: of its rows one number, and one for each expert."""
    return 8 * (1 + per) * (ranks - 1)


def row_bytes(each) -> tuple[int, int]:
    """(of a token, of its choices)."""
    x, topk_ids = each[0][:2]
    return x.shape[1] * x.itemsize, topk_ids.shape[1] * topk_ids.itemsize


def there_and_back(table: np.ndarray, there: int, back: int) -> np.ndarray:
    """Return the bytes that each rank sends: rows on their way out, and results on their way home."""
    return table.sum(axis=1) * there + table.sum(axis=0) * back


def to_everybody(each) -> np.ndarray:
    """All tokens of each rank to all others."""
    return np.outer([len(given[0]) for given in each], np.ones(len(each), int)) * (
        1 - np.eye(len(each), dtype=int)
    )


def padded(table: np.ndarray) -> np.ndarray:
    """As many rows to each as the fullest gets of this rank's."""
    return np.repeat(table.max(axis=1, keepdims=True), len(table), axis=1) * (
        1 - np.eye(len(table), dtype=int)
    )


LESSON = "course/04_expert_load_balance"
HIDDEN_SIZE, INNER = 32, 8
MOST_TOKENS, MOST_EXPERTS = 700, 300  # of a rank, and of all: 8 bits are too few for either
UP_TO = f"on up to four ranks, with up to {MOST_TOKENS} tokens each and {MOST_EXPERTS} experts in all"


def drawn_ids(rng, tokens, top_k, experts, hot=0.0, shunned=()):
    """Draw each token's choices, no expert twice. A share of `hot` of the tokens has expert 1 first. No token chooses
    the `shunned`."""
    number = np.arange(experts)
    wanted = 0.6 * (number % 3 == 0) - 9.0 * np.isin(number, shunned)
    order = np.argsort(rng.random((tokens, experts)) - wanted, axis=1)
    order[rng.random(tokens) < hot] = np.roll(np.arange(experts), -1)
    return order[:, :top_k]


def tokens_of(rng, each, experts, top_k, hot=0.0, shunned=(), columns=HIDDEN_SIZE):
    """Draw (x, topk_ids, topk_weights) of ranks with these numbers of tokens. No token's weights add up to 1."""
    found = []
    for tokens in each:
        topk_weights = rng.uniform(0.2, 1.0, (tokens, top_k))
        share = np.where(rng.random((tokens, 1)) < 0.5, rng.uniform(0.3, 0.8), rng.uniform(1.2, 2.0))
        topk_weights = (share * topk_weights / topk_weights.sum(axis=1, keepdims=True)).astype(np.float32)
        x = rng.standard_normal((tokens, columns)).astype(np.float32)
        found.append((x, drawn_ids(rng, tokens, top_k, experts, hot, shunned), topk_weights))
    return found


def weights_of(rng, experts, columns=HIDDEN_SIZE):
    """gate, up and down of all experts."""
    inner = INNER + max(0, columns - HIDDEN_SIZE)  # wider where rows are
    shapes = ((columns, inner), (columns, inner), (inner, columns))
    return [(rng.standard_normal((experts, *s)) * s[0] ** -0.5).astype(np.float32) for s in shapes]


GATHERED = "all tokens to one rank"
SHAPES = {  # kind -> (tokens of each rank, experts a rank, choices a token, share of tokens with the hot expert)
    "four ranks": lambda rng: ([between(rng, 9, 20) for _ in range(4)], 2, 2, 0.0),
    "three experts a token": lambda rng: ([between(rng, 9, 20) for _ in range(4)], 2, 3, 0.0),
    "six of sixteen experts a token": lambda rng: ([between(rng, 9, 20) for _ in range(4)], 4, 6, 0.0),
    "a hot expert": lambda rng: ([between(rng, 9, 20) for _ in range(4)], 2, 2, 0.8),
    "two ranks": lambda rng: ([between(rng, 5, 12) for _ in range(2)], 3, 2, 0.0),
    "a rank without tokens": lambda rng: ([between(rng, 3, 9), 0, between(rng, 3, 9), 5], 2, 2, 0.0),
    "a rank with nothing to do": lambda rng: ([between(rng, 3, 9), 0, between(rng, 3, 9), 5], 2, 2, 0.0),
    GATHERED: lambda rng: ([4, 3, between(rng, 2, 6), 5], 2, 2, 1.0),
    "nobody has a token": lambda rng: ([0, 0, 0], 2, 2, 0.0),
    "hundreds of tokens": lambda rng: ([between(rng, 600, MOST_TOKENS), 3], 2, 2, 0.0),
    "hundreds of experts": lambda rng: ([between(rng, 5, 9) for _ in range(4)], between(rng, 70, 75), 4, 0.0),
}
LARGE = "numbers beyond fp16"
SHAPES[LARGE] = lambda rng: ([between(rng, 9, 20) for _ in range(3)], 2, 2, 0.0)
LONGER = "more of everything than any other case"  # so that no size that is known is the largest
SHAPES[LONGER] = lambda rng: (
    [between(rng, 4, 9), between(rng, 90, 130), 5],
    between(rng, 5, 7),
    between(rng, 7, 9),
    0.0,
)
FULL = "as many tokens and experts as there may be"
SHAPES[FULL] = lambda rng: ([MOST_TOKENS] * 4, MOST_EXPERTS // 4, between(rng, 5, 8), 0.2)
TO_ONE = GATHERED, FULL
SHAPES["a rank alone"] = lambda rng: ([between(rng, 5, 12)], between(rng, 2, 5), 1, 0.0)
SHAPES["hundreds of experts on a rank alone"] = lambda rng: ([between(rng, 30, 60)], MOST_EXPERTS, 8, 0.0)
ALIKE = "rows of zeros, rows that begin with 0, and equal rows"
SHAPES[ALIKE] = lambda rng: ([between(rng, 20, 30) for _ in range(4)], between(rng, 2, 4), 2, 0.2)
ALIKE_ALONE = "rows of zeros, and one expert for each token"
SHAPES[ALIKE_ALONE] = lambda rng: ([between(rng, 20, 30) for _ in range(4)], between(rng, 1, 2), 1, 0.0)
NANS = "a NaN in some tokens, and weights of 0"
SHAPES[NANS] = lambda rng: ([between(rng, 20, 30) for _ in range(3)], 2, 2, 0.0)
SHUT = "gates that let nothing through, and tokens of very different size"
SHAPES[SHUT] = lambda rng: ([between(rng, 20, 30) for _ in range(4)], 2, 1, 0.0)
OUTLIER = "a column of large numbers that no expert reads"
SHAPES[OUTLIER] = lambda rng: ([between(rng, 9, 20) for _ in range(4)], 2, 2, 0.0)
AT_HOME = "a rank whose tokens stay at home, and that nobody sends to"
SHAPES[AT_HOME] = lambda rng: ([between(rng, 5, 12) for _ in range(4)], between(rng, 3, 5), 2, 0.0)
DRAWN, TIMES = "sizes drawn from all that there may be", 4
FEW_CHOICES, ALL_CHOICES = 3, 8


def size(rng, most: int, numbers=()) -> int:
    """Draw a size from all that there may be, or one at, beside or beyond a number of the cell."""
    near = [n for one in numbers for n in (one - 1, one, one + 1, 6 * one // 5) if 1 <= n <= most]
    return (
        int(rng.choice(near))
        if near and rng.random() < NAMED
        else min(most, int(log_uniform(rng, 1, most + 1)))
    )


def few(rng, most: int, numbers=()) -> int:
    """Draw a small number, half the time one of the cell."""
    own = [n for n in numbers if n <= most]
    return int(rng.choice(own)) if own and rng.random() < NAMED else between(rng, 1, most)


def drawn_shape(rng, numbers=(), ranks=0, choices=ALL_CHOICES):
    ranks = ranks or few(rng, 4, numbers)
    per = size(rng, MOST_EXPERTS // ranks, [*numbers, *(n // ranks for n in numbers)])
    each = [size(rng, MOST_TOKENS, numbers) for _ in range(ranks)]
    return each, per, few(rng, min(choices, ranks * per), numbers), rng.choice([0.0, rng.random()])


DRAWN_ON = {  # so that few choices and all numbers of ranks meet in every check
    f"any sizes on {ranks} ranks, with up to {choices} experts a token": partial(
        drawn_shape, ranks=ranks, choices=choices
    )
    for ranks in (2, 3, 4)
    for choices in (FEW_CHOICES, ALL_CHOICES)
}
SHAPES |= DRAWN_ON
SHAPES[DRAWN] = drawn_shape
MOST_NUMBERS = 1 << 17  # of a rank's rows in the masked layout
IDLE = {"a rank with nothing to do": 1}  # the rank whose experts no token chooses, and which has no token
PUBLIC = ("four ranks", "six of sixteen experts a token", "a rank without tokens")
FREE = (DRAWN, NEAR, *DRAWN_ON)
WEIGHTS = -8, 3  # powers of ten
HIDDEN = (*SHAPES, "four ranks")
ZEROS = "one expert for each token, and rows of 0 or -0.0 last for each rank, or all of a rank's"
SHAPES[ZEROS] = lambda rng: (  # a row of zeros is no empty slot
    [between(rng, 9, 16) for _ in range(between(rng, 2, 4))],
    between(rng, 1, 3),
    1,
    0.0,
)
TWINS = "equal rows, also on several ranks, that share an expert, but not all experts and weights"
SHAPES[TWINS] = lambda rng: (  # equal rows are no single row
    [between(rng, 9, 16) for _ in range(between(rng, 2, 4))],
    between(rng, 2, 4),
    2,
    0.0,
)
FAINT = "rows of whole numbers with a faint one each"
SHAPES[FAINT] = lambda rng: ([between(rng, 5, 12) for _ in range(4)], 2, 2, 0.0)
CROWD = "one expert that all tokens of all ranks choose"
SHAPES[CROWD] = lambda rng: ([between(rng, 600, MOST_TOKENS) for _ in range(4)], between(rng, 1, 2), 1, 1.0)
MANY = "four ranks, with hundreds of tokens each"  # as the public kind whose name it begins with
SHAPES[MANY] = lambda rng: ([between(rng, 200, 240) for _ in range(4)], 2, 2, 0.0)
HIDDEN = (*HIDDEN, ZEROS, TWINS, FAINT, CROWD, MANY)  # last, so that the others stay as they were drawn


def tokens(rng, kind, numbers=()):
    """Draw what the ranks have, and how many experts each."""
    each, per, top_k, hot = drawn_shape(rng, numbers) if kind == NEAR else SHAPES[kind](rng)
    shunned = np.arange(per) + per * IDLE[kind] if kind in IDLE else ()
    columns = between(rng, 40, 60) if kind == LONGER else HIDDEN_SIZE
    if kind in (FULL, CROWD, *FREE):
        columns = min(between(rng, 4, 40), max(2, MOST_NUMBERS // (per * len(each) * max(each))))
    found = tokens_of(rng, each, len(each) * per, top_k, hot, shunned, columns)
    if kind == FULL:  # one rank gets all tokens of all ranks, half the time for one expert
        some = np.arange(per) if rng.random() < 0.5 else rng.integers(per, size=1)
        hottest = per * rng.integers(len(each)) + some
        for _, topk_ids, _ in found:
            put_first(rng, topk_ids, hottest)
    if kind in FREE:
        found = [of_any_weight(rng, *one) for one in found]
    if kind in (ALIKE, ALIKE_ALONE) or (kind in FREE and rng.random() < 0.5):
        found = [alike(rng, *one) for one in found]
    if kind == NANS:
        found = [with_nan(rng, *one) for one in found]
    if kind == ZEROS:
        found = with_zeros(rng, found, per)
    if kind == TWINS:
        found = with_twins(rng, found, per * len(each))
    if kind == FAINT:  # which a narrower type holds but for the faint ones
        found = [(with_faint(rng, x.shape), *more) for x, *more in found]
    if kind == AT_HOME:
        holders = np.arange(len(each)) == np.arange(per * len(each))[:, None] // per
        keep_at_home(rng, found, holders, rng.integers(len(each)))
    return [(beyond_fp16(rng, x) if kind == LARGE else x, *more) for x, *more in found], per


def with_faint(rng, shape):
    """Draw rows of small whole numbers, with a number of about a billionth at one place of each."""
    x = rng.integers(-8, 9, shape).astype(np.float32)
    x[np.arange(shape[0]), rng.integers(shape[1], size=shape[0])] = 10.0 ** rng.uniform(-10, -8, shape[0])
    return x


def keep_at_home(rng, found, holders, home: int) -> None:
    """Let the tokens of one rank choose its own experts alone, and those of all others the experts that it lacks."""
    for rank, (_, topk_ids, _) in enumerate(found):
        chosen = np.flatnonzero(holders[:, home] == (rank == home))
        for token in topk_ids:
            token[:] = rng.choice(chosen, len(token), replace=False)


def put_first(rng, topk_ids, hottest, share=1.0):
    """Give a share of the tokens one of the hottest experts as the first choice, and no expert twice."""
    for token in np.flatnonzero(rng.random(len(topk_ids)) < share):
        expert = rng.choice(hottest)
        topk_ids[token, topk_ids[token] == expert] = topk_ids[token, 0]
        topk_ids[token, 0] = expert


LARGE_BY = 3, 6  # powers of ten


def with_an_outlier(rng, found, experts):
    """Give each token one large number, and experts that ignore it, so that the others must keep all their bits."""
    gate, up, down = (one.copy() for one in experts)
    column = rng.integers(gate.shape[1])
    gate[:, column], up[:, column] = 0, 0
    each = []
    for x, ids, weights in found:
        x = x.copy()
        x[:, column] = 10.0 ** rng.uniform(*LARGE_BY, len(x))
        each.append((x, ids, weights))
    return each, [gate, up, down]


SIZES = -6, 6  # powers of ten
SHUT_BY = 1, 8  # of tokens


def with_shut_gates(rng, found):
    """Make of half of the tokens some of very different size, of one sign, for experts without negative numbers, so that sums
    cancel nothing. Negative ones have negative gates alone, which let nothing through, however large the token is."""
    each = []
    for x, ids, weights in found:
        half, sign = rng.random((len(x), 1)) < 0.5, np.where(rng.random((len(x), 1)) < 0.7, -1, 1)
        large = sign * rng.uniform(0.5, 1, x.shape) * 10.0 ** rng.uniform(*SHUT_BY, (len(x), 1))
        each.append((np.where(half, large, x).astype(np.float32), ids, weights))
    return each


def of_any_size(rng, found, experts):
    """Give experts results of any size, and small weights to large results, so that every choice of a token matters."""
    gate, up, down = experts
    size, share = 10.0 ** rng.uniform(*SIZES, (len(up), 1, 1)), rng.random((len(up), 1, 1))
    found = [(x, ids, (weights / size[ids, 0, 0]).astype(np.float32)) for x, ids, weights in found]
    return found, [
        gate,
        (up * size**share).astype(np.float32),
        (down * size ** (1 - share)).astype(np.float32),
    ]


def of_any_weight(rng, x, topk_ids, topk_weights):
    """Give half of the tokens weights of any size, and rows that are the larger the smaller their weights are, so that
    results keep their size."""
    factor = np.where(rng.random(len(x)) < 0.5, 10.0 ** rng.uniform(*WEIGHTS, len(x)), 1.0)[:, None]
    return (x / np.sqrt(factor)).astype(np.float32), topk_ids, (factor * topk_weights).astype(np.float32)


def with_nan(rng, x, topk_ids, topk_weights):
    """Put a NaN into a third of the tokens, and give half of all tokens a weight of 0 for one choice or all."""
    x, topk_weights, tokens = x.copy(), topk_weights.copy(), len(x)
    ill = rng.random(tokens) < 1 / 3
    x[ill, rng.integers(x.shape[1], size=ill.sum())] = np.nan
    topk_weights[np.arange(tokens), rng.integers(topk_weights.shape[1], size=tokens)] *= (
        rng.random(tokens) < 0.5
    )
    topk_weights[rng.random(tokens) < 0.2] = 0
    return x, topk_ids, topk_weights


def alike(rng, x, topk_ids, topk_weights):
    """Draw equal tokens among these, rows of zeros, and rows of which the first number or all others are 0."""
    same = np.where(rng.random(len(x)) < 0.4, rng.integers(0, len(x), len(x)), np.arange(len(x)))
    x, topk_ids, topk_weights = x[same], topk_ids[same], topk_weights[same]
    sort = rng.random(len(x))
    x[sort < 0.2] = 0.0
    x[(sort > 0.2) & (sort < 0.35), 0] = 0.0
    x[(sort > 0.35) & (sort < 0.5), 1:] = 0.0
    return x, topk_ids, topk_weights


def signed_zeros(rng, shape):
    """Draw rows of 0 and rows of -0.0."""
    return np.broadcast_to(np.where(rng.random((shape[0], 1)) < 0.5, 0.0, -0.0), shape)


def with_zeros(rng, found, per: int):
    """Let each rank end with a row of zeros for the first expert of every rank. Of one, all rows for the first rank are
    zeros that chose its first expert, of another one all rows are zeros."""
    first_ranks, all_ranks = rng.permutation(len(found))[:2]
    each = []
    for rank, (x, topk_ids, topk_weights) in enumerate(found):
        topk_ids = topk_ids.copy()
        topk_ids[-len(found) :, 0] = per * rng.permutation(len(found))
        for_first = topk_ids[:, 0] < per
        if rank == first_ranks:
            topk_ids[for_first] = 0
        empty = rng.random(len(x)) < 0.2
        empty[-len(found) :] = True
        empty |= (rank == all_ranks) | (for_first & (rank == first_ranks))
        each.append(
            (np.where(empty[:, None], signed_zeros(rng, x.shape), x).astype(x.dtype), topk_ids, topk_weights)
        )
    return each


OF_TWINS = 0.6  # of the tokens


def with_twins(rng, found, experts: int):
    """Give most tokens one of four rows, of which two are 0 and -0.0, and one of two first experts that go with this row.
    Half of these have the same second expert too. Their weights differ."""
    columns = found[0][0].shape[1]
    rows = np.stack([*rng.standard_normal((2, columns)), np.zeros(columns), -np.zeros(columns)])
    chosen = np.array([[rng.permutation(experts)[:2] for _ in range(2)] for _ in rows])
    each = []
    for x, topk_ids, topk_weights in found:
        x, topk_ids = x.copy(), topk_ids.copy()
        for token in np.flatnonzero(rng.random(len(x)) < OF_TWINS):
            row = rng.integers(len(rows))
            x[token] = rows[row]
            own = chosen[row, rng.integers(2)]
            put_first(rng, topk_ids[token : token + 1], own[:1])
            if rng.random() < 0.5:
                topk_ids[token, 1] = own[1]
        each.append((x, topk_ids, topk_weights))
    return each


def beyond_fp16(rng, x):
    """Draw positive numbers too large for fp16, so that sums of their products cancel nothing."""
    return rng.uniform(1e5, 3e5, x.shape).astype(np.float32)


BOUNDS = np.finfo(np.float32)
SPECIAL = np.array(
    [
        np.nan,
        np.inf,
        0.0,
        BOUNDS.max,
        BOUNDS.tiny,
        BOUNDS.smallest_subnormal,
        -np.inf,
        -0.0,
        BOUNDS.min,
        -BOUNDS.tiny,
    ],
    np.float32,
)


def handed_on(rng, kind, x):
    """Draw rows that are handed on as they are, so that they may hold all that fp32 can: some hold a special number at
    an end, some hold several, and some nothing else."""
    if kind in (ZEROS, TWINS, FAINT):  # whose rows are equal and zero as they are
        return x
    x = of_every_size(rng, x) if kind in (LARGE, FULL) else x
    special, sort = rng.choice(SPECIAL, x.shape), rng.random((len(x), 1))
    at_an_end = np.arange(x.shape[1]) == rng.choice([0, x.shape[1] - 1], (len(x), 1))
    here = (sort < 0.15) & at_an_end | (sort > 0.85) & (rng.random(x.shape) < 0.3)
    x = np.where(here, special, x)
    return np.where((sort > 0.15) & (sort < 0.25), special[:, :1], x)


def of_every_size(rng, x):
    """Draw numbers of every size, among them NaN, infinities and the negative zero."""
    x = (x * 10.0 ** rng.uniform(-30, 30, x.shape)).astype(np.float32)
    for number in (np.inf, -np.inf, -0.0):
        x[rng.random(x.shape) < 0.1] = number
    return np.where(rng.random(x.shape) < 0.1, nans(rng, x.shape), x)


QUIET = 0x7FC00000  # the bits of a NaN that no cast warns of


def nans(rng, shape):
    """Draw quiet NaNs of both signs, with any other bits."""
    bits = rng.integers(0, 1 << 22, shape) + (rng.integers(0, 2, shape) << 31)
    return (bits + QUIET).astype(np.uint32).view(np.float32)


OWN = "rows that hold numbers of yours"


def holding(rng, x, numbers):
    """Put numbers of the cell into some places of the rows: themselves, of both signs, and those whose bits they are."""
    own = np.array([sign * n for n in numbers for sign in (1, -1)], np.float64)
    with np.errstate(over="ignore"):
        own = own.astype(np.float32)
    bits = np.array([n for n in numbers if n == n // 1 and 0 <= n < 1 << 32], np.uint32)
    as_bits = bits.view(np.float32)
    as_bits = as_bits[~np.isnan(as_bits) | (bits & QUIET == QUIET)]
    return np.where(rng.random(x.shape) < 0.3, rng.choice(np.concatenate((own, as_bits)), x.shape), x)


WIDER = "float32 beside int64 in one array makes float64 of both, twice as wide: bring all to one type of four bytes, or send them apart"
PAD = "rows are padded to the fullest: the counts say how many there are, so send these and no more"
ALL = "every token goes to every rank: send it to those that have one of its experts"
