"""What attention's answers are compared with, how far they may be from it, and what each common mistake gives."""

import itertools
import math

import numpy as np

from grader.judge.compare import difference
from grader.questions import Case, Mistake
from kernels.flash_attention import reference

ROUNDING = {"fp16": 2.0**-10, "bf16": 2.0**-7, "fp32": 2.0**-20}
WEIGHT_ROUNDING = {"fp16": 2.0**-10, "bf16": 2.0**-7}  # of the softmax weights, which are rounded before P V


def within(attended):
    """Rounding of the output and of each weight, in the sum of what they weigh. A score's own error grows with its
    size, the more so where queries are scaled before they are rounded, as some good kernels do."""

    def limits(inputs: dict, case: Case, want: dict) -> dict:
        terms = attended(inputs | {"v": np.abs(inputs["v"])}, case)["o"]
        norms = [np.linalg.norm(inputs[x].astype(np.float64), axis=-1).max(initial=0) for x in ("q", "k")]
        share = WEIGHT_ROUNDING[case.dtype] * (1 + abs(case.scalars["scale"]) * norms[0] * norms[1] / 16)
        return {name: ROUNDING[case.dtype] * np.abs(w) + share * terms + 1e-6 for name, w in want.items()}

    return limits


def attended(inputs: dict, c: Case) -> dict:
    q, k, v = (inputs[x] for x in "qkv")
    return {"o": reference.attention(q, k, v, causal=True, scale=c.scalars["scale"])[0]}


def decoded(inputs: dict, c: Case) -> dict:
    q, k, v = (inputs[x] for x in "qkv")
    return {"o": reference.decode(q, k, v, scale=c.scalars["scale"])[0]}


def windowed(inputs: dict, c: Case) -> dict:
    more = {"window": (c.sizes["W"], 0), "softcap": c.scalars["softcap"]}
    q, k, v = (inputs[x] for x in "qkv")
    return {"o": reference.attention(q, k, v, causal=True, scale=c.scalars["scale"], **more)[0]}


def _attended_by(c: Case):
    return windowed if "softcap" in c.scalars else attended if "M" in c.sizes else decoded


# Common mistakes: each computes what it would give.

TILES = (16, 32, 64, 128)  # widths that a kernel's tile of keys is likely to have


def near(got, would, allowed, want) -> bool:
    """What came is what the mistake gives, and the mistake gives something else than what was wanted."""
    allowed = np.maximum(allowed, 2e-2 * np.abs(would))
    return difference("", got, would, allowed) is None and difference("", want, would, allowed) is not None


def _one_of(variants):
    """A mistake that depends on how an answer cuts its tiles: any of the variants would show it."""

    def shows(inputs: dict, c: Case, got, want) -> bool:
        allowed = within(_attended_by(c))(inputs, c, {"o": want})["o"]
        with np.errstate(over="ignore", invalid="ignore"):
            return any(near(got, would, allowed, want) for would in variants(inputs, c))

    return shows


def _for_all_heads(inputs: dict) -> list[np.ndarray]:
    q, k, v = (inputs[x].astype(np.float64) for x in "qkv")
    return [q, *(reference.for_each_query_head(x, q.shape[1]) for x in (k, v))]


def weighed(s, top, v, total=None):
    """Values weighed by exp(s - top), over the sum of the same weights or of others."""
    p = np.exp(s - top)
    return p @ v / (p if total is None else total).sum(-1, keepdims=True)


