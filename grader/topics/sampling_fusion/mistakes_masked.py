"""Draws with a mask and penalties: what is often wrong, and answers that hold for some values alone."""

import numpy as np

from grader.box.serve.frames import DTYPES
from grader.questions import Case
from grader.questions.draws import rounded
from grader.questions.families import computing, dense, family, one_stride, same_strides, within_limit
from grader.topics.sampling_fusion import rows
from grader.topics.sampling_fusion.mistakes import (
    BANNED,
    GREEDY,
    HIGHEST,
    NEVER_GREEDY,
    ONE_SEED,
    ROUNDED_TO_FP16,
    STAND_IN,
    STAND_INS,
    TEMPERATURES,
    above,
    of_each_row,
    row_by_row,
    with_inputs,
    with_tables,
)
from grader.topics.sampling_fusion.rows import penalised as after
from kernels.sampling_fusion.requests import unpack_bits


def before_all(less, x, t, noise):
    """A row's scores, whose penalties come first; `less` takes them off."""
    return less(x) / t + noise


def penalised(change=None, score=before_all):
    """The tokens where a row's penalties are `change(x, history, repetition, frequency, presence)`, the right ones if it is
    left out, taken off in `score`."""

    def drawn(inputs, i, x, t, u):
        may = unpack_bits(inputs["allowed"][i : i + 1], x.size)[0]
        history = inputs["history"][i]
        numbers = [float(inputs[n][i]) for n in ("repetition", "frequency", "presence")]
        x = np.where(may, inputs["logits"][i].astype(np.float64), -np.inf)

        def less(x):
            seen = history[history >= 0]
            return change(x, seen, *numbers) if change else after(x, seen, tuple(numbers))

        return rows.best(score(less, x, t, rows.gumbel_of(u)) if t else less(x))

    return row_by_row(drawn, cold=True)


def _each_time(x, history, r, f, p):
    count = np.bincount(np.asarray(history, int), minlength=x.size)
    return np.where(x > 0, x / r**count, x * r**count) - f * count - p * (count > 0)


def _always_divides(x, history, r, f, p):
    return after(np.where(np.isin(np.arange(x.size), history), x / r, x), history, (1.0, f, p))


def _counted(dtype):
    """Frequency taken off as often as a count of this type says."""

    def change(x, history, r, f, p):
        count = np.bincount(np.asarray(history, int), minlength=x.size)
        return after(x, history, (r, 0.0, p)) - f * count.astype(dtype).astype(np.float64)

    return change


def _rounded_back(inputs: dict, case: Case) -> dict:
    """What the penalties leave, in the dtype of the logits again."""
    narrow = penalised(lambda x, h, r, f, p: rounded(after(x, h, (r, f, p)), case.dtype).astype(np.float64))
    return rows.tokens_wanted(inputs, case) if case.dtype == "fp32" else narrow(inputs, case)


def _unmasked(inputs: dict, case: Case) -> dict:
    return rows.tokens_wanted(inputs | {"allowed": np.full_like(inputs["allowed"], -1)}, case)


def _mask_backwards(inputs: dict, case: Case) -> dict:
    """Bit 31 - v % 32 instead of bit v % 32."""
    bits = np.unpackbits(inputs["allowed"].astype("<i4").view(np.uint8), axis=1, bitorder="little")
    turned = bits.reshape(len(bits), -1, 32)[:, :, ::-1].reshape(len(bits), -1)
    packed = np.packbits(turned, axis=1, bitorder="little").view("<i4")
    return rows.tokens_wanted(inputs | {"allowed": packed}, case)


def banned_to(number: float):
    """A banned token keeps a score: this number."""
    return row_by_row(
        lambda inputs, i, x, t, u: rows.best(
            np.where(x == -np.inf, number, x / t + rows.gumbel_of(u) if t else x)
        ),
        cold=True,
    )


MASKED = (
    family(
        "a number for minus infinity",
        STAND_IN,
        *map(banned_to, STAND_INS[:2]),
        *(above(number, nothing) for number in STAND_INS[:2] for nothing in (-1, 0)),
    ),
    BANNED,
    family(
        "no mask",
        "a token was drawn that the mask bans: -inf must stay -inf through penalties and noise",
        _unmasked,
    ),
    family(
        "bits from the other end",
        "bit v % 32 of a word counts from the lowest: shift right by v % 32",
        _mask_backwards,
    ),
    family(
        "the last bit of a word",
        "bit 31 makes a word negative: ask whether (word >> v % 32) & 1 is 1, not whether word & (1 << v % 32) is above 0",
        with_inputs(allowed=lambda words: words & 0x7FFFFFFF),
    ),
    family(
        "no penalties", "the penalties changed nothing", with_inputs(history=lambda h: np.full_like(h, -1))
    ),
    GREEDY,
    NEVER_GREEDY,
    ONE_SEED,
    HIGHEST,
    family(
        "penalties too late",
        "the penalties come before the temperature: take them off the logit, then divide by it and add the noise",
        penalised(score=lambda less, x, t, noise: less(x / t) + noise),
        penalised(score=lambda less, x, t, noise: less(x / t + noise)),
    ),
    *of_each_row("temperature", "repetition", "frequency", "presence"),
    family(
        "always divides",
        "a negative logit divided by the repetition penalty goes up: multiply it instead",
        penalised(_always_divides),
    ),
    family(
        "presence by count",
        "presence is taken off once, frequency once for each time",
        penalised(lambda x, h, r, f, p: after(x, h, (r, f + p, 0.0))),
    ),
    family(
        "frequency once",
        "frequency is taken off once for each time that a token came",
        penalised(lambda x, h, r, f, p: after(x, np.unique(h), (r, f, p))),
    ),
    family(
        "counted in eight bits",
        "a token may have come some hundred times: count in int32 or fp32, where each count is itself",
        *map(penalised, map(_counted, (np.int8, np.uint8, DTYPES["bf16"]))),
    ),
    family(
        "penalties rounded to bf16",
        "penalties are taken off in fp32: rounded back to the logits' bf16 they lose their last digits",
        _rounded_back,
    ),
    family(
        "repetition each time",
        "the repetition penalty acts once, however often a token came",
        penalised(_each_time),
    ),
    family(
        "subtracted first",
        "the repetition penalty comes before the other two",
        penalised(lambda x, h, r, f, p: after(after(x, h, (1.0, f, p)), h, (r, 0.0, 0.0))),
    ),
    family(
        "empty places counted",
        "-1 in the history is an empty place, not a token",
        with_inputs(history=lambda h: np.where(h < 0, 0, h)),
    ),
    ROUNDED_TO_FP16,
)


short_history = computing(with_inputs(history=lambda h: np.where(np.arange(h.shape[1]) < 40, h, -1)))
MASKED_SHORTCUTS = {
    "temperature from a table": with_tables(temperature=TEMPERATURES),
    "repetition from a table": with_tables(repetition=(0.7, 1.0, 1.1, 1.2, 1.3, 1.5, 2.0)),
    "frequency from a table": with_tables(frequency=(-0.4, 0.0, 0.1, 0.3, 0.5)),
    "presence from a table": with_tables(presence=(0.0, 0.4, 0.5, 1.0)),
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
