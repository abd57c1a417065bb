"""From logits to a token: the rules in numpy with their edges, then one kernel that does them all in one read."""

import math

import numpy as np

from grader.jail.frames import DTYPES
from grader.questions import Budget, Call, Case, KernelQuestion, Mistake, NumpyQuestion, Part, Tensor
from kernels.sampling_fusion import philox, reference
from kernels.sampling_fusion.requests import Requests, pack_bits

LESSON = "course/06_sampling_fusion.ipynb"
FP32 = 2.0**-20  # of a score: a few roundings to fp32
UNIFORM = 2.0**-22  # of a uniform number near 1, where its logarithm is small and its rounding is not
BORDER = 1e-4  # of the kept mass: a token this close to top-p's edge may be in or out
WRONG_ONCE_IN = 1e6  # the chi-square test fails a right kernel no more often than this


# Rules, one row at a time, as the topic's reference has them.


def penalize(logits, output, repetition, frequency, presence):
    row = Requests.of(
        1, len(logits), outputs=[output], repetition=repetition, frequency=frequency, presence=presence
    )
    return reference.processed(logits, row, 0)


def survivors(logits, temperature, top_k, top_p, min_p):
    ranking = reference.Ranking.of(np.asarray(logits, np.float64), temperature)
    keep = reference.kept(ranking, top_k, top_p, min_p)
    flags = np.zeros(len(logits), bool)
    flags[ranking.token[keep]] = True
    return flags


def gumbel_pick(logits, temperature, u):
    scaled = np.asarray(logits, np.float64) / temperature
    return int(np.argmax(scaled - np.log(-np.log(u))))


def inverse_pick(weights, u):
    before = np.cumsum(weights) - weights
    return int(np.flatnonzero((weights > 0) & (before <= u * np.sum(weights)))[-1])


def _row(rng, n, spread=2.0):
    return (spread * rng.standard_normal(n)).round(3)


def _history(rng, vocabulary, length):
    return [int(t) for t in rng.integers(0, vocabulary, length)]


PENALIZE = NumpyQuestion(
    id="sampling_fusion.penalize",
    notebook="concepts",
    asks="penalize(logits, output, repetition, frequency, presence): the logits after the three penalties on the tokens of `output`",
    entry="penalize",
    parts=(Part("values", 3, "calls"),),
    reference=penalize,
    rtol=1e-6,
    atol=1e-6,
    public=(
        Call((np.array([2.0, -1.0, 0.5, 3.0]), [0, 1, 1], 2.0, 0.5, 0.25)),
        Call((np.array([1.0, 1.0, 1.0]), [], 1.5, 1.0, 1.0), "an empty history"),
    ),
    hidden=lambda rng: [Call((_row(rng, 12), _history(rng, 12, int(rng.integers(1, 20))), float(rng.choice([0.5, 1.0, 1.3, 2.0])), float(rng.choice([0.0, 0.25, -0.5])), float(rng.choice([0.0, 0.75])))) for _ in range(6)]
    + [Call((np.array([-3.0, -2.0, 0.0]), [0, 0, 2], 1.25, 0.0, 0.0), "negative logits")],
    where=f'{LESSON}, "The rules, in order"',
    hints=(
        "Which tokens were there at all, and how often each? np.bincount answers both.",
        "Repetition first: a positive logit is divided by it, a negative one multiplied, so that both go down.",
        "x = np.where(seen, np.where(x > 0, x / repetition, x * repetition), x) - frequency * counts - presence * seen",
    ),
    mistakes=(
        Mistake("always divides", "a negative logit divided by the penalty goes up: multiply it instead", wrong=lambda x, o, r, f, p: np.where(np.bincount(o, minlength=len(x)) > 0, x / r, x) - f * np.bincount(o, minlength=len(x)) - p * (np.bincount(o, minlength=len(x)) > 0)),
        Mistake("presence by count", "presence is taken off once, frequency once for each time", wrong=lambda x, o, r, f, p: penalize(x, o, r, f + p, 0.0)),
        Mistake("subtracted first", "the repetition penalty comes before the other two", wrong=lambda x, o, r, f, p: penalize(penalize(x, o, 1.0, f, p), o, r, 0.0, 0.0)),
    ),
)  # fmt: skip

