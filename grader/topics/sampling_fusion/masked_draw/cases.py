"""Draw the inputs of *masked draw*, and set its budgets."""

from dataclasses import replace

import numpy as np

from grader.questions import Budget, Case
from grader.questions.draws import between, odd, spread
from grader.questions.work import work
from grader.topics.sampling_fusion.shared import SECTOR, row_by_row, size
from grader.topics.sampling_fusion.shared_logits import BANNED, GREEDY_ZEROS, STRADDLED
from grader.topics.sampling_fusion.shared_rows import (
    AGAIN,
    CLOSE_CALLS,
    COLD_LIFTED,
    JUST,
    OUTNUMBERED,
    STRONG,
    factors,
    in_turn,
    noise,
    parted,
    plain_inputs,
    rising,
    sometimes,
)
from kernels.sampling_fusion import cost
from kernels.sampling_fusion.requests import pack_bits

LOOKED_FOR = (
    1 << 22
)  # tokens and logits of a case with a long axis that meet, since each row looks for each of its tokens


COMPARED = 1 << 20  # most tokens of a row times entries of its history, where both are long


def sized(**sizes: int) -> Case:
    """Return a case with these sizes, and a history that a row's tokens can be compared with in a second."""
    b, v, n = (sizes[name] for name in "BVL")
    return Case(size(b, v, min(n, max(2, COMPARED // v))), "fp32")


def crossed(c: Case) -> Case:
    """Cut off what would be too much: a history where V is long, and a vocabulary where L is."""
    b, v, n = c.sizes["B"], c.sizes["V"], c.sizes["L"]
    most = max(64, LOOKED_FOR // (b * max(v, n)))
    return replace(c, sizes=c.sizes | ({"L": min(n, most)} if v > n else {"V": min(v, most)}))


NONE_LEFT = "rows of which every other one bans everything"


def hidden_masked(rng: np.random.Generator) -> list[Case]:
    strided = ("logits", "allowed", "history")
    return [
        Case(size(3, odd(rng, 201, 1201), 9), "fp32", kind="an odd vocabulary"),
        Case(size(4, between(rng, 280, 330), 40), "bf16", kind="bf16 logits"),
        Case(size(3, 128, 5), "fp32", values="all banned", kind="a row that bans everything"),
        Case(size(8, between(rng, 8000, 9000), 3), "fp32", values=NONE_LEFT, kind=NONE_LEFT),
        Case(size(16, between(rng, 30, 90), 3), "fp32", values=GREEDY_ZEROS, kind=GREEDY_ZEROS),
        Case(size(2, 33, 3), "fp32", kind="a mask that ends within a word"),
        Case(
            size(4, 500, 16),
            "fp32",
            layout={"logits": "padded", "allowed": "transposed"},
            kind="strided rows",
        ),
        Case(size(48, 12, 32), "fp32", values="close calls", kind="scores that lie close together"),
        Case(
            size(48, between(rng, 20, 40), between(rng, 60, 90)),
            "fp32",
            values="close calls",
            kind="a long history",
        ),
        Case(
            size(32, between(rng, 10, 20), between(rng, 4080, 4096)),
            "fp32",
            values=AGAIN,
            kind="a token that came thousands of times",
        ),
        Case(size(48, between(rng, 12, 40), 24), "fp32", values=STRONG, kind="penalties from weak to strong"),
        Case(size(128, 12, 32), "bf16", values="one value", kind="penalties between bf16 numbers"),
        Case(
            size(24, 70, 24),
            "fp32",
            values="close calls",
            layout=spread(rng, *strided),
            kind="no stride of 1",
        ),
        Case(size(24, 200, 3), "fp32", values="fine", kind="logits that fp16 cannot tell apart"),
        Case(size(6, 4200, 3), "fp32", values="equal", kind="equal logits"),
        Case(size(8, between(rng, 70, 200), 3), "fp32", values="last bits", kind="the last bit of a word"),
        Case(size(6, between(rng, 60, 90), 3), "fp32", values="far below zero", kind="logits far below zero"),
        Case(size(2, between(rng, 8300, 9500), 4), "fp32", kind="a large vocabulary"),
        rising(size(1, between(rng, 12_000, 16_000), 4), rng),
        Case(size(2, between(rng, 8300, 9500), 2), "fp32", values=OUTNUMBERED, kind=OUTNUMBERED),
        Case(size(8, between(rng, 2000, 3000), between(rng, 60, 90)), "fp32", values=LIFTED, kind=LIFTED),
        Case(size(8, between(rng, 60, 200), 9), "fp32", values="a row banned", kind="logits of -inf"),
        Case(
            size(3, between(rng, 66_000, 90_000), 4),
            "fp32",
            values=LIFTED,
            kind="tokens beyond 16 bits, lifted",
        ),
        Case(
            size(24, between(rng, 2100, 2500), between(rng, 3, 9)),
            "fp32",
            values=COLD_LIFTED,
            kind=COLD_LIFTED,
        ),
        Case(size(10, between(rng, 34_000, 50_000), 2), "fp32", values=STRADDLED, kind=STRADDLED),
        Case(size(64, between(rng, 8, 20), between(rng, 9, 30)), "fp32", values=CANCELLED, kind=CANCELLED),
    ]


def metered_masked(rng: np.random.Generator) -> Case:
    return Case(
        size(4, SECTOR * between(rng, 516, 560), between(rng, 7, 10)), "fp32", kind="the metered size"
    )


ALL_WORK = 260  # of every kind, a logit: its noise, its bit of the mask and its place in the history
LEAST_ALLOWED = 0.5  # of the logits in a metered case: a kernel may leave out those that the mask forbids
A_PLACE = 4  # of these for each place of a history: the token there, compared and counted


def one_read_masked(case: Case) -> list[Budget]:
    b, v, n = (case.sizes[x] for x in "BVL")
    blocks = -(-v // cost.GROUP)
    look = "how often a block of logits asks for its words of the mask, and for the history"
    reads, *others = row_by_row(case)
    return [
        replace(reads, least=LEAST_ALLOWED * reads.least),
        *others,
        Budget(
            what="read of the mask",
            tensor="allowed",
            most=cost.INT32 * b * 32 * -(-v // 32),
            least=cost.INT32 * b * -(-v // 32),
            look=look,
            model=f"at most a word of 4 bytes for each of {b} x {v} logits",
        ),
        Budget(
            what="read of the history",
            tensor="history",
            most=cost.INT32 * b * n * blocks,
            least=cost.INT32 * b * n,
            look=look,
            model=f"{b} rows of {n} places of 4 bytes, for every {cost.GROUP} logits",
        ),
        work(ALL_WORK + A_PLACE * n, b * v, f"{b} x {v} logits"),
    ]


HISTORY_GAPS = 0.3
LIFTED = "a late token that its own history lifts"
LIFTING = LIFTED, COLD_LIFTED
CANCELLED = "penalties that cancel for tokens of one count"
STRENGTHS = ("repetition", "frequency", "presence")
RAISED = ((0.3, 0.7), (-2.0, -1.0), (-2.0, -1.0))  # the strengths that lift it
BY = ("frequency", "presence", "repetition above 0", "repetition below 0")
FAR_FROM_0 = (20.0, 60.0)  # of a logit that a repetition lifts
LOW = 100.0  # of logits beside it, below the others


def gaps(rng: np.random.Generator, b: int, n: int) -> np.ndarray:
    """Return neighbouring places of every other row, of any number and anywhere, as flags."""
    most = factors(rng, 1, n, b).astype(int)
    first, place = rng.integers(0, n - most + 1), np.arange(n)
    inside = (first[:, None] <= place) & (place < (first + most)[:, None])
    return inside & (in_turn(rng, (0, 1), b) == 1)[:, None]


def masked_inputs(case: Case, rng: np.random.Generator) -> dict:
    b, v, n = (case.sizes[s] for s in "BVL")
    allowed = rng.random((b, v)) >= BANNED
    allowed[:, 0] = True
    late = rng.integers(3 * v // 4, v, b)
    if case.values == OUTNUMBERED:
        allowed[:] = True
    if case.values in LIFTING:
        allowed[np.arange(b), late] = True
    if case.values == "all banned":
        allowed[0] = False
    if case.values == NONE_LEFT:
        allowed[::2] = False
    history = rng.integers(0, v, (b, n))
    hole = gaps(rng, b, n)
    history[(rng.random((b, n)) < HISTORY_GAPS) | hole] = -1
    if case.values in ("equal", "far below zero", OUTNUMBERED):
        history[:] = -1
    if case.values == AGAIN:  # more often than eight bits can count, or fp16, in some rows each time
        again = rng.random((b, n)) < in_turn(rng, (1.0, rng.uniform(0.5, 1)), b)[:, None]
        history = np.where(again & ~hole, rng.integers(0, v, (b, 1)), history)
    strong = case.values == STRONG
    low, high = (0.1, 10.0) if strong else (0.6, 2.2)
    adds, once = ((-2.0, 2.0), (-2.0, 2.0)) if strong else ((-0.5, 0.6), (-0.5, 0.9))
    inputs = plain_inputs(case, rng) | {
        "allowed": pack_bits(allowed),
        "history": history.astype(np.int32),
        "repetition": sometimes(rng, factors(rng, low, high, b), 1.0, 4).astype(np.float32),
        "frequency": sometimes(rng, rng.uniform(*adds, b), 0.0).astype(np.float32),
        "presence": sometimes(rng, rng.uniform(*once, b), 0.0).astype(np.float32),
    }
    if case.values in LIFTING:
        return lifted(inputs, allowed, late, rng)
    if case.values == CANCELLED:
        return cancelled(inputs, rng)
    return before_penalties(inputs) if case.values in CLOSE_CALLS else inputs


def lifted(inputs: dict, allowed: np.ndarray, late: np.ndarray, rng: np.random.Generator) -> dict:
    """Let a late token of each row just win, by one penalty alone: a frequency or a presence below 0, or a repetition
    below 1, which raises a logit of either sign."""
    x, (b, n) = inputs["logits"].astype(np.float64), inputs["history"].shape
    x[:, x.shape[1] // 2 :] -= LOW
    way, found = in_turn(rng, BY, b), {}
    for name, (low, high), none in zip(STRENGTHS, RAISED, (1.0, 0.0, 0.0), strict=True):
        found[name] = np.where([name in one for one in way], rng.uniform(low, high, b), none).astype(
            np.float32
        )
    for i, token in enumerate(late):
        t = float(inputs["temperature"][i])
        scores = x[i] if t == 0 else x[i] / t + noise(int(inputs["seed"][i]), x.shape[1])
        own, others = parted(np.where(allowed[i], scores, -np.inf), token)
        wanted = x[i, token] + (t or 1.0) * (others - own + JUST)
        if "repetition" in way[i]:  # a shift changes no draw
            x[i] += rng.uniform(*FAR_FROM_0) * (-1 if way[i] == BY[-1] else 1) - wanted
            wanted = x[i, token] + (t or 1.0) * (others - own + JUST)
        wanted += n * float(found["frequency"][i]) + float(found["presence"][i])
        x[i, token] = wanted * float(found["repetition"][i]) ** np.sign(wanted)
    logits = x.astype(np.float32).astype(inputs["logits"].dtype)
    return inputs | found | {"logits": logits, "history": np.repeat(late[:, None], n, 1).astype(np.int32)}


def cancelled(inputs: dict, rng: np.random.Generator) -> dict:
    """Let frequency and presence cancel for tokens that came once, or twice, and matter for all others."""
    b = len(inputs["seed"])
    frequency = (rng.uniform(0.5, 2, b) * in_turn(rng, (-1, 1), b)).astype(np.float32)
    return inputs | {
        "logits": (inputs["logits"] / 8).astype(inputs["logits"].dtype),
        "repetition": np.ones(b, np.float32),
        "frequency": frequency,
        "presence": -frequency * in_turn(rng, np.array([1, 1, 2], np.float32), b),
    }


def before_penalties(inputs: dict) -> dict:
    """Return the logits that the penalties turn into these, so that close calls are among the logits drawn from."""
    x = inputs["logits"].astype(np.float64)
    r, f, p = (inputs[n].astype(np.float64)[:, None] for n in ("repetition", "frequency", "presence"))
    count = np.array([np.bincount(row[row >= 0], minlength=x.shape[1]) for row in inputs["history"]])
    y = x + f * count + p
    y = np.where(count > 0, np.where(y > 0, y * r, y / r), x)
    return inputs | {"logits": y.astype(np.float32).astype(inputs["logits"].dtype)}
