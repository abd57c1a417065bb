"""Share rows and their scores among questions of sampling fusion."""

import numpy as np

from grader.box.serve.frames import DTYPES
from grader.questions import Case
from grader.questions.draws import between
from grader.topics.sampling_fusion.shared_logits import (
    GREEDY_ZEROS,
    MANY_EQUAL,
    MOST_FAR_BELOW,
    RISING,
    STRADDLED,
    of_kind,
)
from kernels.sampling_fusion import philox, reference
from kernels.sampling_fusion.requests import Requests

FP32 = 2.0**-20  # of a score, for a few roundings to fp32


UNIFORM = 2.0**-24  # of a uniform number near 1, where its logarithm is small and its rounding is not
BORDER = 1e-4  # of the kept mass, within which a token at top-p's edge may be in or out
STEP = 4.6566127342e-10  # Triton's, a little less than 2**-31, so that no uniform number is 1
MARGIN = (
    2.0**-10
)  # between the scores of a close call where noise is large, and its uniform number is rounded
CLOSE = 2.0**-15  # and where it's small, so that fp32 computes scores to about 2**-17
CONTENDERS = 4  # tokens of the largest noise
IN_CACHE = 16_384  # random numbers that are made at once, four times as fast as millions
TRIES = 64  # seeds looked through for one that tells
LARGE_NOISE = 15.0
FIRST_LOOK = 8  # tokens
FEW_TRIES = 32  # the same for large vocabularies
EARLY = 16  # of a row, the part that has its best token
JUST = 0.1  # between scores that no rounding of noise turns round
A_BIT_APART = "neighbours among the numbers of fp32"
ANYWHERE, AGAIN, STRONG = "borders anywhere", "one token again and again", "strong penalties"
SMALL_SEEDS = 1 / 4
SPECIAL_SEEDS = 1 / 2  # half of them are ones in the low bits
TIED_BY_NOISE = "tokens of equal logits and equal noise"
BLOCKS = 256, 512, 1024  # of lanes: in one of them the second token has the lower lane
HELD_UP = 40  # temperatures above the others
CROWDED = "a winner next to a border, among thousands of like tokens"
FAINT_TAIL = "a tail of weights that are next to nothing one by one"
LOW_NOISE = "a token of the lowest noise"
# seeds, each with the token, 0 or 1, whose uniform number is below 1e-7: one seed in five million has one
LOWEST_NOISE = (
    (-1190724034, 1),
    (-101705870, 0),
    (1991355068, 1),
    (-1138344082, 1),
    (1523300669, 1),
    (1105369958, 0),
    (229272552, 1),
    (911628970, 0),
    (-2118050206, 1),
    (-321550726, 1),
    (1841899879, 1),
    (-1978145893, 1),
    (-1551795536, 1),
    (-1023533726, 1),
    (-965029586, 1),
    (289166980, 1),
    (1373841739, 0),
    (-1237458937, 0),
    (320829272, 1),
    (475686690, 1),
    (-1865567144, 0),
    (-1134154293, 1),
    (1005403724, 0),
)
LATE_NOISE = "a late token of the largest noise"
# seeds, each with the token from 1024 to 4095 whose uniform number fp32 rounds to its largest below 1: one in 30 million
LARGEST_NOISE = (
    (2030799739, 3101),
    (-1763617967, 3531),
    (1396086460, 2339),
    (-999498227, 2572),
    (1433680659, 2474),
    (503306904, 2288),
    (-1207749160, 2511),
    (962844087, 2140),
    (1328151517, 3058),
    (-1367387334, 1365),
    (-1056913125, 2957),
    (763012938, 1444),
    (-1754714454, 2438),
    (-343824983, 3863),
    (-627648125, 1643),
    (580679292, 2966),
    (1429357063, 1940),
)
EXACT_TEMPERATURE = "two scores that a temperature of half precision swaps"
BY_TEMPERATURE = 2.0**-12  # between them
PRECISE_NOISE = 5.0  # at most, so that fp32 computes scores to about 2**-16
EARLY_TOKENS = 64
COLD_LIFTED = "a late token that its own history lifts, in cold rows"
OF_OWN_SIZES = TIED_BY_NOISE, FAINT_TAIL, CROWDED, LOW_NOISE  # which take long to find at others
OUTNUMBERED = "a best token that many low ones outnumber"
USUAL = 1 / 6  # of the rows have a temperature of exactly 1, the commonest one