SURVIVORS = NumpyQuestion(
    id="sampling_fusion.survivors",
    notebook="concepts",
    asks="survivors(logits, temperature, top_k, top_p, min_p): which tokens may still be drawn (True), after top-k, top-p and min-p",
    entry="survivors",
    parts=(Part("values", 4, "calls"),),
    reference=survivors,
    public=(
        Call((np.array([3.0, 2.0, 1.0, 0.0]), 1.0, 2, 1.0, 0.0), "top-k alone"),
        Call((np.array([3.0, 2.0, 1.0, 0.0]), 1.0, 0, 0.9, 0.0), "top-p alone; 0 turns top-k off"),
        Call((np.array([0.0, 1.0, 2.0, 2.0]), 0.5, 3, 0.8, 0.1), "all three"),
    ),
    hidden=lambda rng: [Call((_row(rng, int(rng.integers(3, 30))), float(rng.choice([0.5, 1.0, 1.5])), int(rng.integers(0, 8)), float(rng.choice([0.3, 0.7, 0.9, 1.0])), float(rng.choice([0.0, 0.05, 0.3])))) for _ in range(8)]
    + [
        Call((np.array([1.0, 1.0, 1.0, 1.0]), 1.0, 2, 1.0, 0.0), "ties at the border of top-k"),
        Call((np.array([1.0, 2.0, -np.inf, 0.5]), 1.0, 0, 0.95, 0.0), "a token that was banned"),
        Call((np.array([9.0, 0.0, 0.0]), 1.0, 0, 0.01, 0.0), "one token always stays"),
        Call((np.array([5.0, 1.0, 0.0]), 1.0, 99, 1.0, 0.0), "more asked for than there are"),
    ],
    where=f'{LESSON}, "Who may still be drawn"',
    hints=(
        "Rank the tokens first: by logit, of equals the lower id; -inf takes no part.",
        "Weights are exp((x - best) / T). Top-p looks at the mass ranked before a token, within what top-k kept: it stays while that is below p.",
        "keep = rank < k; keep &= before < top_p * weight[keep].sum(); keep &= weight >= min_p  (the best has weight 1)",
    ),
    mistakes=(
        Mistake("crossing token dropped", "the token that crosses p stays: compare the mass before it, not with it", wrong=lambda x, t, k, p, m: _crossing(x, t, k, p, m)),
        Mistake("no temperature", "the weights are taken without the temperature", wrong=lambda x, t, k, p, m: survivors(x, 1.0, k, p, m)),
        Mistake("top-p of everything", "top-p's mass is that of what top-k kept, not of the whole row", wrong=lambda x, t, k, p, m: survivors(x, t, k, 1.0, m) & survivors(x, t, 0, p, m)),
    ),
)  # fmt: skip


def _crossing(x, t, k, p, m):
    ranking = reference.Ranking.of(np.asarray(x, np.float64), t)
    keep = reference.kept(ranking, k, 1.0, m)
    with_it = ranking.before + ranking.weight
    keep &= (with_it <= p * ranking.weight[: k or None].sum()) | (np.arange(keep.size) == 0)
    flags = np.zeros(len(x), bool)
    flags[ranking.token[keep]] = True
    return flags


DRAWS = NumpyQuestion(
    id="sampling_fusion.gumbel_pick",
    notebook="concepts",
    asks="gumbel_pick(logits, temperature, u): the token with the largest logit / T + Gumbel noise, made of the uniform numbers u",
    entry="gumbel_pick",
    parts=(Part("values", 2, "calls"),),
    reference=gumbel_pick,
    public=(Call((np.array([1.0, 2.0, 3.0]), 1.0, np.array([0.9, 0.5, 0.1]))), Call((np.array([0.0, 0.0]), 0.7, np.array([0.2, 0.8])))),
    hidden=lambda rng: [Call((_row(rng, n), float(rng.choice([0.3, 1.0, 2.0])), rng.uniform(1e-3, 1 - 1e-3, n))) for n in rng.integers(2, 40, 10)],
    where=f'{LESSON}, "Two ways to draw"',
    hints=(
        "Gumbel noise is -log(-log(u)); where is it large?",
        "Add one noise number to each scaled logit and take the place of the largest sum.",
        "int(np.argmax(logits / temperature - np.log(-np.log(u))))",
    ),
    mistakes=(
        Mistake("noise scaled", "the temperature divides the logits alone, not the noise", wrong=lambda x, t, u: int(np.argmax((x - np.log(-np.log(u))) / t))),
        Mistake("sign", "the sign of the noise is turned round", wrong=lambda x, t, u: int(np.argmax(x / t + np.log(-np.log(u))))),
    ),
)  # fmt: skip

