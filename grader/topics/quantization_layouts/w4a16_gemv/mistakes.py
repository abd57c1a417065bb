"""List the mistakes of *w4a16 gemv*, a row each."""

import numpy as np

from grader.questions import Case
from grader.questions.families import dense, family, one_stride, same_strides, within_limit
from grader.questions.rows import edited
from grader.topics.quantization_layouts.shared_mistakes import AGAIN, CODES, would
from grader.topics.quantization_layouts.shared_mistakes_sums import SUMS, stored
from grader.topics.quantization_layouts.shared_wanted import weights
from kernels.quantization_layouts import reference

# of the kernel for one row
CUT = ") & 15  #"
VALUE = "(code | 0x4B000000).to(tl.float32, bitcast=True) - 8388616.0"
SUMMED = "acc += tl.sum(value * x[None, :, :], 2) * s.to(tl.float32)"
SCALED = "(value * s.to(tl.float32)[:, :, None])"
LOOP = "range(0, K // 8, WORDS)"
GROUP = "(four * 32 // G)[None, :] * stride_sg"
COLUMN = "four[:, None] * 32 + tl.arange(0, 32)[None, :]"
ZEROS = "acc = tl.zeros((BLOCK_N, WORDS // 4), tl.float32)"
BLOCKS = '"BLOCK_N": 8, "WORDS": 128'
GRID = "triton.cdiv(p.N, 8)"
PLAN = 'return {"steps": [step]}'


def blocks(rows: int, words: int) -> list[tuple[str, str]]:
    return [(BLOCKS, f'"BLOCK_N": {rows}, "WORDS": {words}'), (GRID, f"triton.cdiv(p.N, {rows})")]


def joined(eighth: int, quarter: int, half: int) -> list[tuple[str, str]]:
    """Shift a word by this number of bits for its fifth, third and second code. A negative number shifts the other
    way."""
    return [
        _joined("w", 16, eighth),
        _joined("code", 8, quarter),
        _joined("code", 4, half),
    ]


def _joined(name: str, right: int, by: int) -> tuple[str, str]:
    both = f"{name}, {name} >> {by}" if by > 0 else f"{name} >> {-by}, {name}"
    return f"tl.join({name}, {name} >> {right})", f"tl.join({both})"


def summed_in(dtype: str) -> list[tuple[str, str]]:
    """A sum for each row, rounded after every 128 columns."""
    part = "tl.sum(tl.sum(value * x[None, :, :], 2) * s.to(tl.float32), 1)"
    return [
        (ZEROS, "acc = tl.zeros((BLOCK_N,), tl.float32)"),
        (SUMMED, f"acc = (acc + {part}).to({dtype}).to(tl.float32)"),
        ("tl.sum(acc, 1)", "acc"),
        *blocks(16, 16),
    ]


