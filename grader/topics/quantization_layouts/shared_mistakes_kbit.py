"""Share mistakes among the k-bit questions."""

from collections.abc import Callable

import numpy as np

from grader.questions import Case
from grader.questions.families import dense, family, one_stride, same_strides, within_limit
from grader.questions.rows import changed
from grader.topics.quantization_layouts.shared_mistakes_sums import stored
from grader.topics.quantization_layouts.shared_wanted import BLOCK, kbit, product
from kernels.quantization_layouts import reference

BIT = "((plane[:, :, None] >> column[None, None, :]) & 1) << b"
LEVEL = "level = tl.load(c_ptr + code * stride_cl)"
NUMBER = "number = level.to(tl.float32) * s.to(tl.float32)[:, :, None]"
OF_BLOCK = "word[None, :] * stride_sg"
DOT = "acc = tl.dot(weight, x, acc)"


DOT_IN_FP32 = 'acc = tl.dot(weight.to(tl.float32), x.to(tl.float32), acc, input_precision="ieee")'


LOOP = "range(0, K, BLOCK_K)"
PLANES = "tl.static_range(BITS)"
LAST_SCALE = "tl.load(s_ptr + offs_n * stride_sn + (K // 32 - 1) * stride_sg, mask=mask_n, other=0.0)"


def tile(rows: int, words: int) -> list[tuple[str, str]]:
    return [
        ('"BLOCK_N": 32, "WORDS": 8', f'"BLOCK_N": {rows}, "WORDS": {words}'),
        ("triton.cdiv(p.N, 32)", f"triton.cdiv(p.N, {rows})"),
    ]


def of_codes(last_scale: str, y: str, compiled_n: int) -> dict:
    """Return rows of edits for both kernels. `y` is the indentation of the line that makes the pointers of Y, one
    level more in a loop along K."""
    turn = y + "    "
    return {
        "planes turned round": changed(
            (BIT, BIT.replace("<< b", "<< (BITS - 1 - b)")), mistake="planes turned round"
        ),
        "first column on top": changed((">> column", ">> (31 - column)"), mistake="first column on top"),
        "the top plane left out": changed(
            (PLANES, "tl.static_range(BITS - 1)"), mistake="the top plane left out"
        ),
        "codes for levels": changed((LEVEL, "level = code"), mistake="bare codes"),
        "codes around their middle": changed(
            (LEVEL, "level = code - (1 << (BITS - 1))"), mistake="bare codes"
        ),
        "levels evenly spread": changed(
            (
                LEVEL,
                "level = tl.load(c_ptr).to(tl.float32) + code * (tl.load(c_ptr + ((1 << BITS) - 1) * stride_cl).to(tl.float32) - tl.load(c_ptr).to(tl.float32)) / ((1 << BITS) - 1)",
            ),
            mistake="levels evenly spread",
        ),
        "no scale": changed((NUMBER, "number = level.to(tl.float32)"), mistake="no scale"),
        "the first scale for all": changed((OF_BLOCK, "word[None, :] * 0"), mistake="the first scale"),
        "a scale for 64 columns": changed(
            (OF_BLOCK, "(word // 2)[None, :] * stride_sg"), mistake="blocks of another size"
        ),
        "scaled after the sum": changed(
            (NUMBER, "number = level.to(tl.float32)"),
            (
                f"{y}y = y_ptr",
                f"{y}acc *= {last_scale}.to(tl.float32)[:, None]\n{y}y = y_ptr",
            ),
            mistake="scaled after the sum",
        ),
        "a sum in x's dtype": changed(
            (DOT, "acc = (acc + tl.dot(weight, x)).to(dtype).to(tl.float32)"), mistake="low precision"
        ),
        "a sum in fp16": changed(
            (DOT, "acc = (acc + tl.dot(weight, x)).to(tl.float16).to(tl.float32)"), mistake="low precision"
        ),
        "weights in fp16": changed(
            ("number.to(dtype)", "number.to(tl.float16).to(dtype)"), mistake="beyond fp16"
        ),
        "masked lanes unset": changed((", other=0.0", ""), mistake="unmasked tail"),
        "one block of K": changed((LOOP, "range(0, BLOCK_K, BLOCK_K)"), mistake="one block of K"),
        "tail left out": changed(
            (LOOP, "range(0, K // BLOCK_K * BLOCK_K, BLOCK_K)"), mistake="tail left out"
        ),
        "the last block alone": changed((DOT, "acc = tl.dot(weight, x)"), mistake="the last block alone"),
        "nothing cut off": changed((BIT, BIT.replace(" & 1)", ")"))),
        "four planes always": changed((PLANES, "tl.static_range(4)")),
        "levels taken for dense": changed(("code * stride_cl", "code")),
        "no mask along K": changed((" & (word < K // 32)[None, :]", "")),
        "no mask at the store": changed(("mask=mask_m[None, :] & mask_n[:, None])", "mask=mask_m[None, :])")),
        "X's strides swapped": changed(
            (
                "offs_m[None, :] * stride_xm + offs_k[:, None] * stride_xk",
                "offs_m[None, :] * stride_xk + offs_k[:, None] * stride_xm",
            )
        ),
        "Y taken for dense": changed(("offs_n[:, None] * stride_yn", "offs_n[:, None]")),
        "nonsense at the size that is compiled": changed(
            (f"{y}y = y_ptr", f"{y}if N == {compiled_n}:\n{y}    acc = acc * 0.5\n{y}y = y_ptr")
        ),
        "each weight twelve times": changed(
            (
                f"{turn}weight = ",
                f"{turn}for _ in range(12):\n{turn}    number = number + 0.0 * number\n{turn}weight = ",
            ),
            part="flow",
        ),
        "a dot that never runs": changed(
            (DOT, f"if K < 0:\n{turn}    {DOT}\n{turn}{DOT_IN_FP32}"), part="flow"
        ),
        "more than registers hold": changed(*tile(128, 8), part="compiled"),
        "tiles of sixteen rows of W": changed(*tile(16, 8), part="traffic"),
        "half a sector at a time": changed(*tile(32, 4), part="flow"),
        "few programs": changed(*tile(256, 8), ('"num_warps": 4', '"num_warps": 16'), part="flow"),
        "products without tensor cores": changed((DOT, DOT_IN_FP32), part="flow"),
    }