def _variant(**change):
    def wrong(inputs: dict, c: Case) -> dict:
        q, k, v = (inputs[x].astype(np.float64) for x in "qkv")
        options = {"causal": True, "scale": c.scalars["scale"], **change}
        if options.pop("interleaved_heads", False):
            k, v = (np.tile(x, (1, q.shape[1] // x.shape[1], 1, 1)) for x in (k, v))
        return {"o": reference.attention(q, k, v, **options)[0]}

    return wrong


def causal(c: Case) -> np.ndarray:
    return reference.visible(c.sizes["M"], c.sizes["N"], causal=True)


def _causal_scores(inputs: dict, c: Case):
    q, k, v = _for_all_heads(inputs)
    s = reference.scores(q, k, c.scalars["scale"])
    return np.where(reference.visible(q.shape[2], k.shape[2], causal=True), s, -np.inf), v


def _aligned_at_start(inputs: dict, c: Case) -> dict:
    q, k, v = _for_all_heads(inputs)
    s = np.where(np.tri(q.shape[2], k.shape[2]), reference.scores(q, k, c.scalars["scale"]), -np.inf)
    return {"o": reference.softmax(s)[0] @ v}


def _visited(c: Case):
    """Which keys each query's program loads, for every likely tile; first all of them."""
    m, n, w = c.sizes["M"], c.sizes["N"], c.sizes.get("W", c.sizes["N"])
    key = np.arange(n)[None, :]
    yield np.ones((m, n), bool)
    for rows, keys in itertools.product(TILES, TILES):
        first = np.arange(m)[:, None] // rows * rows + n - m
        yield (key >= (first - w) // keys * keys) & (key < -(-(first + rows) // keys) * keys)


def _beyond_the_diagonal(masked=None):
    """Masked keys of the tiles that are visited anyway keep their score, or count with `masked`."""

    def variants(inputs: dict, c: Case):
        q, k, v = _for_all_heads(inputs)
        s = reference.scores(q, k, c.scalars["scale"])
        s = s if masked is None else np.where(reference.visible(*s.shape[-2:], causal=True), s, masked)
        for visited in _visited(c):
            yield reference.softmax(np.where(visited, s, -np.inf))[0] @ v

    return variants


def _strictly_causal(inputs: dict, c: Case, got, want) -> bool:
    """A first query that sees nothing gives NaN or whatever; the others tell."""
    would = _variant(causal=False, window=(10**6, -1))(inputs, c)["o"]
    kept, allowed = np.isfinite(got).all(-1), within(attended)(inputs, c, {"o": want})["o"]
    return bool(kept.any()) and near(got[kept], would[kept], allowed[kept], want[kept])


def _undivided(inputs: dict, c: Case) -> dict:
    s, v = _causal_scores(inputs, c)
    return {"o": np.exp(s - s.max(-1, keepdims=True)) @ v}


def maximum_when_it_came(s, tile: int):
    """For each key the running maximum at the time of its tile: what is not rescaled stays weighed against it."""
    tops = [s[..., : start + tile].max(-1, keepdims=True) for start in range(0, s.shape[-1], tile)]
    return np.concatenate([np.repeat(top, tile, -1) for top in tops], -1)[..., : s.shape[-1]]


def _not_rescaled(inputs: dict, c: Case):
    """Neither the accumulator nor the sum, then each of them alone."""
    s, v = _causal_scores(inputs, c)
    last = s.max(-1, keepdims=True)
    for tile in TILES:
        then = maximum_when_it_came(s, tile)
        yield weighed(s, then, v)
        yield weighed(s, then, v, np.exp(s - last))
        yield weighed(s, last, v, np.exp(s - then))


def _overflowed(inputs, c, got, want) -> bool:
    return bool(np.isnan(got).any()) and c.values == "extreme scores"


def _nan(inputs, c, got, want) -> bool:
    return bool(np.isnan(got).any())


def _beyond_fp16(inputs, c, got, want) -> bool:
    return c.values == "beyond fp16" and not np.isfinite(got).all()


BEYOND_FP16 = Mistake("beyond fp16", "bf16 holds numbers above 65504 and fp16 does not: what is rounded to fp16 on the way?", shows=_beyond_fp16)  # fmt: skip

FORWARD = (
    BEYOND_FP16,
    Mistake("no maximum", "wrong only where a score is large: is the running maximum subtracted before exp?", shows=_overflowed),
    Mistake("no mask", "queries see keys behind their own here: is the causal mask applied to the scores, with -inf, before the maximum?", shows=_one_of(_beyond_the_diagonal())),
    Mistake("no scale", "the scores are not scaled: multiply q k by p.scale", wrong=_variant(scale=1.0)),
    Mistake("mask from the start", "query i stands at key i + N - M: with more keys than queries the mask starts further right", wrong=_aligned_at_start),
    Mistake("interleaved heads", "query head h belongs to key head h // (H // G), not h % G", wrong=_variant(interleaved_heads=True)),
    Mistake("strictly causal", "a query sees its own key too: <=, not <", shows=_strictly_causal),
    Mistake("masked with zero", "a masked score must be -inf: a score of 0 still has a weight of exp(0 - m)", shows=_one_of(_beyond_the_diagonal(masked=0.0))),
    Mistake("no division", "the output is not divided by the running sum", wrong=_undivided),
    Mistake("no rescale", "right for one tile of keys and wrong for more: is the accumulator, and the sum, scaled by exp(m_old - m_new)?", shows=_one_of(_not_rescaled)),
    Mistake("NaN", "NaN came in: a row whose keys are all masked, or a load without other=0.0", shows=_nan),
)  # fmt: skip


def _decode_scores(inputs: dict, c: Case, scale=None):
    q, k, v = inputs["q"].astype(np.float64)[:, :, None], *(inputs[x].astype(np.float64) for x in "kv")
    k, v = (reference.for_each_query_head(x, q.shape[1]) for x in (k, v))
    return reference.scores(q, k, c.scalars["scale"] if scale is None else scale), v


def _decoded_unscaled(inputs: dict, c: Case) -> dict:
    s, v = _decode_scores(inputs, c, scale=1.0)
    return {"o": (reference.softmax(s)[0] @ v)[:, :, 0]}


def _decoded_interleaved(inputs: dict, c: Case) -> dict:
    per = c.sizes["H"] // c.sizes["G"]
    k, v = (np.tile(inputs[x].astype(np.float64), (1, per, 1, 1)) for x in "kv")
    return {"o": reference.decode(inputs["q"], k, v, scale=c.scalars["scale"])[0]}


def _unweighed_parts(inputs: dict, c: Case):
    """The mean of the parts, and sums that each keep their own maximum, for every likely split."""
    (s, v), n = _decode_scores(inputs, c), c.sizes["N"]
    for chunk in sorted({*range(16, n, 16), *(math.ceil(n / splits) for splits in range(2, 65))}):
        cuts = [slice(start, start + chunk) for start in range(0, n, chunk)]
        parts = [reference.softmax(s[..., cut])[0] @ v[:, :, cut] for cut in cuts]
        yield np.mean(parts, 0)[:, :, 0]
        own = [np.exp(s[..., cut] - s[..., cut].max(-1, keepdims=True)) for cut in cuts]
        total = sum(p.sum(-1, keepdims=True) for p in own)
        yield (sum(p @ v[:, :, cut] for p, cut in zip(own, cuts, strict=True)) / total)[:, :, 0]


def _padding_counted(inputs: dict, c: Case):
    s, v = _decode_scores(inputs, c)
    for tile in TILES:
        pad = [(0, 0), (0, 0), (0, 0), (0, -c.sizes["N"] % tile)]
        p, _ = reference.softmax(np.pad(s, pad))
        yield (p[..., : c.sizes["N"]] @ v)[:, :, 0]


DECODE = (
    BEYOND_FP16,
    Mistake("no scale", "the scores are not scaled: multiply q k by p.scale", wrong=_decoded_unscaled),
    Mistake("interleaved heads", "query head h belongs to key head h // (H // G), not h % G", wrong=_decoded_interleaved),
    Mistake("padding counts", "keys past N have a score of 0 here and so a weight: mask them with -inf", shows=_one_of(_padding_counted)),
    Mistake("no weights", "the parts are added as if each had the same weight: weigh them by their sums under a common maximum", shows=_one_of(_unweighed_parts)),
    Mistake("NaN", "NaN came in: a split without keys, or a maximum of -inf minus itself", shows=_nan),
)  # fmt: skip


def _windowed(**change):
    """Attention with another window, counted from the right one's W, or another cap."""

    def wrong(inputs: dict, c: Case) -> dict:
        options = {"window": (c.sizes["W"] + change.get("more", 0), 0), "scale": c.scalars["scale"]}
        softcap = change.get("softcap", c.scalars["softcap"])
        q, k, v = (inputs[x].astype(np.float64) for x in "qkv")
        return {"o": reference.attention(q, k, v, **options, softcap=softcap)[0]}

    return wrong


def _cap_after_mask(inputs: dict, c: Case):
    q, k, v = _for_all_heads(inputs)
    s = reference.scores(q, k, c.scalars["scale"], c.scalars["softcap"])
    s = np.where(reference.visible(*s.shape[-2:], window=(c.sizes["W"], 0)), s, -c.scalars["softcap"])
    for visited in _visited(c):
        yield reference.softmax(np.where(visited, s, -np.inf))[0] @ v


def _no_window(inputs: dict, c: Case):
    """Every key that a program visits counts, back to the start of its first row's window or of all keys."""
    q, k, v = _for_all_heads(inputs)
    s = reference.scores(q, k, c.scalars["scale"], c.scalars["softcap"])
    for visited in _visited(c):
        yield reference.softmax(np.where(visited & causal(c), s, -np.inf))[0] @ v


def _cap_before_scale(inputs: dict, c: Case) -> dict:
    q, k, v = _for_all_heads(inputs)
    s = c.scalars["scale"] * reference.scores(q, k, 1.0, c.scalars["softcap"])
    s = np.where(reference.visible(*s.shape[-2:], window=(c.sizes["W"], 0)), s, -np.inf)
    return {"o": reference.softmax(s)[0] @ v}


WINDOW = (
    Mistake("no window", "keys further back than W are seen: the mask is place - W <= key <= place", shows=_one_of(_no_window)),
    Mistake("one key less", "the window holds W keys before the query's own, W + 1 in all", wrong=_windowed(more=-1)),
    Mistake("no cap", "the scores do not pass through softcap * tanh(s / softcap)", wrong=_windowed(softcap=0.0)),
    Mistake("cap after the mask", "the cap turns a masked -inf into -softcap: cap first, then mask", shows=_one_of(_cap_after_mask)),
    Mistake("cap before the scale", "the cap works on scaled scores: multiply by p.scale first", wrong=_cap_before_scale),
    Mistake("NaN", "NaN came: a row that sees nothing of its first tile has a maximum of -inf, and -inf minus -inf is NaN", shows=_nan),
)  # fmt: skip