INVERSE = NumpyQuestion(
    id="sampling_fusion.inverse_pick",
    notebook="concepts",
    asks="inverse_pick(weights, u): the last token whose predecessors hold at most u of the whole weight; weight 0 is never drawn",
    entry="inverse_pick",
    parts=(Part("values", 2, "calls"),),
    reference=inverse_pick,
    public=(Call((np.array([1.0, 2.0, 1.0]), 0.5)), Call((np.array([0.0, 3.0, 0.0, 1.0]), 0.8), "zeros between")),
    hidden=lambda rng: [Call((rng.random(int(rng.integers(1, 30))), float(rng.random()))) for _ in range(8)]
    + [Call((np.array([2.0, 1.0, 0.0]), 0.999999), "u near 1"), Call((np.array([0.0, 1.0]), 0.0), "u of 0")],
    where=f'{LESSON}, "Two ways to draw"',
    hints=(
        "Lay the weights end to end; u says how far along to look.",
        "before = cumulative sum without the token itself; a token of weight 0 has no length to be hit.",
        "np.flatnonzero((weights > 0) & (before <= u * weights.sum()))[-1]",
    ),
)  # fmt: skip

CHAIN = NumpyQuestion(
    id="sampling_fusion.kept_share",
    notebook="concepts",
    asks="kept_share(logits, temperature, top_k, top_p, min_p): the probability mass that the survivors held before the filter",
    entry="kept_share",
    parts=(Part("values", 1, "calls"),),
    reference=lambda x, t, k, p, m: float(np.exp(reference.log_softmax(np.asarray(x, float), t))[survivors(x, t, k, p, m)].sum()),
    public=(Call((np.array([3.0, 2.0, 1.0, 0.0]), 1.0, 2, 1.0, 0.0)),),
    hidden=lambda rng: [Call((_row(rng, 20), float(rng.choice([0.5, 1.0])), int(rng.integers(1, 8)), float(rng.choice([0.5, 0.9])), 0.02)) for _ in range(5)],
    where=f'{LESSON}, "Who may still be drawn"',
    hints=("It is the softmax at temperature T, summed over the survivors.",),
)  # fmt: skip


# The kernels. Noise is Triton's own tl.rand(seed, token id), so a draw is determined and can be judged.


def uniform(seed: int, tokens: np.ndarray) -> np.ndarray:
    """tl.rand in numpy: the first Philox word as a signed number, folded to [0, 1)."""
    word = philox.philox(int(seed) & 0xFFFFFFFFFFFFFFFF, tokens, 0, 0)[0].view(np.int32).astype(np.int64)
    return np.where(word < 0, -word - 1, word) * 4.6566127342e-10


def noise(seed: int, vocabulary: int) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return -np.log(-np.log(uniform(seed, np.arange(vocabulary))))


def logits_for(case: Case, rng: np.random.Generator) -> np.ndarray:
    b, v = case.sizes["B"], case.sizes["V"]
    x = 3 * rng.standard_normal((b, v))
    if case.values == "one row":
        x = np.broadcast_to(rng.standard_normal(v), (b, v))
    if case.values == "large":
        x = x * 50 + 200
    if case.values == "close calls":  # what wins changes with every rule, and often all logits are negative
        x = x / 3 - 3 * rng.integers(0, 2, (b, 1))
    if case.values == "fine":
        x = x / 3 + 300
    if case.values == "ties":
        x = np.round(x / 4) + 0.0  # no -0.0
    return x.astype(np.float32).astype(DTYPES[case.dtype])


def plain_inputs(case: Case, rng: np.random.Generator) -> dict:
    b = case.sizes["B"]
    temperature = rng.choice([0.0, 0.5, 1.0, 1.7], b) if case.values != "one row" else np.ones(b)
    return {
        "logits": logits_for(case, rng),
        "temperature": temperature.astype(np.float32),
        "seed": rng.integers(0, 2**31, b).astype(np.int32),
    }