COLUMNS = np.arange(BLOCK)


def codes_by(w: np.ndarray, columns: np.ndarray = COLUMNS, of_planes: Callable = range) -> np.ndarray:
    """Assemble codes wrongly: bit `columns[i]` for column i, plane `of_planes(bits)[b]` for bit b."""
    each = w.astype(np.int64)[..., None] >> columns & 1  # (.., bits, N, words, 32)
    bits = w.shape[-3]
    found = sum(each[..., plane, :, :, :] << b for b, plane in enumerate(of_planes(bits)))
    return found.reshape(*w.shape[:-3], w.shape[-2], BLOCK * w.shape[-1])


def scales_of(inputs: dict) -> np.ndarray:
    return inputs["scales" if "scales" in inputs else "s"].astype(np.float64)


def would(
    columns: np.ndarray = COLUMNS,
    of_planes: Callable = range,
    level: Callable = lambda code, levels: levels[code],
    scales: Callable = lambda s: s,
    of_expert: Callable = lambda w: w,
    along: Callable = lambda s: reference.along_k(s, BLOCK),
    code: Callable = lambda code: code,
) -> Callable:
    """The right layer with one of its steps exchanged."""

    def wrong(inputs: dict, case: Case) -> dict:
        found = (
            inputs["codes"].astype(np.int64)
            if "codes" in inputs
            else codes_by(inputs["w"], columns, of_planes)
        )
        w = level(code(found), inputs["c"].astype(np.float64)) * along(scales(scales_of(inputs)))
        return stored(product(inputs, of_expert(w)), case)

    return wrong


def evenly(code: np.ndarray, levels: np.ndarray) -> np.ndarray:
    return levels[0] + code * (levels[-1] - levels[0]) / (len(levels) - 1)


def centred(code: np.ndarray, levels: np.ndarray) -> np.ndarray:
    return code - len(levels) / 2


def blocks_of(size: int) -> Callable:
    """Take scales as if each served this number of columns."""

    def along(s: np.ndarray) -> np.ndarray:
        at = np.minimum(np.arange(BLOCK * s.shape[-1]) // size, s.shape[-1] - 1)
        return s[..., at]

    return would(along=along)


def scaled_after(which: int) -> Callable:
    """Sum levels along K, then apply one scale of the row to all of them."""

    def wrong(inputs: dict, case: Case) -> dict:
        bare = inputs["c"].astype(np.float64)[kbit(inputs).codes]
        s = scales_of(inputs)[..., which, None]
        return stored(product(inputs, bare * np.broadcast_to(s, bare.shape)), case)

    return wrong


CODES = (
    family(
        "planes turned round",
        "plane 0 holds the lowest bit of every code: shift the bit from plane b up by b",
        would(of_planes=lambda bits: range(bits)[::-1]),
    ),
    family(
        "first column on top",
        "the first of 32 columns is in the lowest bit of its words: shift by the column, not by 31 minus the column",
        would(columns=COLUMNS[::-1]),
    ),
    family(
        "the top plane left out",
        "a code has BITS bits, one from each plane: here the last plane is left out",
        would(of_planes=lambda bits: range(bits - 1)),
    ),
    family(
        "bare codes",
        "these are the codes themselves: a code is an index into the codebook, so load c[code]",
        would(level=lambda code, levels: code),
        would(level=centred),
    ),
    family(
        "levels evenly spread",
        "the levels of a codebook need not be evenly spaced: look each code up",
        would(level=evenly),
    ),
    family(
        "no scale",
        "these are the bare levels: multiply each by the scale of its block",
        would(scales=np.ones_like),
    ),
    family(
        "the first scale",
        "every 32 columns have their own scale: this uses a row's first scale for all columns",
        would(scales=lambda s: np.broadcast_to(s[..., :1], s.shape)),
    ),
    family(
        "blocks of another size",
        "a scale serves 32 columns, as many as a word of a plane: column k has scale k // 32",
        *map(blocks_of, (16, 64, 128)),
    ),
    family(
        "scaled after the sum",
        "the scales change along K: scale each block's part before it is added",
        scaled_after(-1),
        scaled_after(0),
    ),
)


def limits(**of: tuple[int, ...]) -> dict:
    return {f"{axis} up to {n}": within_limit(axis, n) for axis, most in of.items() for n in most}


def strides(names: str, pairs: tuple[str, ...]) -> dict:
    """Strides taken for 1, tensors taken for dense, and one tensor's strides for another's."""
    return {
        **{
            f"stride {axis} of {name} taken for 1": one_stride(name, axis)
            for name in names
            for axis in (0, 1)
        },
        **{f"{name} taken for dense": dense(name) for name in names},
        **{f"the strides of {a} for {b}": same_strides(a, b) for a, b in pairs},
    }