def uniform(seed, tokens: np.ndarray) -> np.ndarray:
    """Return tl.rand in numpy: the first Philox word as a signed number, folded to [0, 1). Many seeds come as a
    column."""
    key, tokens = np.asarray(seed, np.int64).astype(np.uint64), np.asarray(tokens)
    few = max(1, IN_CACHE // key.size)
    if tokens.ndim == 1 and few < tokens.size and key.size < tokens.size:
        return np.concatenate(
            [uniform(seed, some) for some in np.split(tokens, range(few, tokens.size, few))], -1
        )
    word = philox.philox(key, tokens, 0, 0)[0].view(np.int32).astype(np.int64)
    return np.where(word < 0, -word - 1, word) * STEP


def gumbel_of(u: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return -np.log(-np.log(u))


def noise(seed, vocabulary: int) -> np.ndarray:
    return gumbel_of(uniform(seed, np.arange(vocabulary)))


def in_turn(rng: np.random.Generator, choices, count: int) -> np.ndarray:
    """Draw each choice equally often, in random order, so that no case lacks one by chance."""
    return rng.permutation(np.resize(rng.permutation(choices), count))


def factors(rng: np.random.Generator, low: float, high: float, count: int) -> np.ndarray:
    """Numbers from a whole range, each factor as likely as the next, to be known by no table."""
    return np.exp(rng.uniform(np.log(low), np.log(high), count))


def sometimes(rng: np.random.Generator, values: np.ndarray, off: float, each: int = 3) -> np.ndarray:
    """Turn off the filter of one row in this many."""
    return np.where(in_turn(rng, np.arange(each), values.size) == 0, off, values)


def logits_for(case: Case, rng: np.random.Generator) -> np.ndarray:
    """Return a case's logits, rounded to their dtype."""
    found = of_kind(case.values, case.sizes["B"], case.sizes["V"], rng)
    return found.astype(np.float32).astype(DTYPES[case.dtype])


COLD = {
    OUTNUMBERED: (0,),
    "equal": (1,),
    "pairs": (1,),
    "far below zero": (1,),
    GREEDY_ZEROS: (1,),
    STRADDLED: (1,),
} | dict.fromkeys(
    (
        "levels",
        "a warm tail",
        "all warm",
        "exact borders",
        MANY_EQUAL,
        "one low value",
        "zeros",
        "apart",
        "crowded",
        "steps",
        "the last one wins",
        "near borders",
        "near min-p",
        "the last bits",
        A_BIT_APART,
        ANYWHERE,
        TIED_BY_NOISE,
        LOW_NOISE,
        LATE_NOISE,
        EXACT_TEMPERATURE,
        COLD_LIFTED,
        FAINT_TAIL,
        CROWDED,
    ),
    (0,),
)
TEMPERATURES = {
    "any temperature": (0.05, 10.0),
    "cold close calls": (0.002, 0.1),
    "hot close calls": (10.0, 1000.0),
    ANYWHERE: (0.05, 10.0),
    STRONG: (0.05, 10.0),
    LATE_NOISE: (0.05, 10.0),
    EXACT_TEMPERATURE: (0.055, 9.5),
    COLD_LIFTED: (0.05, 0.07),  # where a presence below 0 lifts by more than noise reaches
    MOST_FAR_BELOW: (9.0, 10.0),  # where weights of what is cut off too early add up
}
PENALISED = (AGAIN, STRONG)  # logits before penalties are rounded more coarsely than scores
CLOSE_CALLS = ("close calls", "cold close calls", "hot close calls", *PENALISED)


def plain_inputs(case: Case, rng: np.random.Generator) -> dict:
    b = case.sizes["B"]
    cold = COLD.get(case.values, (1, 0, 0, 0))
    low, high = TEMPERATURES.get(case.values, (0.4, 2.0))
    temperature = np.where(in_turn(rng, cold, b), 0.0, factors(rng, low, high, b)).astype(np.float32)
    temperature[(temperature > 0) & (rng.random(b) < USUAL) & (low < 1 < high)] = 1.0
    warm = int(np.argmax(temperature > 0))  # first, so that "the first row's for all" is not "greedy for all"
    temperature[[0, warm]] = temperature[[warm, 0]]
    inputs = {
        "logits": logits_for(case, rng),
        "temperature": temperature,
        "seed": seeds(rng, b),
    }
    if case.values in CLOSE_CALLS:
        return close_calls(inputs, rng, MARGIN if case.values in PENALISED else CLOSE)
    special = {
        OUTNUMBERED: outnumbered,
        TIED_BY_NOISE: tied_by_noise,
        LOW_NOISE: low_noise,
        LATE_NOISE: late_noise,
        EXACT_TEMPERATURE: exact_temperature,
    }
    return special[case.values](inputs, rng) if case.values in special else inputs


def uncrossed(case: Case) -> Case | None:
    """Leave out inputs that are made for the sizes of their own case."""
    return None if case.values in OF_OWN_SIZES else case


def rising(sizes: dict, rng: np.random.Generator) -> Case:
    """Return a case whose best tokens come last, on a GPU with many multiprocessors to share the row."""
    return Case(sizes, "fp32", sm_count=between(rng, 150, 190), values=RISING, kind=RISING)


def outnumbered(inputs: dict, rng: np.random.Generator) -> dict:
    """Make rows of one low logit and an early best token so far above that a low one just wins, with the seed of some
    whose noise is nearest to the largest that fp32 holds well."""
    x, told = np.zeros(inputs["logits"].shape), inputs["seed"].copy()
    for i, row in enumerate(x):
        at = rng.integers(max(1, row.size // EARLY))
        tries = seeds(rng, FEW_TRIES)
        pairs = [parted(noise(int(seed), row.size), at) for seed in tries]
        chosen = min(range(len(tries)), key=lambda number: abs(pairs[number][1] - LARGE_NOISE))
        own, others = pairs[chosen]
        less = others - own - JUST - UNIFORM * np.exp(others)
        row[at], told[i] = float(inputs["temperature"][i]) * less, tries[chosen]
    return inputs | {"logits": x.astype(np.float32).astype(inputs["logits"].dtype), "seed": told}


def tied_by_noise(inputs: dict, rng: np.random.Generator) -> dict:
    """Let two tokens of each row win together: equal logits, and a seed with which their uniform numbers are equal."""
    x, told = inputs["logits"].copy(), inputs["seed"].copy()
    for i, row in enumerate(x):
        lanes, pair = BLOCKS[i % len(BLOCKS)], None
        while pair is None:
            seed = rng.integers(-(2**31), 2**31)
            pair = next(
                (two for two in equal_numbers(seed, row.size) if two[1] % lanes < two[0] % lanes), None
            )
        row[list(pair)], told[i] = HELD_UP * inputs["temperature"][i], seed
    return inputs | {"logits": x, "seed": told}


def equal_numbers(seed: int, vocabulary: int) -> list[tuple[int, int]]:
    """Return the pairs of tokens, the lower first, with the same uniform number."""
    numbers = uniform(seed, np.arange(vocabulary))
    order = np.argsort(numbers, kind="stable")
    equal = np.flatnonzero(np.diff(numbers[order]) == 0)
    return [(int(order[at]), int(order[at + 1])) for at in equal]


def low_noise(inputs: dict, rng: np.random.Generator) -> dict:
    """Give one of two tokens the lowest noise in each row, and let the other win by a little."""
    x = np.zeros(inputs["logits"].shape)
    rows = in_turn(rng, np.arange(len(LOWEST_NOISE)), len(inputs["seed"]))
    seed, low = np.array(LOWEST_NOISE)[rows].T
    numbers = np.array([noise(int(one), 2) for one in seed])
    other, row = 1 - low, np.arange(len(seed))
    x[row, other] = inputs["temperature"] * (numbers[row, low] + JUST / 2 - numbers[row, other])
    return inputs | {"logits": x.astype(inputs["logits"].dtype), "seed": seed.astype(np.int32)}


def late_noise(inputs: dict, rng: np.random.Generator) -> dict:
    """Give a late token of each row the largest noise, which fp32 rounds by up to 1, and let it win by little more against an
    early one. So a block may not be skipped for being 15 or 16 behind. A row that is too short for the token stays as it is."""
    x, told = inputs["logits"].astype(np.float64), inputs["seed"].copy()
    for i, number in enumerate(in_turn(rng, np.arange(len(LARGEST_NOISE)), len(x))):
        seed, late = LARGEST_NOISE[number]
        if late >= x.shape[1]:
            continue
        early, told[i] = rng.integers(EARLY_TOKENS), seed
        own, others = gumbel_of(uniform(seed, np.array([early, late])))
        scores = np.full(x.shape[1], -float(HELD_UP))
        scores[late], scores[early] = 0, others - own - JUST - 1
        x[i] = float(inputs["temperature"][i]) * scores
    return inputs | {"logits": x.astype(np.float32).astype(inputs["logits"].dtype), "seed": told}


def exact_temperature(inputs: dict, rng: np.random.Generator) -> dict:
    """Choose each row's temperature so that two tokens far above the others have almost the same score: the one with less
    noise has the larger logit. A temperature that is off by a two-thousandth often swaps them."""
    x, t, told = inputs["logits"].astype(np.float64), inputs["temperature"].copy(), inputs["seed"].copy()
    signs = in_turn(rng, (-1, 1), len(x))
    for i, row in enumerate(x if x.shape[1] > 1 else ()):
        two, tries = rng.choice(row.size, 2, replace=False), seeds(rng, TRIES)
        numbers = gumbel_of(uniform(tries[:, None], two))
        apart = np.where(numbers.max(1) < PRECISE_NOISE, numbers[:, 1] - numbers[:, 0], 0.0)
        told[i], apart = tries[apart.argmax()], apart.max()
        higher = float(np.float64(t[i] * apart).astype(inputs["logits"].dtype))
        t[i] = higher / (apart + signs[i] * BY_TEMPERATURE)
        row[:] = -HELD_UP * t[i]
        row[two] = higher, 0
    return inputs | {"logits": x.astype(inputs["logits"].dtype), "temperature": t, "seed": told}


def parted(numbers: np.ndarray, at: int) -> tuple[float, float]:
    """Return the number at a place, and the largest of the others, or itself where it is alone."""
    others = np.delete(numbers, at)
    return numbers[at], others.max() if others.size else numbers[at]


def seeds(rng: np.random.Generator, count: int) -> np.ndarray:
    """Any seeds that int32 holds, of both signs, among them small ones and 0, and ones of special bits."""
    found = rng.integers(-(2**31), 2**31, count)
    small = np.trunc(found / 2.0 ** rng.uniform(10, 34, count)).astype(np.int64)
    found = np.where(rng.random(count) < SMALL_SEEDS, small, found)
    special = rng.random(count) < SPECIAL_SEEDS
    found[special] = special_seeds(rng, int(special.sum()))
    return found.astype(np.int32)


def special_seeds(rng: np.random.Generator, count: int) -> np.ndarray:
    """Seeds whose low bits are all ones below a zero, of any number, or all zeros below a one. Some have no other bits."""
    form = in_turn(rng, np.arange(64), count)
    low, ones = form % 32, form < 32
    above = np.where(rng.random(count) < 0.5, 0, rng.integers(0, 2**31, count) << low + 1)
    found = above + np.where(ones, (1 << low) - 1, 1 << low)
    return (found + 2**31) % 2**32 - 2**31


def close_calls(inputs: dict, rng: np.random.Generator, apart: float) -> dict:
    """Make logits of the coming noise, T (s - noise), so that all scores s are this far apart.

    If noise or temperature is slightly off, another token wins in almost every row. In every other row, whose scores are
    MARGIN apart, the largest noise has the highest scores. It comes from uniform numbers near 1, which are the hard ones
    to get right.
    """
    b, v = inputs["logits"].shape
    g = noise(inputs["seed"][:, None], v)
    odd = np.arange(b)[:, None] % 2 == 1
    hard = (ranks(-g) < CONTENDERS) & odd
    scores = np.where(odd, MARGIN, apart) * ranks(rng.random((b, v)) + hard)
    t = inputs["temperature"].astype(np.float64)[:, None]
    x = np.where(t == 0, scores, t * (scores - g))
    return inputs | {"logits": x.astype(np.float32).astype(inputs["logits"].dtype)}


def neighbours(rng: np.random.Generator, b: int, v: int) -> np.ndarray:
    """Return rows of neighbouring fp32 numbers, each twice and in any order. Half of the rows are negative."""
    steps = (ranks(rng.random((b, v))) // 2).astype(np.float32) * np.finfo(np.float32).eps
    return in_turn(rng, (1, -1), b).astype(np.float32)[:, None] * (np.float32(1) + steps)


def ranks(keys: np.ndarray) -> np.ndarray:
    return np.argsort(np.argsort(keys, axis=1), axis=1)


LOOKED_AT_TOGETHER = 128  # rows
MOST_TOLD = 256  # rows of a case


def telling_seeds(inputs: dict, rng: np.random.Generator) -> dict:
    """Seeds with which, row by row in turn, the last token that stays wins, or the first that goes would have won. Of many
    rows some have such a seed, because each takes milliseconds to find."""
    count = inputs["seed"].size
    chosen = np.sort(rng.permutation(count)[:MOST_TOLD])
    rows, tries = [], []
    for i in chosen.tolist():
        x, t = final_logits(inputs, i), float(inputs["temperature"][i])
        order = reference.Ranking.of(x, t or 1.0).token
        stays = survivors(x, t or 1.0, filters(inputs, i))[order]
        last = int(np.flatnonzero(stays)[-1])
        if i % 2 and last + 1 < order.size:
            last += 1
        tries.append(seeds(rng, TRIES))
        rows.append((order[: last + 1], x[order[: last + 1]] / (t or 1.0)))
    parts = range(0, len(rows), LOOKED_AT_TOGETHER)
    each = [slice(at, at + LOOKED_AT_TOGETHER) for at in parts]
    wins = np.concatenate([the_last_wins(rows[part], np.array(tries[part])) for part in each])
    told = inputs["seed"].copy()
    told[chosen] = np.array(tries)[np.arange(len(rows)), wins.argmax(1)]
    return inputs | {"seed": told}


def the_last_wins(rows: list[tuple[np.ndarray, np.ndarray]], tries: np.ndarray) -> np.ndarray:
    """Return for each row, its tokens and their scores without noise, with which of its seeds the last token has the
    largest score alone. Most seeds are ruled out by the first tokens."""
    most = max(tokens.size for tokens, _ in rows)
    tokens, x = np.zeros((len(rows), most), int), np.full((len(rows), most), -np.inf)
    for i, (of_row, scores) in enumerate(rows):
        tokens[i, : of_row.size], x[i, : of_row.size - 1] = of_row, scores[:-1]
    last = np.array([[of_row[-1]] for of_row, _ in rows]), np.array([[scores[-1]] for _, scores in rows])
    own = last[1] + gumbel_of(uniform(tries, last[0]))
    wins, at, few = np.ones(tries.shape, bool), 0, FIRST_LOOK
    while at < most and wins.any():
        row, number = np.nonzero(wins)
        others = x[row, at : at + few] + gumbel_of(
            uniform(tries[row, number, None], tokens[row, at : at + few])
        )
        wins[row, number] = others.max(1) < own[row, number]
        at, few = at + few, 2 * few
    return wins


def final_logits(inputs: dict, i: int) -> np.ndarray:
    """Row i after mask and penalties, where the question has them."""
    x = inputs["logits"][i].astype(np.float64)
    if "allowed" not in inputs:
        return x
    output = inputs["history"][i]
    row = Requests.of(
        1,
        x.size,
        allowed=inputs["allowed"][i : i + 1],
        outputs=[output[output >= 0]],
        **{n: float(inputs[n][i]) for n in ("repetition", "frequency", "presence")},
    )
    return reference.processed(x, row, 0)


def survivors(x, temperature: float, ask: tuple[int, float, float]) -> np.ndarray:
    """Return the tokens that may still be drawn, as flags. `ask` is top-k, top-p and min-p."""
    ranking = reference.Ranking.of(np.asarray(x, np.float64), temperature)
    flags = np.zeros(len(x), bool)
    flags[ranking.token[reference.kept(ranking, *ask)]] = True
    return flags


def penalised(x, history, strengths: tuple[float, float, float]) -> np.ndarray:
    """Return a row's logits after repetition, frequency and presence penalties of these strengths."""
    repetition, frequency, presence = strengths
    row = Requests.of(
        1, len(x), outputs=[history], repetition=repetition, frequency=frequency, presence=presence
    )
    return reference.processed(x, row, 0)


def filters(inputs: dict, i: int) -> tuple[int, float, float]:
    """Return top-k, top-p and min-p of row i. A question may ask for the first alone."""
    if "top_p" not in inputs:
        return int(inputs["top_k"][i]), 1.0, 0.0
    return int(inputs["top_k"][i]), float(inputs["top_p"][i]), float(inputs["min_p"][i])


def row_scores(inputs: dict, i: int) -> np.ndarray:
    """Return the scores that row i maximises, with -inf for tokens that may not be drawn."""
    x, t = final_logits(inputs, i), float(inputs["temperature"][i])
    if t == 0:
        return x
    s = np.where(x > -np.inf, x / t + noise(int(inputs["seed"][i]), x.size), -np.inf)
    return np.where(survivors(x, t, filters(inputs, i)), s, -np.inf) if "top_k" in inputs else s


def best(scores: np.ndarray) -> int:
    """Return the best token, the lowest id among equals, or -1 if none is left."""
    return -1 if scores.max() == -np.inf else int(np.argmax(scores))


def tokens_wanted(inputs: dict, case: Case) -> dict:
    rows = [best(row_scores(inputs, i)) for i in range(case.sizes["B"])]
    return {"token": np.array(rows, np.float64)}


def exact(inputs: dict, case: Case, want: dict) -> dict:
    return {"token": 0.5}


def agree(inputs: dict, case: Case, got: dict, want: dict) -> str:
    """Return an empty text if every row drew its token, or one with an equal score in fp32, else describe the first
    row that did not."""
    pairs = zip(got["token"].astype(np.int64), want["token"].astype(np.int64), strict=True)
    for i, (mine, wanted) in enumerate(pairs):
        if mine == wanted:
            continue
        kind = f"token[{i}] is {mine}, wanted {wanted}"
        if float(inputs["temperature"][i]) == 0 and not 0 <= mine < case.sizes["V"] and wanted >= 0:
            return f"{kind}: this row is greedy, and a logit over its temperature of 0 is no score"
        if case.sizes["V"] <= mine < 2**31 - 1:
            last = f"{kind}: the last token is {case.sizes['V'] - 1}"
            return f"{last}, so do lanes past the row's end take part, with a score other than -inf?"
        if not 0 <= mine < case.sizes["V"] or wanted < 0:
            return kind + filters_in_words(inputs, i)
        s = row_scores(inputs, i)
        if s[mine] == s[wanted]:
            return f"{kind}: both score {s[wanted]:.4g}, and of equals the lowest id is drawn"
        near = rounding(inputs, i, s, mine, wanted)
        if s[mine] < s[wanted] - near and not at_the_border(inputs, i, near, mine, wanted):
            return f"{kind}: its score is {s[mine]:.4g} and the best is {s[wanted]:.4g}{filters_in_words(inputs, i, s[mine])}"
    return ""


def filters_in_words(inputs: dict, i: int, score: float = 0.0) -> str:
    """Say which filters this row has, and whether they rule out the token of this score."""
    if "top_p" not in inputs or float(inputs["temperature"][i]) == 0:
        return ""
    k, p, m = filters(inputs, i)
    said = f"top_k = {k}, top_p = {p:.6g} and min_p = {m:.6g}"
    if k == 0 and p >= 1 and m == 0:
        return f"; {said} turn all three filters off in this row, so that every token stays"
    return f"; {said} rule it out" if score == -np.inf else f"; the filters of this row are {said}"


def at_the_border(inputs: dict, i: int, near: float, mine: int, wanted: int) -> bool:
    """Return whether rounding alone decides if one of the two tokens survives the filter."""
    if "top_p" not in inputs or float(inputs["temperature"][i]) == 0:
        return False
    x, t = final_logits(inputs, i), float(inputs["temperature"][i])
    k, p, m = filters(inputs, i)
    if whole(x, t, k):
        return False
    least = least_border(x, t)
    wide = survivors(x, t, (k, min(1.0, p + BORDER), m * (1 - least)))
    narrow = survivors(
        x, t, (k, p - BORDER if p < 1 else p, m * (1 + least))
    )  # a top-p that is off has no edge
    s = np.where(wide, x / t + noise(int(inputs["seed"][i]), x.size), -np.inf)
    loose = wide & ~narrow
    sure = np.where(narrow, s, -np.inf).max()  # the best token that no rounding cuts
    return bool((loose[mine] or loose[wanted]) and wide[mine] and s[mine] >= min(s[wanted], sure) - near)


def least_border(x: np.ndarray, temperature: float) -> float:
    """Return how far fp32 may take a weight from min-p, relative to min-p. It grows with the logits."""
    largest = np.abs(x[np.isfinite(x)]).max(initial=0.0)
    return float(min(BORDER, FP32 * (4 + largest / temperature)))


def whole(x: np.ndarray, temperature: float, k: int) -> bool:
    """Return whether top-p's masses are exact in any order: 2, 4, 8 ... equal tokens, each of weight 1."""
    weight = reference.Ranking.of(x, temperature).weight[: k or None]
    return bool((weight == 1).all()) and weight.size & (weight.size - 1) == 0


def rounding(inputs: dict, i: int, s: np.ndarray, *tokens: int) -> float:
    """Return how far fp32 may move the scores of these tokens apart, most if the uniform number is close to 1."""
    if float(inputs["temperature"][i]) == 0 and "allowed" not in inputs:
        return 0.0  # logits as they came
    finite = np.where(np.isfinite(s), np.abs(s), 0.0)
    computed = FP32 * (10 + max(finite[t] for t in tokens))
    if float(inputs["temperature"][i]) == 0:
        return float(computed)
    with np.errstate(divide="ignore"):
        small = -np.log(uniform(int(inputs["seed"][i]), np.array(tokens)))
    return float((UNIFORM / np.maximum(small, UNIFORM)).sum() + computed)
