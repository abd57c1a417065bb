"""What goes wrong in draws: the tokens that each mistake gives, and the sentence that tells of it."""

import numpy as np

from grader.box.serve.frames import DTYPES
from grader.questions import Case
from grader.questions.families import dense, family, one_stride, same_strides, within_limit
from grader.topics.sampling_fusion import filters, rows
from grader.topics.sampling_fusion.rows import penalised as after
from kernels.sampling_fusion.requests import unpack_bits

LANES = (64, 128, 256, 512, 1024, 2048)


def row_by_row(pick, cold=False):
    """The tokens where `pick(inputs, i, x, t, u)` takes a row's; rows of temperature 0 are right, unless `cold`."""

    def wrong(inputs: dict, case: Case) -> dict:
        token = rows.tokens_wanted(inputs, case)["token"]
        for i in np.flatnonzero((inputs["temperature"] > 0) | cold):
            x, t = rows.final_logits(inputs, i), float(inputs["temperature"][i])
            if x.max() == -np.inf:
                continue
            token[i] = pick(inputs, i, x, t, rows.uniform(int(inputs["seed"][i]), np.arange(x.size)))
        return {"token": token}

    return wrong


def scored(score):
    """The same where `score(x, t, u)` is maximised."""
    return row_by_row(lambda inputs, i, x, t, u: rows.best(score(x, t, u)))


def _with(**changed):
    """The right tokens of other inputs."""
    return lambda inputs, case: rows.tokens_wanted(
        inputs | {n: change(inputs[n]) for n, change in changed.items()}, case
    )


def _by_lane(lanes: int):
    """The noise of a token's lane in blocks of so many."""
    return scored(lambda x, t, u: x / t + rows.gumbel_of(u[np.arange(x.size) % lanes]))


def _of_equals(order):
    """Of equal scores the one that comes first in `order(number of tokens)`; cold rows too."""

    def pick(inputs, i, x, t, u):
        s = x / t + rows.gumbel_of(u) if t else x
        best = order(x.size)
        return int(best[np.argmax(s[best])])

    return row_by_row(pick, cold=True)


def _lane_first(lanes: int):
    """Each lane keeps its first, then the lowest lane wins, whatever its token."""
    return _of_equals(lambda n: np.lexsort((np.arange(n), np.arange(n) % lanes)))


def _rounded_logits(dtype):
    return _with(logits=lambda x: x.astype(DTYPES[dtype]).astype(x.dtype))


def _nearest(*table):
    """A knob taken from the values that a table holds."""
    known = np.array(table, np.float32)
    return lambda column: known[np.abs(column[:, None] - known).argmin(1)]


def _clipped(low: float, high: float):
    return scored(lambda x, t, u: x / t + rows.gumbel_of(np.clip(u, low, high)))


def by_inverse_cdf(inputs, i, x, t, u):
    """The row's first uniform number as a share of the mass, laid end to end by token."""
    mass = np.exp((x - x.max()) / t).cumsum()
    return int(np.searchsorted(mass, u[0] * mass[-1], side="right"))


def _first(column: np.ndarray) -> np.ndarray:
    return np.full_like(column, column[0])


GREEDY = family(
    "always greedy",
    "every row took its largest logit: the noise is missing where the temperature is not 0",
    _with(temperature=np.zeros_like),
)
NEVER_GREEDY = family(
    "never greedy",
    "a temperature of 0 means the largest logit, without noise",
    _with(temperature=lambda t: np.where(t == 0, np.float32(1), t)),
)
SCALED = family(
    "noise scaled",
    "as if there were no temperature: it divides the logit alone, before the noise is added",
    scored(lambda x, t, u: x / t + rows.gumbel_of(u) / t),
)
ONE_SEED = family("one seed", "each row has a seed of its own: seed[b]", _with(seed=_first))
HIGHEST = family(
    "highest of equals", "of equal scores the lowest id is drawn", _of_equals(lambda n: np.arange(n)[::-1])
)
BANNED = family(
    "banned row drawn",
    "a row whose logits are all -inf gives -1",
    lambda i, c: {"token": np.maximum(rows.tokens_wanted(i, c)["token"], 0)},
)
CLOSE = 1 - 2.0**-20  # u above this is one in a million, and in every row of hard close calls