def by_the_word(inputs: dict, case: Case) -> dict:
    """The codes of word i against x[i + j]."""
    k = np.arange(case.sizes["K"])
    return stored(reference.linear(inputs["x"][..., k // 8 + k % 8], weights(inputs, case)), case)


MISTAKES = (
    family(
        "no zero",
        "code 8 stands for 0: subtract 8 from every code",
        would(weight=lambda c, z, s: c * s),
        edits=(("8388616.0", "8388608.0"),),
    ),
    family(
        "zero of seven",
        "code 8 stands for 0, not 7",
        would(weight=lambda c, z, s: (c - 7) * s),
        edits=(("8388616.0", "8388615.0"),),
    ),
    family(
        "zero after the scale",
        "8 is a code, so subtract it before you multiply by the scale: (code - 8) * scale",
        would(weight=lambda c, z, s: c * s - 8),
        edits=(
            ("8388616.0", "8388608.0"),
            (SUMMED, f"acc += tl.sum(({SCALED} - 8) * x[None, :, :], 2)"),
        ),
    ),
    family(
        "nothing cut off",
        "the codes above are still in the word: keep only four bits, & 15",
        would(kept=0),
        edits=(
            (CUT, ")  #"),
            (VALUE, "(code - 8).to(tl.float32)"),
        ),
    ),
    family(
        "x by the word",
        "word i holds columns 8 i to 8 i + 7: its code j is multiplied by x[8 i + j], not by x[i + j]",
        by_the_word,
        edits=(
            (COLUMN, "(four[:, None] * 4 + tl.arange(0, 32)[None, :] // 8 + tl.arange(0, 32)[None, :] % 8)"),
        ),
    ),
    *CODES,
    *SUMS,
    edited(
        "a result in x's dtype",
        ("y_ptr.dtype.element_ty", "x_ptr.dtype.element_ty"),
        told_as="a result of 16 bits",
    ),
    edited(
        "scales without their sign", (SUMMED, SUMMED.replace("s.to(tl.float32)", "tl.abs(s.to(tl.float32))"))
    ),
    edited(
        "a NaN in a long row counts as 0",
        (SUMMED, "x = tl.where((x == x) | (K < 4000), x, 0.0)\n        " + SUMMED),
    ),
    edited("first code on top", *joined(-16, -8, -4), told_as="first code on top"),
    edited("bytes turned round", *joined(16, 8, -4), told_as="bytes turned round"),
    edited("evens first", *joined(4, 16, 8), told_as="evens first"),
    edited("two bits kept", (CUT, ") & 3  #"), told_as="two bits kept"),
    edited("three bits kept", (CUT, ") & 7  #"), told_as="two bits kept"),
    edited("eight bits kept", (CUT, ") & 255  #"), told_as="eight bits kept"),
    edited(
        "signed codes", (VALUE, "tl.where(code > 7, code - 16, code).to(tl.float32)"), told_as="signed codes"
    ),
    edited("no scale", (SUMMED, "acc += tl.sum(value * x[None, :, :], 2)"), told_as="no scale"),
    edited("the first scale for all", (GROUP, "(four * 0)[None, :]"), told_as="the first scale"),
    edited("groups of 128 always", ("four * 32 // G", "four * 32 // 128"), told_as="groups of one size"),
    edited(
        "scaled after the sum",
        (SUMMED, "acc += tl.sum(value * x[None, :, :], 2)"),
        (
            "tl.sum(acc, 1)",
            "(tl.sum(acc, 1) * tl.load(s_ptr + offs_n * stride_sn + (K // G - 1) * stride_sg, mask=mask_n, other=0.0))",
        ),
        told_as="scaled after the sum",
    ),
    edited("a sum in x's dtype", *summed_in("x_ptr.dtype.element_ty"), told_as="low precision"),
    edited("a sum in fp16", *summed_in("tl.float16"), told_as="low precision"),
    edited(
        "weights in fp16",
        (SUMMED, f"acc += tl.sum({SCALED}.to(tl.float16).to(tl.float32) * x[None, :, :], 2)"),
        told_as="beyond fp16",
    ),
    edited("masked lanes unset", (", other=0.0", ""), told_as="unmasked tail"),
    edited("one block of K", (LOOP, "range(0, WORDS, WORDS)"), told_as="one block of K"),
    edited("tail left out", (LOOP, "range(0, K // 8 // WORDS * WORDS, WORDS)"), told_as="tail left out"),
    edited("the last block alone", ("acc += ", "acc = "), told_as="the last block alone"),
    edited(
        "no mask along K", (" & (word // 4 < K // 32)[None, :]", ""), (" & (four < K // 32)[None, :]", "")
    ),
    edited("no mask at the store", (", mask=mask_n)", ")")),
    edited("words taken for dense", ("word[None, :] * stride_wk", "word[None, :]")),
    edited("scales taken for dense", (GROUP, "(four * 32 // G)[None, :]")),
    edited("x taken for dense", ("k * stride_xk", "k")),
    edited("y taken for dense", ("offs_n * stride_yn", "offs_n")),
    edited("N up to 4096", ("mask_n = offs_n < N", "mask_n = offs_n < tl.minimum(N, 4096)")),
    edited(
        "NaN cleaned away", ("        value = ", "        x = tl.where(x == x, x, 0.0)\n        value = ")
    ),
    edited(
        "nonsense at the size that is compiled",
        ("    tl.store(y_ptr", "    if N == 4096:\n        acc = acc * 0.5\n    tl.store(y_ptr"),
    ),
    edited("programs of two rows", *blocks(2, 64), part="traffic"),
    edited(
        "every word twice",
        (
            "        mask = mask_n[:, None] & (four",
            f"        {AGAIN}\n        mask = mask_n[:, None] & (four",
        ),
        part="traffic",
    ),
    edited("a scale for every 32 columns", *blocks(16, 4), part="traffic"),
    edited(
        "unpacked into scratch",
        ("y_ptr, N, K, G", "y_ptr, wide_ptr, N, K, G"),
        (
            SUMMED,
            f"wide = wide_ptr + offs_n[:, None, None] * K + k[None, :, :]\n        tl.store(wide, {SCALED}.to(tl.float16), mask=mask[:, :, None])\n        acc += tl.sum({SCALED} * x[None, :, :], 2)",
        ),
        (PLAN, 'return {"scratch": {"wide": ((p.N, p.K), "fp16", 0)}, "steps": [step]}'),
        part="traffic",
    ),
    edited("half a sector at a time", *blocks(16, 4), part="speed"),
    edited("few programs", *blocks(64, 16), part="speed"),
    edited(
        "one program for most rows",
        (
            "    offs_n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)\n",
            "    last = tl.num_programs(0) - 1\n    first = tl.program_id(0)\n    end = tl.where(first == last, tl.cdiv(N, BLOCK_N), first + 1)\n    for block in range(first, end):\n        of_block(w_ptr, s_ptr, x_ptr, y_ptr, N, K, G, stride_wn, stride_wk, stride_sn, stride_sg, stride_xk, stride_yn, block, BLOCK_N, WORDS)\n\n\n@triton.jit\ndef of_block(w_ptr, s_ptr, x_ptr, y_ptr, N, K, G, stride_wn, stride_wk, stride_sn, stride_sg, stride_xk, stride_yn, block, BLOCK_N: tl.constexpr, WORDS: tl.constexpr):\n    offs_n = block * BLOCK_N + tl.arange(0, BLOCK_N)\n",
        ),
        ('"grid": (triton.cdiv(p.N, 8),)', '"grid": (min(p.sm_count, triton.cdiv(p.N, 8)),)'),
        part="speed",
    ),
    edited(
        "each weight ten times",
        (
            "        acc += ",
            "        for _ in range(10):\n            value = value + 0.0 * value\n        acc += ",
        ),
        part="speed",
    ),
    edited("more than registers hold", *blocks(32, 128), part="compiled"),
)


SHORTCUTS = {
    **{
        f"{axis} up to {most}": within_limit(axis, most)
        for axis, most in (("N", 64), ("N", 1024), ("N", 4096), ("K", 1024), ("K", 4096), ("K", 8192))
    },
    **{f"stride {axis} of {name} taken for 1": one_stride(name, axis) for name in "ws" for axis in (0, 1)},
    "the stride of x taken for 1": one_stride("x", 0),
    "the stride of y taken for 1": one_stride("y", 0),
    "words taken for dense": dense("w"),
    "scales taken for dense": dense("s"),
    "the strides of the words for the scales": same_strides("w", "s"),
    "the stride of x for y": same_strides("x", "y"),
}
