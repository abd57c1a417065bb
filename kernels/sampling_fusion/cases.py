"""List the cases on which the kernels are tested and timed. Each odd case gives a reason."""

from dataclasses import dataclass, field

import numpy as np

from kernels.sampling_fusion.requests import Requests, pack_bits
from kernels.sampling_fusion.rules import OURS, Rules
from kernels.tensors import DTYPES

USUAL = {"top_k": 50, "top_p": 0.9}
EVERYTHING = {
    "temperature": 0.7,
    "top_k": 50,
    "top_p": 0.9,
    "min_p": 0.02,
    "presence": 0.4,
    "frequency": 0.3,
    "repetition": 1.2,
}
MIXED = {  # neighbours with different requests: greedy, plain, ranked, nucleus alone, all together
    "temperature": (0.0, 1.0, 0.7, 1.3, 0.9),
    "top_k": (0, 0, 50, 0, 7),
    "top_p": (1.0, 1.0, 0.9, 0.8, 0.95),
    "min_p": (0.0, 0.0, 0.0, 0.0, 0.1),
}

BORDERS = {  # each filter alone and together, ranked and not, with most of the weight close to a border
    "top_k": (100, 0, 100, 0, 40, 100, 0),
    "top_p": (1.0, 1.0, 0.6, 0.6, 1.0, 0.5, 0.5),
    "min_p": (0.1, 0.1, 0.0, 0.0, 0.0, 0.1, 0.1),
}


@dataclass(frozen=True)
class Case:
    name: str
    batch: int
    vocabulary: int
    dtype: str = "fp32"
    logits: str = "normal"
    ask: dict = field(default_factory=lambda: USUAL)
    tables: tuple[str, ...] = ()  # of history, bias, banned, grammar
    draw: str = "gumbel"
    top: int = 0
    rules: Rules = OURS
    why: str = ""