DRAW = (
    GREEDY, NEVER_GREEDY, SCALED, ONE_SEED, HIGHEST, BANNED,
    family("lowest lane", "of equal scores the lowest id is drawn, not the lowest lane of a block", *(_lane_first(n) for n in LANES[:5])),
    family("one temperature", "each row has a temperature of its own: temperature[b]", _with(temperature=_first)),
    family("sign of the noise", "the noise has its sign turned round: it is -log(-log(u)), large where u is near 1", scored(lambda x, t, u: x / t - rows.gumbel_of(u))),
    family("noise by lane", "tokens that share a lane share their noise: tl.rand takes the token's id, not the lane", *(_by_lane(n) for n in LANES)),
    family("another noise", "-log(-log(1 - u)) is as fair a noise, but it draws other tokens; the one asked for is -log(-log(u))", scored(lambda x, t, u: x / t + rows.gumbel_of(1 - u))),
    family("base two", "the logarithms are natural ones: tl.log, not tl.log2", scored(lambda x, t, u: x / t - np.log2(-np.log2(u)))),
    family("one logarithm", "Gumbel noise takes the logarithm twice: -log(-log(u))", scored(lambda x, t, u: x / t - np.log(u))),
    family("rounded to fp16", "logits that differ in fp32 are equal in fp16: compare and add in fp32", _rounded_logits("fp16")),
    family("inverse CDF", "an inverse CDF draws as fairly, but other tokens: here each token has noise of its own, and the largest sum wins", row_by_row(by_inverse_cdf)),
)  # fmt: skip

TEMPERATURES = (0.0, 0.3, 0.5, 0.7, 1.0, 1.3, 1.5, 1.7, 2.0)
temperature_table = _with(temperature=_nearest(*TEMPERATURES))
clipped = _clipped(1e-3, 0.999)
for function in (temperature_table, clipped):
    function.computes = True
DRAW_SHORTCUTS = {
    "temperature from a table": temperature_table,
    "u clipped": clipped,
    **{f"V up to {most}": within_limit("V", most) for most in (64, 1024, 4096, 8192, 65536, 100_000)},
    **{f"B up to {most}": within_limit("B", most) for most in (8, 16, 32)},
    **{f"stride {axis} of logits taken for 1": one_stride("logits", axis) for axis in (0, 1)},
    "logits taken for dense": dense("logits"),
}


def penalised(change):
    """The tokens where a row's penalties are `change(x, history, repetition, frequency, presence)`."""

    def drawn(inputs, i, x, t, u):
        may = unpack_bits(inputs["allowed"][i : i + 1], x.size)[0]
        history = inputs["history"][i]
        numbers = (float(inputs[n][i]) for n in ("repetition", "frequency", "presence"))
        x = np.where(may, inputs["logits"][i].astype(np.float64), -np.inf)
        x = change(x, history[history >= 0], *numbers)
        return rows.best(x / t + rows.gumbel_of(u) if t else x)

    return row_by_row(drawn, cold=True)


def _each_time(x, history, r, f, p):
    count = np.bincount(np.asarray(history, int), minlength=x.size)
    return np.where(x > 0, x / r**count, x * r**count) - f * count - p * (count > 0)


def _always_divides(x, history, r, f, p):
    return after(np.where(np.isin(np.arange(x.size), history), x / r, x), history, (1.0, f, p))


def _unmasked(inputs: dict, case: Case) -> dict:
    return rows.tokens_wanted(inputs | {"allowed": np.full_like(inputs["allowed"], -1)}, case)


def _mask_backwards(inputs: dict, case: Case) -> dict:
    """Bit 31 - v % 32 instead of bit v % 32."""
    bits = np.unpackbits(inputs["allowed"].astype("<i4").view(np.uint8), axis=1, bitorder="little")
    turned = bits.reshape(len(bits), -1, 32)[:, :, ::-1].reshape(len(bits), -1)
    packed = np.packbits(turned, axis=1, bitorder="little").view("<i4")
    return rows.tokens_wanted(inputs | {"allowed": packed}, case)