def masked_inputs(case: Case, rng: np.random.Generator) -> dict:
    b, v, n = (case.sizes[s] for s in "BVL")
    allowed = rng.random((b, v)) < 0.7
    allowed[:, 0] = True
    if case.values == "all banned":
        allowed[0] = False
    history = rng.integers(0, v, (b, n))
    history[rng.random((b, n)) < 0.3] = -1
    return plain_inputs(case, rng) | {
        "allowed": pack_bits(allowed),
        "history": history.astype(np.int32),
        "repetition": rng.choice([0.7, 1.0, 1.2, 2.0], b).astype(np.float32),
        "frequency": rng.choice([0.0, 0.3, -0.4], b).astype(np.float32),
        "presence": rng.choice([0.0, 0.5], b).astype(np.float32),
    }


def filtered_inputs(case: Case, rng: np.random.Generator) -> dict:
    b = case.sizes["B"]
    return plain_inputs(case, rng) | {
        "top_k": rng.choice([0, 1, 2, 5, 50], b).astype(np.int32),
        "top_p": rng.choice([1.0, 0.9, 0.5], b).astype(np.float32),
        "min_p": rng.choice([0.0, 0.05, 0.4], b).astype(np.float32),
    }


def final_logits(inputs: dict, i: int) -> np.ndarray:
    """Row i after mask and penalties, where the question has them."""
    x = inputs["logits"][i].astype(np.float64)
    if "allowed" not in inputs:
        return x
    output = inputs["history"][i]
    row = Requests.of(
        1, x.size, allowed=inputs["allowed"][i : i + 1], outputs=[output[output >= 0]],
        **{n: float(inputs[n][i]) for n in ("repetition", "frequency", "presence")},
    )  # fmt: skip
    return reference.processed(x, row, 0)


def row_scores(inputs: dict, i: int) -> np.ndarray:
    """What is maximised in row i; -inf for tokens that may not be drawn."""
    x, t = final_logits(inputs, i), float(inputs["temperature"][i])
    if t == 0:
        return x
    s = np.where(x > -np.inf, x / t + noise(int(inputs["seed"][i]), x.size), -np.inf)
    if "top_k" in inputs:
        s = np.where(
            survivors(x, t, int(inputs["top_k"][i]), float(inputs["top_p"][i]), float(inputs["min_p"][i])),
            s,
            -np.inf,
        )
    return s


def tokens_wanted(inputs: dict, case: Case) -> dict:
    rows = [row_scores(inputs, i) for i in range(case.sizes["B"])]
    return {"token": np.array([-1 if s.max() == -np.inf else int(np.argmax(s)) for s in rows], np.float64)}


def exact(inputs: dict, case: Case, want: dict) -> dict:
    return {"token": 0.5}


def agree(inputs: dict, case: Case, got: dict, want: dict) -> str:
    """Empty where every row drew its token, or one whose score is as good to fp32; else the first row that did not."""
    for i, (mine, wanted) in enumerate(
        zip(got["token"].astype(np.int64), want["token"].astype(np.int64), strict=True)
    ):
        if mine == wanted:
            continue
        kind = f"token[{i}] is {mine}, wanted {wanted}"
        if not 0 <= mine < case.sizes["V"] or wanted < 0:
            return kind
        s = row_scores(inputs, i)
        if not s[mine] >= s[wanted] - _rounding(inputs, i, s, mine, wanted) and not _at_the_border(
            inputs, i, mine, wanted
        ):
            return f"{kind}: its score is {s[mine]:.4g} and the best is {s[wanted]:.4g}"
    return _distribution(inputs, case, got) if case.values == "one row" else ""


def _at_the_border(inputs: dict, i: int, mine: int, wanted: int) -> bool:
    """Whether rounding alone decides if one of the two tokens survives the filter."""
    if "top_k" not in inputs or float(inputs["temperature"][i]) == 0:
        return False
    x, t = final_logits(inputs, i), float(inputs["temperature"][i])
    k, p, m = int(inputs["top_k"][i]), float(inputs["top_p"][i]), float(inputs["min_p"][i])
    wide, narrow = (
        survivors(x, t, k, min(1.0, p + BORDER), m * (1 - BORDER)),
        survivors(x, t, k, p - BORDER, m * (1 + BORDER)),
    )
    s = np.where(wide, x / t + noise(int(inputs["seed"][i]), x.size), -np.inf)
    loose = wide & ~narrow
    near = _rounding(inputs, i, s, mine, wanted)
    return bool((loose[mine] or loose[wanted]) and s[mine] >= s[wanted] - near)