CASES = (
    Case("usual", 2, 32000),
    Case("usual bf16", 2, 50257, "bf16", why="50257: no multiple of anything; bf16: many equal logits"),
    Case("usual fp16", 2, 4099, "fp16"),
    Case("one token", 2, 1, why="the only token must be drawn"),
    Case("two tokens", 2, 2),
    Case("fewer tokens than k", 2, 37, why="top-k 50 of 37"),
    Case("one group", 2, 64, why="exactly one group of 64"),
    Case("one more than a group", 2, 65),
    Case("k = 1", 2, 1000, ask={"top_k": 1}, why="greedy by another name"),
    Case("k = 1024", 1, 5000, ask={"top_k": 1024, "top_p": 0.95}, why="the longest short list"),
    Case("k = 1025", 2, 4099, ask={"top_k": 1025, "top_p": 0.7}, why="one past the short list"),
    Case("k = V", 2, 200, ask={"top_k": 200, "top_p": 0.5}, why="the shortest list that is sorted"),
    Case(
        "k = 200 of 24 groups",
        2,
        1500,
        ask={"top_k": 200, "temperature": 3.0},
        top=200,
        why="fewer sets of groups than k",
    ),
    Case("greedy", 2, 50257, ask={"temperature": 0.0}),
    Case("greedy, many equal", 2, 2000, "bf16", "ties", {"temperature": 0.0}, why="the lowest id wins"),
    Case("plain", 2, 4099, ask={"temperature": 0.8}),
    Case("plain flat", 2, 4096, logits="flat", ask={}, why="every token equally likely"),
    Case("nucleus", 2, 4099, ask={"top_p": 0.9}),
    Case("small nucleus", 2, 4099, ask={"top_p": 0.1}, why="the first draw is nearly always refused"),
    Case("nucleus flat", 2, 1000, logits="flat", ask={"top_p": 0.5}, why="500 of 1000 equal tokens"),
    Case("min-p", 2, 4099, ask={"min_p": 0.1}),
    Case("min-p and top-p", 2, 4099, ask={"min_p": 0.05, "top_p": 0.8}),
    Case("min-p first", 2, 4099, ask={"min_p": 0.05, "top_p": 0.8}, rules=Rules(min_p_first=True)),
    Case("min-p first, ranked", 2, 4099, ask=USUAL | {"min_p": 0.05}, rules=Rules(min_p_first=True)),
    Case("joint", 2, 4099, ask={"top_k": 20, "top_p": 0.6}, rules=Rules(top_p_of="all")),
    Case("nearly cold", 2, 4099, ask={"temperature": (1e-5, 2e-5)}, rules=Rules(greedy_below=1e-5)),
    Case("mixed", 5, 4099, ask=MIXED, why="one batch, five kinds of request"),
    Case("mixed with everything", 5, 4099, ask=MIXED, tables=("history", "bias", "banned", "grammar"), top=5),
    Case("everything", 2, 32000, ask=EVERYTHING, tables=("history", "bias", "banned", "grammar"), top=20),
    Case(
        "penalties",
        2,
        5000,
        ask={"temperature": 0.0, "repetition": 1.5, "presence": 1.0},
        tables=("history",),
    ),
    Case(
        "empty histories", 2, 1000, ask={"repetition": 1.5, "presence": 1.0, **USUAL}, why="nothing to punish"
    ),
    Case("reward", 2, 1000, ask={"repetition": 0.8, "presence": -1.0, **USUAL}, tables=("history",)),
    Case("grammar", 2, 4099, tables=("grammar",)),
    Case("bans", 2, 4099, tables=("banned", "bias")),
    Case("inverse", 2, 4099, draw="inverse"),
    Case("inverse, equal", 2, 999, "bf16", "ties", draw="inverse"),
    Case("top 20", 2, 4099, top=20),
    Case("top 5 of 3", 2, 3, top=5, why="fewer tokens than asked for"),
    Case("top 5 without top-k", 2, 4099, ask={"top_p": 0.9}, top=5),
    Case(
        "zeros of both signs",
        2,
        300,
        logits="zeros",
        ask={"top_k": 20, "temperature": (1.0, 0.0)},
        why="-0.0 equals 0.0",
    ),
    Case("all equal", 2, 1000, logits="flat", why="the k lowest ids stay"),
    Case("ties", 2, 3000, "bf16", "ties", why="ties far beyond k: bisection must end on the tied value"),
    Case("crowded", 2, 8192, logits="crowded", why="all good tokens in few groups: more than the list holds"),
    Case(
        "one best a group",
        1,
        64 * 160,
        logits="peaks",
        ask={"top_k": 128},
        top=128,
        why="154 equal groups before 6 better ones, and no more than 128 are looked into: just the right ones",
    ),
    Case(
        "the best come last",
        2,
        1000,
        logits="late",
        ask={"top_k": 50},
        top=20,
        why="after ties that fill the list",
    ),
    Case("cold", 2, 1000, ask={"temperature": 1e-3, **USUAL}),
    Case("hot", 2, 1000, ask={"temperature": 100.0, **USUAL}),
    Case("NaN", 3, 1000, logits="nan", why="a NaN takes no part, a row of NaN gives -1"),
    Case("infinite", 3, 1000, logits="inf", why="-inf takes no part, +inf is certain"),
    Case(
        "nothing allowed",
        3,
        1000,
        tables=("nothing",),
        why="a mask that bans everything gives -1, there only",
    ),
    Case("nothing allowed, plain", 3, 1000, ask={"top_p": 0.9}, tables=("nothing",), top=3),
    Case(
        "a history of all tokens",
        3,
        60,
        ask={"repetition": 1.5, "presence": 0.7, "frequency": 0.3, "top_k": 20},
        tables=("history",),
        top=20,
        why="some came once and some more often, and all are listed",
    ),
    Case(
        "infinite, then rewarded",
        3,
        60,
        logits="inf",
        ask={"repetition": 0.8, **USUAL},
        tables=("history",),
        why="the largest number over 0.8 is infinite again",
    ),
    Case("borders", 42, 120, logits="borders", ask=BORDERS, why="a threshold that is off draws other tokens"),
    Case(
        "borders, min-p first",
        42,
        120,
        logits="borders",
        ask=BORDERS,
        rules=Rules(min_p_first=True),
        why="and here another mass",
    ),
)

# On a GPU, in addition to CASES: real vocabularies, real batches.
LARGE = tuple(
    Case(f"{name} B{batch} V{vocabulary} {dtype}", batch, vocabulary, dtype, ask=ask, top=top, tables=tables)
    for vocabulary, dtype in (
        (32000, "fp32"),
        (50257, "bf16"),
        (128256, "fp32"),
        (128256, "bf16"),
        (151936, "fp32"),
    )
    for name, batch, ask, top, tables in (
        ("usual", 1, USUAL, 0, ()),
        ("usual", 32, USUAL, 0, ()),
        ("mixed", 64, MIXED, 5, ("history", "bias", "banned", "grammar")),
        ("greedy", 8, {"temperature": 0.0}, 0, ()),
        ("nucleus", 8, {"top_p": 0.9}, 0, ()),
        ("k = 1000", 4, {"top_k": 1000, "top_p": 0.9}, 0, ()),
    )
) + (
    Case("usual B256", 256, 128256),
    Case("usual B512", 512, 128256, "bf16"),
    Case("largest", 2, 262144, top=20),
    Case("largest odd", 5, 262143, ask=MIXED, why="one less than a power of two"),
)