MASKED = (
    BANNED,
    family("no mask", "a token was drawn that the mask bans: -inf must stay -inf through penalties and noise", _unmasked),
    family("bits from the other end", "bit v % 32 of a word counts from the lowest: shift right by v % 32", _mask_backwards),
    family("no penalties", "the penalties changed nothing", _with(history=lambda h: np.full_like(h, -1))),
    GREEDY, NEVER_GREEDY, ONE_SEED, HIGHEST,
    *(family(f"one {name}", f"each row has a {name} of its own: {name}[b]", _with(**{name: _first})) for name in ("temperature", "repetition", "frequency", "presence")),
    family("always divides", "a negative logit divided by the repetition penalty goes up: multiply it instead", penalised(_always_divides)),
    family("presence by count", "presence is taken off once, frequency once for each time", penalised(lambda x, h, r, f, p: after(x, h, (r, f + p, 0.0)))),
    family("frequency once", "frequency is taken off once for each time that a token came", penalised(lambda x, h, r, f, p: after(x, np.unique(h), (r, f, p)))),
    family("repetition each time", "the repetition penalty acts once, however often a token came", penalised(_each_time)),
    family("subtracted first", "the repetition penalty comes before the other two", penalised(lambda x, h, r, f, p: after(after(x, h, (1.0, f, p)), h, (r, 0.0, 0.0)))),
    family("empty places counted", "-1 in the history is an empty place, not a token", _with(history=lambda h: np.where(h < 0, 0, h))),
    family("rounded to fp16", "logits that differ in fp32 are equal in fp16: compare and add in fp32", _rounded_logits("fp16")),
)  # fmt: skip


def _table(**tables):
    function = _with(**{name: _nearest(*values) for name, values in tables.items()})
    function.computes = True
    return function


short_history = _with(history=lambda h: np.where(np.arange(h.shape[1]) < 40, h, -1))
short_history.computes = True
MASKED_SHORTCUTS = {
    "temperature from a table": _table(temperature=TEMPERATURES),
    "repetition from a table": _table(repetition=(0.7, 1.0, 1.1, 1.2, 1.3, 1.5, 2.0)),
    "frequency from a table": _table(frequency=(-0.4, 0.0, 0.1, 0.3, 0.5)),
    "presence from a table": _table(presence=(0.0, 0.4, 0.5, 1.0)),
    "40 places of history": short_history,
    **{f"V up to {most}": within_limit("V", most) for most in (64, 1024, 4096, 8192)},
    **{
        f"stride {axis} of {name} taken for 1": one_stride(name, axis)
        for name in ("logits", "allowed", "history")
        for axis in (0, 1)
    },
    **{f"{name} taken for dense": dense(name) for name in ("logits", "allowed", "history")},
    **{
        f"{a}'s strides for {b}": same_strides(a, b)
        for a, b in (("logits", "allowed"), ("logits", "history"), ("allowed", "history"))
    },
}


def among(stays, nothing: int = -1):
    """The tokens drawn among those that `stays(x, t, top_k, top_p, min_p)` flags; `nothing` where it flags none."""

    def drawn(inputs, i, x, t, u):
        score = np.where(stays(x, t, *rows.filters(inputs, i)), x / t + rows.gumbel_of(u), -np.inf)
        return nothing if score.max() == -np.inf else rows.best(score)

    return row_by_row(drawn)


FILTERED = (
    family(
        "no filter",
        "a token was drawn that the filters had ruled out",
        scored(lambda x, t, u: x / t + rows.gumbel_of(u)),
    ),
    GREEDY,
    NEVER_GREEDY,
    ONE_SEED,
    *(
        family(name, sentence, among(stays), among(stays, nothing=0))
        for name, (sentence, stays) in filters.READ_OTHERWISE.items()
    ),
    *(
        family(f"one {name}", f"each row has a {name} of its own: {name}[b]", _with(**{name: _first}))
        for name in ("temperature", "top_p", "min_p")
    ),
    family(
        "rounded to fp16",
        "logits that differ in fp32 are equal in fp16: compare and add in fp32",
        _rounded_logits("fp16"),
    ),
)


def _capped_k(inputs: dict, case: Case) -> dict:
    return rows.tokens_wanted(inputs | {"top_k": np.minimum(inputs["top_k"], 50)}, case)


one_top_k = _with(top_k=_first)
for function in (_capped_k, one_top_k):
    function.computes = True
FILTERED_SHORTCUTS = {
    "temperature from a table": _table(temperature=TEMPERATURES),
    "top_k up to 50": _capped_k,
    "the first row's top_k for all": one_top_k,
    "top_p from a table": _table(top_p=(0.35, 0.5, 0.62, 0.83, 0.9, 0.95, 1.0)),
    "min_p from a table": _table(min_p=(0.0, 0.02, 0.05, 0.1, 0.3, 0.4, 0.58)),
    **{f"V up to {most}": within_limit("V", most) for most in (64, 256, 1024, 2047)},
    **{f"stride {axis} of logits taken for 1": one_stride("logits", axis) for axis in (0, 1)},
    "logits taken for dense": dense("logits"),
}