def _rounding(inputs: dict, i: int, s: np.ndarray, *tokens: int) -> float:
    """How far fp32 may take the scores of these tokens apart: most where the uniform number lies close to 1."""
    finite = np.where(np.isfinite(s), np.abs(s), 0.0)
    if float(inputs["temperature"][i]) == 0:
        return FP32 * max(finite[t] for t in tokens)
    with np.errstate(divide="ignore"):
        small = -np.log(uniform(int(inputs["seed"][i]), np.array(tokens)))
    return float((UNIFORM / np.maximum(small, UNIFORM)).sum() + FP32 * (10 + max(finite[t] for t in tokens)))


def chi_square(counts: np.ndarray, chances: np.ndarray) -> float:
    expected = counts.sum() * chances
    return float(((counts - expected) ** 2 / expected).sum())


def chi_square_limit(freedom: int, once_in: float) -> float:
    """Wilson and Hilferty: the value that a right sampler passes but once in so many runs."""
    z = math.sqrt(2 * math.log(once_in)) - 0.5  # a little above the normal quantile
    return freedom * (1 - 2 / (9 * freedom) + z * math.sqrt(2 / (9 * freedom))) ** 3


def _distribution(inputs: dict, case: Case, got: dict) -> str:
    """Many rows of the same logits with other seeds: the tokens must come as the softmax says."""
    chances = np.exp(reference.log_softmax(inputs["logits"][0].astype(np.float64), 1.0))
    counts = np.bincount(got["token"].astype(np.int64), minlength=chances.size)
    value, limit = chi_square(counts, chances), chi_square_limit(chances.size - 1, WRONG_ONCE_IN)
    return (
        ""
        if value <= limit
        else f"{len(got['token'])} draws do not follow the softmax: chi-square {value:.0f}, at most {limit:.0f}"
    )


def size(b, v, n=None) -> dict:
    return {"B": int(b), "V": int(v)} | ({"L": int(n)} if n else {})


COLUMN = {
    "temperature": "fp32",
    "seed": "i32",
    "repetition": "fp32",
    "frequency": "fp32",
    "presence": "fp32",
    "top_k": "i32",
    "top_p": "fp32",
    "min_p": "fp32",
}


def columns(*names: str) -> tuple[Tensor, ...]:
    return tuple(Tensor(name, "b", ("B",), COLUMN[name]) for name in names)


LOGITS = Tensor("logits", "bv", ("B", "V"))
TOKEN = Tensor("token", "b", ("B",), "i32", role="out")


def hidden_plain(rng: np.random.Generator) -> list[Case]:
    v = int(rng.integers(500, 3000)) * 2 + 1
    return [
        Case(size(3, v), "fp32", kind="an odd vocabulary"),
        Case(size(5, 300), "bf16", kind="bf16 logits"),
        Case(size(2, 1), "fp32", kind="a vocabulary of one"),
        Case(size(4, 1000), "fp32", values="large", kind="large logits"),
        Case(size(4, 257), "fp32", values="ties", kind="equal logits"),
        Case(size(6, 700), "fp32", layout={"logits": "padded"}, kind="strided rows"),
        Case(size(24, 200), "fp32", values="fine", kind="logits that fp16 cannot tell apart"),
        Case(size(30, 90), "fp32", layout={"logits": "transposed"}, kind="transposed logits"),
        Case(size(300, 8), "fp32", values="one row", kind="the distribution over many seeds"),
    ]


def one_read(case: Case, plan: dict) -> list[Budget]:
    s, elem = case.sizes, DTYPES[case.dtype].itemsize
    look = "how often the logits come from memory: scale, add noise and keep the best as they pass"
    return [
        Budget(
            "read of the logits",
            "logits",
            "load",
            "requested",
            s["B"] * s["V"] * elem,
            s["B"] * s["V"] * elem,
            look,
        )
    ]


