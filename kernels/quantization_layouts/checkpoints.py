"""Read 4-bit checkpoints into codes, in two layouts on disk: GPTQ's along K, AWQ's interleaved along N.

Both keep eight codes in an int32 and scales (K / group, N). GPTQ packs eight neighbours along K and stores a zero
point less one (0 as 15). AWQ packs eight neighbours along N in the order 0 2 4 6 1 3 5 7 and stores zero points as
they are.
"""

import numpy as np

from kernels.quantization_layouts.reference import GROUPS, Int4

PER_WORD = 8
GPTQ_ORDER = np.arange(PER_WORD)
AWQ_ORDER = np.array((0, 2, 4, 6, 1, 3, 5, 7))  # nibble i of a word holds this column of its eight
ORDERS = ("gptq", "awq")


def packed_words(codes: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Eight codes along the last axis to one int32."""
    eights = codes.reshape(*codes.shape[:-1], -1, PER_WORD)[..., order].astype(np.uint32)
    return (eights << (4 * np.arange(PER_WORD, dtype=np.uint32))).sum(-1, dtype=np.uint32).view(np.int32)


def codes_of(words: np.ndarray, order: np.ndarray) -> np.ndarray:
    """The codes again, eight for each word along the last axis."""
    nibbles = words.view(np.uint32)[..., None] >> (4 * np.arange(PER_WORD, dtype=np.uint32)) & 15
    codes = np.empty(nibbles.shape, np.uint8)
    codes[..., order] = nibbles
    return codes.reshape(*words.shape[:-1], -1)


def write(q: Int4, order: str) -> dict[str, np.ndarray]:
    """qweight, qzeros and scales as a checkpoint has them."""
    zeros = np.full(q.scales.shape, 8, np.uint8) if q.zeros is None else q.zeros
    scales = np.ascontiguousarray(q.scales.T)
    if order == "gptq":
        qweight = np.ascontiguousarray(packed_words(q.codes, GPTQ_ORDER).T)
        return {"qweight": qweight, "qzeros": packed_words(zeros.T - 1 & 15, GPTQ_ORDER), "scales": scales}
    known(order)
    return {
        "qweight": packed_words(q.codes.T, AWQ_ORDER),
        "qzeros": packed_words(zeros.T, AWQ_ORDER),
        "scales": scales,
    }


def read(qweight, qzeros, scales, group: int, order: str, g_idx=None) -> Int4:
    """A checkpoint's tensors as codes, scales and zero points, W being (N, K)."""
    known(order)
    if scales.ndim != 2:
        raise ValueError(f"scales must be (K / group, N), got {scales.shape}; pass them as stored")
    if group not in GROUPS:
        raise ValueError(f"group must be one of {', '.join(map(str, GROUPS))}, got {group}; see its config")
    groups, n = scales.shape
    k = groups * group
    shapes = {"gptq": (k // PER_WORD, n), "awq": (k, n // PER_WORD)}
    _check_words("qweight", qweight, shapes, order, f"{n} outputs, {k} inputs and groups of {group}")
    _check_words("qzeros", qzeros, dict.fromkeys(ORDERS, (groups, n // PER_WORD)), order, "these scales")
    if g_idx is not None and (np.asarray(g_idx) != np.arange(k) // group).any():
        raise ValueError(
            "g_idx must be one group after the other, got columns in the order of their activations; "
            "export the checkpoint without desc_act, or permute the inputs first"
        )
    if order == "gptq":
        codes = codes_of(np.ascontiguousarray(qweight.T), GPTQ_ORDER)
        zeros = codes_of(qzeros, GPTQ_ORDER).T + 1 & 15
    else:
        codes = codes_of(qweight, AWQ_ORDER).T
        zeros = codes_of(qzeros, AWQ_ORDER).T
    return Int4(
        np.ascontiguousarray(codes), np.ascontiguousarray(scales.T), np.ascontiguousarray(zeros), group
    )


def known(order: str) -> None:
    if order not in ORDERS:
        raise ValueError(f"order must be one of {', '.join(ORDERS)}, got {order!r}; pick a listed one")


def _check_words(name: str, words, shapes: dict, order: str, what: str) -> None:
    if words.dtype != np.int32:
        raise ValueError(f"{name} must be int32, got {words.dtype}; view the packed words so")
    if words.shape == shapes[order]:
        return
    other = next(o for o in ORDERS if o != order)
    advice = (
        f"it is packed as {other} does: read it so" if words.shape == shapes[other] else "check the group"
    )
    raise ValueError(
        f"{name} must be {shapes[order]} in {order} order for {what}, got {tuple(words.shape)}; {advice}"
    )