def logits_of(case: Case, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng([seed, case.batch, case.vocabulary])
    x = rng.normal(size=(case.batch, case.vocabulary)) * 3
    if case.logits == "flat":
        x[:] = 1.5
    elif case.logits == "ties":
        x = np.round(x)
    elif case.logits == "zeros":
        x = np.where(x < -2, -1.0, np.copysign(0.0, x))
    elif case.logits == "crowded":
        x[:, 64 : 64 * 20] += 40
    elif case.logits == "borders":  # weights of 1, of some 0.15 and of some 0.07
        x = np.log(np.where(rng.random(x.shape) < 0.3, 0.15, 0.07)) + x / 100
        x[:, rng.integers(case.vocabulary)] = 0
    elif case.logits == "peaks":
        x /= 100
        x[:, 5::64], x[:, 5 - 64 * 6 :: 64] = 2, 3
    elif case.logits == "late":
        x[:] = 1.5
        x[:, -10:] = 2
    elif case.logits == "nan":
        x[0, ::3], x[-1] = np.nan, np.nan
    elif case.logits == "inf":
        x[0, ::2], x[1, 7], x[-1] = -np.inf, np.inf, -np.inf
    return x.astype(np.float32).astype(DTYPES[case.dtype])


def requests_of(case: Case, seed: int = 0) -> Requests:
    rng = np.random.default_rng([seed, 1, case.batch, case.vocabulary])
    batch, vocabulary = case.batch, case.vocabulary
    ask = {
        k: [v[i % len(v)] for i in range(batch)] if isinstance(v, tuple) else v for k, v in case.ask.items()
    }

    def some(most: int) -> list[np.ndarray]:
        return [rng.integers(0, vocabulary, rng.integers(0, most)) for _ in range(batch)]

    if "history" in case.tables:
        ask |= {"prompts": some(300), "outputs": [np.repeat(t, 2)[len(t) // 2 :] for t in some(100)]}
        ask |= {
            k: case.ask.get(k, v) for k, v in (("repetition", 1.3), ("presence", 0.5), ("frequency", 0.1))
        }
    if "banned" in case.tables:
        ask["banned"] = some(50)
    if "bias" in case.tables:
        ask["bias"] = [{int(t): float(rng.normal()) * 5 for t in tokens} for tokens in some(50)]
    if "grammar" in case.tables:
        flags = rng.random((batch, vocabulary)) < 0.3
        flags[:, rng.integers(vocabulary)] = True
        ask["allowed"] = pack_bits(flags)
    if "nothing" in case.tables:
        ask["allowed"] = pack_bits(np.arange(batch)[:, None].repeat(vocabulary, 1) != 1)
    seeds = rng.integers(0, 2**63, batch, dtype=np.uint64) * np.uint64(2)
    return Requests.of(
        batch, vocabulary, seed=seeds.tolist(), position=rng.integers(0, 5000, batch).tolist(), **ask
    )


MASK_OF = {"history": "seen", "bias": "biased", "banned": "biased", "grammar": "allowed"}  # a bit a token


@dataclass(frozen=True)
class Timed:
    name: str
    batch: int
    vocabulary: int = 128256
    dtype: str = "fp32"
    ask: dict = field(default_factory=lambda: USUAL)
    tables: tuple[str, ...] = ()
    goal_us: float | None = None  # on an H200
    quick: bool = False

    @property
    def masks(self) -> int:
        return len({MASK_OF[table] for table in self.tables})

    def case(self) -> Case:
        return Case(self.name, self.batch, self.vocabulary, self.dtype, ask=self.ask, tables=self.tables)


TIMED = (
    Timed("top-k 50, top-p 0.9", 1, goal_us=20, quick=True),
    Timed("top-k 50, top-p 0.9", 32, goal_us=35, quick=True),
    Timed("top-k 50, top-p 0.9", 256, goal_us=100, quick=True),
    Timed("top-k 50, top-p 0.9", 256, dtype="bf16"),
    Timed("greedy", 32, ask={"temperature": 0.0}),
    Timed("plain", 1, ask={}),
    Timed("plain", 32, ask={}),
    Timed("plain", 256, ask={}),
    Timed("top-p 0.9", 1, ask={"top_p": 0.9}),
    Timed("top-p 0.9", 32, ask={"top_p": 0.9}),
    Timed("top-p 0.9", 256, ask={"top_p": 0.9}),
    Timed("min-p 0.05", 32, ask={"min_p": 0.05}),
    Timed("min-p 0.05", 256, ask={"min_p": 0.05}),
    Timed("everything", 32, ask=EVERYTHING, tables=("history", "bias", "banned", "grammar")),
)