def _would(change):
    def wrong(inputs: dict, case: Case) -> dict:
        picked = []
        for i in range(case.sizes["B"]):
            x, t = final_logits(inputs, i), float(inputs["temperature"][i])
            picked.append(float(np.argmax(change(inputs, i, x, t))))
        return {"token": np.array(picked)}

    return wrong


DRAW_MISTAKES = (
    Mistake("always greedy", "every row took its largest logit: the noise is missing where the temperature is not 0", wrong=_would(lambda inputs, i, x, t: x)),
    Mistake("never greedy", "a temperature of 0 means the largest logit, without noise", wrong=_would(lambda inputs, i, x, t: x / max(t, 1e-6) + noise(int(inputs["seed"][i]), x.size) if t else x + noise(int(inputs["seed"][i]), x.size))),
    Mistake("noise scaled", "the temperature divides the logit alone, not the noise", wrong=_would(lambda inputs, i, x, t: x + noise(int(inputs["seed"][i]), x.size) if t else x)),
    Mistake("one seed", "each row has a seed of its own: seed[b]", wrong=_would(lambda inputs, i, x, t: x / t + noise(int(inputs["seed"][0]), x.size) if t else x)),
)  # fmt: skip

DRAW = KernelQuestion(
    id="sampling_fusion.draw",
    notebook="kernel",
    asks="token[b]: the largest logit where temperature[b] is 0, else the largest logit / T + noise, with noise = -log(-log(tl.rand(seed[b], token id)))",
    parts=(Part("values", 4, "values"), Part("traffic", 3, "traffic"), Part("compiled", 1, "compiled")),
    tensors=(LOGITS, *columns("temperature", "seed"), TOKEN),
    inputs=plain_inputs,
    reference=tokens_wanted,
    tolerance=exact,
    agree=agree,
    public=(Case(size(4, 64), "fp32"), Case(size(3, 100), "fp32", kind="a vocabulary that fills no block")),
    hidden=hidden_plain,
    traffic_case=Case(size(4, 8192), "fp32"),
    budgets={"traffic": one_read},
    most_launches=2,
    compile_case=Case(size(32, 128256), "fp32", sm_count=132),
    where=f'{LESSON}, "One read, one token"',
    hints=(
        "One program a row: walk over the vocabulary in blocks and remember, for each lane, the best score so far and whose it was.",
        "tl.rand(seed, offs) gives the uniform numbers of a block; a temperature of 0 takes tl.where to the bare logit.",
        "better = s > best; best = tl.where(better, s, best); who = tl.where(better, offs, who); at the end the largest, and of equals the lowest id.",
    ),
    mistakes=DRAW_MISTAKES,
)  # fmt: skip


def hidden_masked(rng: np.random.Generator) -> list[Case]:
    v = int(rng.integers(100, 600)) * 2 + 1
    return [
        Case(size(3, v, 9), "fp32", kind="an odd vocabulary"),
        Case(size(4, 300, 40), "bf16", kind="a long history in bf16"),
        Case(size(3, 128, 5), "fp32", values="all banned", kind="a row that bans everything"),
        Case(size(2, 33, 3), "fp32", kind="a mask that ends within a word"),
        Case(size(4, 500, 16), "fp32", layout={"logits": "padded"}, kind="strided rows"),
        Case(size(64, 9, 8), "fp32", values="close calls", kind="many rows of few tokens"),
        Case(
            size(32, 40, 24),
            "fp32",
            values="close calls",
            layout={"logits": "transposed", "allowed": "padded", "history": "padded"},
            kind="everything strided",
        ),
        Case(size(24, 200, 3), "fp32", values="fine", kind="logits that fp16 cannot tell apart"),
    ]


