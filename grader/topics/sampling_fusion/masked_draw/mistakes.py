"""List the mistakes of *masked draw*, a row each."""

import numpy as np

from grader.box.serve.frames import DTYPES
from grader.questions import Case
from grader.questions.draws import rounded
from grader.questions.families import computing, dense, family, one_stride, same_strides, within_limit
from grader.questions.rows import edited
from grader.topics.sampling_fusion import shared_rows
from grader.topics.sampling_fusion.shared_mistakes import (
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
from grader.topics.sampling_fusion.shared_rows import best, gumbel_of, tokens_wanted
from kernels.sampling_fusion.requests import unpack_bits


def before_all(less, x, t, noise):
    """Return a row's scores with the penalties first. `less` applies them."""
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
            return change(x, seen, *numbers) if change else shared_rows.penalised(x, seen, tuple(numbers))

        return best(score(less, x, t, gumbel_of(u)) if t else less(x))

    return row_by_row(drawn, cold=True)


def _each_time(x, history, r, f, p):
    count = np.bincount(np.asarray(history, int), minlength=x.size)
    return np.where(x > 0, x / r**count, x * r**count) - f * count - p * (count > 0)


def _always_divides(x, history, r, f, p):
    return shared_rows.penalised(
        np.where(np.isin(np.arange(x.size), history), x / r, x), history, (1.0, f, p)
    )


def _counted(dtype):
    """Frequency taken off as often as a count of this type says."""

    def change(x, history, r, f, p):
        count = np.bincount(np.asarray(history, int), minlength=x.size)
        return shared_rows.penalised(x, history, (r, 0.0, p)) - f * count.astype(dtype).astype(np.float64)

    return change


def _up_to_2048(x, history, r, f, p):
    """A count in fp16, which stops where it has no number for the next one."""
    count = np.minimum(np.bincount(np.asarray(history, int), minlength=x.size), 2048)
    return shared_rows.penalised(x, history, (r, 0.0, p)) - f * count


def _rounded_back(inputs: dict, case: Case) -> dict:
    """Return the logits after the penalties, rounded back to their dtype."""
    narrow = penalised(
        lambda x, h, r, f, p: rounded(shared_rows.penalised(x, h, (r, f, p)), case.dtype).astype(np.float64)
    )
    return tokens_wanted(inputs, case) if case.dtype == "fp32" else narrow(inputs, case)


def _unmasked(inputs: dict, case: Case) -> dict:
    return tokens_wanted(inputs | {"allowed": np.full_like(inputs["allowed"], -1)}, case)


def _mask_backwards(inputs: dict, case: Case) -> dict:
    """Bit 31 - v % 32 instead of bit v % 32."""
    bits = np.unpackbits(inputs["allowed"].astype("<i4").view(np.uint8), axis=1, bitorder="little")
    turned = bits.reshape(len(bits), -1, 32)[:, :, ::-1].reshape(len(bits), -1)
    packed = np.packbits(turned, axis=1, bitorder="little").view("<i4")
    return tokens_wanted(inputs | {"allowed": packed}, case)


def banned_to(number: float):
    """Give a banned token this score."""
    return row_by_row(
        lambda inputs, i, x, t, u: best(np.where(x == -np.inf, number, x / t + gumbel_of(u) if t else x)),
        cold=True,
    )


short_history = computing(with_inputs(history=lambda h: np.where(np.arange(h.shape[1]) < 40, h, -1)))
PENALTIES = "tl.where(count > 0, tl.where(x > 0, x / r, x * r) - f * count - p, x)"
MASKED_SCORE = "s = tl.where(t == 0, x, x / tl.where(t == 0, 1.0, t) - tl.log(-tl.log(tl.rand(seed, offs))))"


MISTAKES = (
    family(
        "a number for minus infinity",
        STAND_IN,
        *map(banned_to, STAND_INS[:2]),
        *(above(number, nothing) for number in STAND_INS[:2] for nothing in (-1, 0)),
        edits=(
            ('best = tl.full((BLOCK,), float("-inf")', "best = tl.full((BLOCK,), -1e9"),
            ('tl.where(top == float("-inf"), -1, chosen)', "tl.where(top == -1e9, -1, chosen)"),
        ),
    ),
    BANNED,
    family(
        "no mask",
        "the kernel drew a token that the mask bans: -inf must stay -inf through penalties and noise",
        _unmasked,
        edits=(('x = tl.where(((word >> (offs % 32)) & 1) != 0, x, float("-inf"))', "x = x"),),
    ),
    family(
        "bits from the other end",
        "bit v % 32 of a word is counted from the lowest bit: shift right by v % 32",
        _mask_backwards,
        edits=(("word >> (offs % 32)", "word >> (31 - offs % 32)"),),
    ),
    family(
        "the last bit of a word",
        "bit 31 makes a word negative: ask whether (word >> v % 32) & 1 is 1, not whether word & (1 << v % 32) is above 0",
        with_inputs(allowed=lambda words: words & 0x7FFFFFFF),
        edits=(("((word >> (offs % 32)) & 1) != 0", "(word & (1 << (offs % 32))) > 0"),),
    ),
    family(
        "no penalties",
        "the penalties changed nothing",
        with_inputs(history=lambda h: np.full_like(h, -1)),
        edits=((f"x = {PENALTIES}", "x = x"),),
    ),
    GREEDY,
    NEVER_GREEDY,
    ONE_SEED,
    HIGHEST,
    family(
        "penalties too late",
        "the penalties come before the temperature: apply them to the logit, then divide by the temperature and add the noise",
        penalised(score=lambda less, x, t, noise: less(x / t) + noise),
        penalised(score=lambda less, x, t, noise: less(x / t + noise)),
        edits=(
            (f"        x = {PENALTIES}\n", ""),
            (
                MASKED_SCORE,
                MASKED_SCORE
                + "\n        s = tl.where(count > 0, tl.where(s > 0, s / r, s * r) - f * count - p, s)",
            ),
        ),
    ),
    *of_each_row("temperature", "repetition", "frequency", "presence"),
    family(
        "always divides",
        "a negative logit divided by the repetition penalty goes up: multiply it instead",
        penalised(_always_divides),
        edits=(("tl.where(x > 0, x / r, x * r)", "x / r"),),
    ),
    family(
        "presence by count",
        "subtract presence once, and frequency once for each occurrence",
        penalised(lambda x, h, r, f, p: shared_rows.penalised(x, h, (r, f + p, 0.0))),
        edits=(("- f * count - p", "- f * count - p * count"),),
    ),
    family(
        "frequency once",
        "subtract frequency once for each occurrence of a token",
        penalised(lambda x, h, r, f, p: shared_rows.penalised(x, np.unique(h), (r, f, p))),
        edits=(("- f * count - p", "- f - p"),),
    ),
    family(
        "counted in eight bits",
        "a token may have occurred thousands of times: count in int32 or fp32, which hold such counts exactly",
        *map(penalised, map(_counted, (np.int8, np.uint8, DTYPES["bf16"]))),
        penalised(_up_to_2048),
        edits=(
            (PENALTIES, PENALTIES.replace("f * count", "f * count.to(tl.int32).to(tl.int8).to(tl.float32)")),
        ),
    ),
    edited(
        "counted in fp16",
        ("count = tl.zeros((BLOCK,), tl.float32)", "count = tl.zeros((BLOCK,), tl.float16)"),
        ("stride_historyl)).to(tl.float32)", "stride_historyl)).to(tl.float16)"),
        (PENALTIES, PENALTIES.replace("f * count", "f * count.to(tl.float32)")),
        told_as="counted in eight bits",
    ),
    family(
        "penalties rounded to bf16",
        "apply the penalties in fp32: rounded back to the logits' bf16, the results lose their last digits",
        _rounded_back,
        edits=(
            (
                PENALTIES,
                "tl.where(count > 0, (tl.where(x > 0, x / r, x * r) - f * count - p).to(logits_ptr.dtype.element_ty).to(tl.float32), x)",
            ),
        ),
    ),
    family(
        "repetition each time",
        "the repetition penalty acts once, however often a token has occurred",
        penalised(_each_time),
        edits=(
            (
                "tl.where(x > 0, x / r, x * r)",
                "tl.where(x > 0, x / tl.exp(count * tl.log(r)), x * tl.exp(count * tl.log(r)))",
            ),
        ),
    ),
    family(
        "subtracted first",
        "the repetition penalty comes before the other two",
        penalised(
            lambda x, h, r, f, p: shared_rows.penalised(
                shared_rows.penalised(x, h, (1.0, f, p)), h, (r, 0.0, 0.0)
            )
        ),
        edits=(
            (
                "tl.where(x > 0, x / r, x * r) - f * count - p",
                "tl.where(x - f * count - p > 0, (x - f * count - p) / r, (x - f * count - p) * r)",
            ),
        ),
    ),
    family(
        "empty places counted",
        "-1 in the history marks an empty entry, not a token, and beyond the history's end there is no token either",
        with_inputs(history=lambda h: np.where(h < 0, 0, h)),
        edits=(
            (
                "tl.load(history_ptr + b * stride_historyb + l * stride_historyl))",
                "tl.maximum(tl.load(history_ptr + b * stride_historyb + l * stride_historyl), 0))",
            ),
        ),
    ),
    ROUNDED_TO_FP16,
    edited("banned tokens low, not gone", ('!= 0, x, float("-inf"))', "!= 0, x, -30.0)")),
    edited("always greedy", (MASKED_SCORE, "s = x"), told_as="always greedy"),
    edited("the first word for all", ("+ offs // 32 * stride_allowedw", "")),
    edited("penalties on every token", (PENALTIES, "tl.where(x > 0, x / r, x * r) - f * count - p")),
    edited(
        "never greedy",
        (MASKED_SCORE, MASKED_SCORE.replace("tl.where(t == 0, x, ", "").removesuffix(")")),
        told_as="never greedy",
    ),
    edited("last entry of the history left out", ("range(0, L)", "range(0, L - 1)")),
    edited("first entry of the history alone", ("range(0, L)", "range(0, 1)")),
    edited(
        "penalties between the temperature and the noise",
        (
            f"x = {PENALTIES}",
            f"x = tl.where(t == 0, x, x / tl.where(t == 0, 1.0, t))\n        x = {PENALTIES}",
        ),
        (MASKED_SCORE, MASKED_SCORE.replace("x / tl.where(t == 0, 1.0, t)", "x")),
        told_as="penalties too late",
    ),
    edited("one seed for all", ("tl.load(seed_ptr + b)", "tl.load(seed_ptr)"), told_as="one seed"),
    edited(
        "one temperature for all",
        ("tl.load(temperature_ptr + b)", "tl.load(temperature_ptr)"),
        told_as="one temperature",
    ),
    edited(
        "one repetition for all",
        ("tl.load(repetition_ptr + b)", "tl.load(repetition_ptr)"),
        told_as="one repetition",
    ),
    edited(
        "one frequency for all",
        ("tl.load(frequency_ptr + b)", "tl.load(frequency_ptr)"),
        told_as="one frequency",
    ),
    edited(
        "one presence for all", ("tl.load(presence_ptr + b)", "tl.load(presence_ptr)"), told_as="one presence"
    ),
    edited(
        "the highest of all equals",
        ("(s > best)", "(s >= best)"),
        (
            "chosen = tl.min(tl.where((best == top) & (who >= 0), who, 2147483647), 0)",
            "chosen = tl.max(tl.where(best == top, who, -1), 0)",
        ),
        told_as="highest of equals",
    ),
    edited(
        "a banned row gives a token",
        ('tl.where(top == float("-inf"), -1, chosen)', 'tl.where(top == float("-inf"), 0, chosen)'),
        told_as="banned row drawn",
    ),
    edited(
        "read in half precision",
        (".to(tl.float32)\n        word", ".to(tl.float16).to(tl.float32)\n        word"),
        told_as="rounded to fp16",
    ),
    edited("40 places of history", ("range(0, L)", "range(0, tl.minimum(L, 40))")),
    edited("the mask's inner stride taken for 1", ("offs // 32 * stride_allowedw", "offs // 32")),
    edited("the history's inner stride taken for 1", ("l * stride_historyl", "l")),
    edited(
        "read twice",
        (
            "        word =",
            '        x = tl.maximum(x, tl.load(row + offs * stride_logitsv, mask=inside, other=float("-inf")).to(tl.float32))\n        word =',
        ),
        part="traffic",
    ),
)


SHORTCUTS = {
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