MASKED_DRAW = KernelQuestion(
    id="sampling_fusion.masked_draw",
    notebook="kernel",
    entry="launch_masked",
    asks="the draw after the grammar's bit mask (bit v % 32 of allowed[b, v // 32]) and the penalties on history[b] (-1 is empty); a row with nothing left gives -1",
    parts=(Part("values", 4, "values"), Part("traffic", 2, "traffic")),
    tensors=(
        LOGITS,
        Tensor("allowed", "bw", lambda s: (s["B"], -(-s["V"] // 32)), "i32"),
        Tensor("history", "bl", ("B", "L"), "i32"),
        *columns("temperature", "seed", "repetition", "frequency", "presence"),
        TOKEN,
    ),
    inputs=masked_inputs,
    reference=tokens_wanted,
    tolerance=exact,
    agree=agree,
    public=(Case(size(3, 64, 4), "fp32"), Case(size(4, 200, 12), "fp32", kind="a longer history")),
    hidden=hidden_masked,
    traffic_case=Case(size(4, 4096, 8), "fp32"),
    budgets={"traffic": one_read},
    most_launches=2,
    where=f'{LESSON}, "Masks and memories"',
    hints=(
        "Take your draw kernel; only the logit changes before it is scaled. Where does a lane find its mask bit?",
        "(tl.load(allowed + offs // 32) >> (offs % 32)) & 1. For the counts, loop over the history and compare each entry with offs.",
        "count += (offs == tl.load(history + l)); x = tl.where(count > 0, tl.where(x > 0, x / r, x * r), x) - f * count - p * (count > 0)",
    ),
    mistakes=(
        Mistake("banned tokens drawn", "a token was drawn that the mask bans: -inf must stay -inf through penalties and noise", shows=lambda i, c, got, want: bool((want == -1).any() and (got[want == -1] >= 0).any())),
        Mistake("no penalties", "the penalties changed nothing", wrong=lambda i, c: tokens_wanted({**i, "history": np.full_like(i["history"], -1)}, c)),
        *DRAW_MISTAKES[:1],
    ),
)  # fmt: skip


def hidden_filtered(rng: np.random.Generator) -> list[Case]:
    v = int(rng.integers(100, 900)) * 2 + 1
    return [
        Case(size(8, v), "fp32", kind="an odd vocabulary"),
        Case(size(6, 300), "bf16", kind="bf16 logits"),
        Case(size(6, 7), "fp32", kind="fewer tokens than top-k"),
        Case(size(8, 1024), "fp32", values="large", kind="large logits"),
        Case(size(48, 12), "fp32", values="ties", kind="equal logits at the border"),
        Case(size(64, 12), "fp32", values="close calls", kind="many rows of few tokens"),
        Case(
            size(32, 100),
            "fp32",
            values="close calls",
            layout={"logits": "transposed"},
            kind="transposed logits",
        ),
        Case(size(24, 200), "fp32", values="fine", kind="logits that fp16 cannot tell apart"),
    ]


FILTERED_DRAW = KernelQuestion(
    id="sampling_fusion.filtered_draw",
    notebook="kernel",
    entry="launch_filtered",
    asks="the draw among the survivors of top-k (0 is off), top-p and min-p, without sorting the vocabulary (V up to 2048)",
    parts=(Part("values", 5, "values"), Part("traffic", 2, "traffic")),
    tensors=(LOGITS, *columns("temperature", "seed", "top_k", "top_p", "min_p"), TOKEN),
    inputs=filtered_inputs,
    reference=tokens_wanted,
    tolerance=exact,
    agree=agree,
    public=(Case(size(6, 64), "fp32"), Case(size(4, 500), "fp32", kind="a vocabulary that fills no block")),
    hidden=hidden_filtered,
    traffic_case=Case(size(4, 2048), "fp32"),
    budgets={"traffic": one_read},
    most_launches=1,
    where=f'{LESSON}, "Selection without sorting"',
    hints=(
        "The row fits in one block, so everything can be asked of it at once. What single number decides whether a token is among the k largest?",
        "A threshold: halve an interval of logits until exactly k lie at or above it, counting with tl.sum; of equals, tl.cumsum keeps the lowest ids.",
        "For top-p look for the threshold whose mass above it is the largest still below p of the kept mass; then noise, and the largest of what is left.",
    ),
    mistakes=(
        Mistake("no filter", "a token was drawn that the filters had ruled out", wrong=lambda i, c: tokens_wanted({k: v for k, v in i.items() if k not in ("top_k", "top_p", "min_p")}, c)),
        *DRAW_MISTAKES[:2],
    ),
)  # fmt: skip

QUESTIONS = (PENALIZE, SURVIVORS, DRAWS, INVERSE, CHAIN, DRAW, MASKED_DRAW, FILTERED_DRAW)
