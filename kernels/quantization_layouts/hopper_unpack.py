"""From words in shared memory to the left operand of a Hopper product, in registers; the layout is packed.py's.

A word holds eight codes of one lane: rows r and r + 8, two runs of columns 8 apart, two neighbours each. That is what a
lane holds of a 16 x 16 piece of wgmma's left operand, so unpacking only ever looks at a lane's own words. It is written
in the machine's terms because every instruction counts: four words of two numbers cost four OR-ed masks, three shifts,
four subtractions and, where weights are scaled rather than sums, four products.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

STEP = gl.constexpr(128)  # columns of W at a time
BRICKS = gl.constexpr(4)  # of 16 rows, one for each warp of a warpgroup
VECTORS = gl.constexpr(2)  # of 16 bytes, that each lane has of them
WORDS = gl.constexpr(256)  # of a brick of 16 rows in a step

_UNPACK = """{
.reg .b32 t;
lop3.b32 $0, $4, 0x000F000F, $9, 0xEA;
shr.u32 t, $4, 4;
lop3.b32 $1, t, 0x000F000F, $9, 0xEA;
shr.u32 t, $4, 8;
lop3.b32 $2, t, 0x000F000F, $9, 0xEA;
shr.u32 t, $4, 12;
lop3.b32 $3, t, 0x000F000F, $9, 0xEA;
sub.%(pair)s $0, $0, $5;
sub.%(pair)s $1, $1, $5;
sub.%(pair)s $2, $2, $6;
sub.%(pair)s $3, $3, $6;
%(more)s
}"""
_SCALE = "mul.%(pair)s $0, $0, $7; mul.%(pair)s $1, $1, $7; mul.%(pair)s $2, $2, $8; mul.%(pair)s $3, $3, $8;"


@gluon.constexpr_function
def _assembly(dtype, LATE):
    pair = "f16x2" if dtype == gl.float16 else "bf16x2"
    return _UNPACK % {"pair": pair, "more": "" if LATE else _SCALE % {"pair": pair}}


@gluon.constexpr_function
def words_layout():
    """(4, 256), a brick for each warp: a lane has four words in a row, and four more 128 words on."""
    lanes = [[0, 4], [0, 8], [0, 16], [0, 32], [0, 64]]
    return gl.DistributedLinearLayout([[0, 1], [0, 2], [0, 128]], lanes, [[1, 0], [2, 0]], [], [4, 256])


@gluon.constexpr_function
def rows_layout(PARTS):
    """(4, parts x 16) scales or zero points: each lane has those of its rows r and r + 8."""
    lanes = [[0, 0], [0, 0], [0, 1], [0, 2], [0, 4]]
    parts = [[0, 16 << i] for i in range(PARTS.bit_length() - 1)]
    return gl.DistributedLinearLayout([[0, 8], *parts], lanes, [[1, 0], [2, 0]], [], [4, 16 * PARTS])


@gluon.constexpr_function
def _beside(layout):
    """Of (brick, vector, its share, row, pair, word, its share) what has one number for all of a share or pair."""
    return gl.SliceLayout(2, gl.SliceLayout(4, gl.SliceLayout(6, layout)))


@gluon.jit
def _of_rows(pairs, LAYOUT: gl.constexpr, PV: gl.constexpr, PW: gl.constexpr):
    """(bricks, parts x 16) -> of rows r and of rows r + 8, each beside the words that it is for."""
    both = pairs.reshape([pairs.shape[0], PV, PW, 2, 8]).permute(0, 1, 4, 2, 3)
    first, second = both.split()
    first = gl.convert_layout(first, _beside(LAYOUT), assert_trivial=True)
    second = gl.convert_layout(second, _beside(LAYOUT), assert_trivial=True)
    first = gl.expand_dims(gl.expand_dims(gl.expand_dims(first, 2), 4), 6)
    second = gl.expand_dims(gl.expand_dims(gl.expand_dims(second, 2), 4), 6)
    return first, second


@gluon.jit
def _twice(half):
    """16 bits in both halves of 32."""
    bits = half.to(gl.int16, bitcast=True).to(gl.int32) & 0xFFFF
    return bits | (bits << 16)


@gluon.jit
def unpack(words, scale, zero, filled, dtype: gl.constexpr, LATE: gl.constexpr, HAS_ZEROS: gl.constexpr):
    """Words (bricks, 256) -> four words of two weights for each, by row / 8 and k / 8; scaled, unless sums are later."""
    B: gl.constexpr = words.shape[0]
    PARTS: gl.constexpr = scale.shape[1] // 16
    PV: gl.constexpr = min(PARTS, VECTORS)
    PW: gl.constexpr = PARTS // PV
    words = words.reshape([B, PV, VECTORS // PV, 8, 4, PW, 4 // PW])
    LAYOUT: gl.constexpr = words.type.layout
    s0, s1 = filled, filled
    if not LATE:
        s0, s1 = _of_rows(_twice(scale), LAYOUT, PV, PW)
    m0, m1 = filled | 0x00080008, filled | 0x00080008
    if HAS_ZEROS:
        z = zero.to(gl.int32)
        m0, m1 = _of_rows(z | (z << 16) | filled, LAYOUT, PV, PW)
    return gl.inline_asm_elementwise(
        _assembly(dtype, LATE),
        "=&r,=&r,=&r,=&r,r,r,r,r,r,r",
        [words, m0, m1, s0, s1, filled],
        dtype=(gl.int32, gl.int32, gl.int32, gl.int32),
        is_pure=True,
        pack=1,
    )


@gluon.jit
def operand(p0, p1, p2, p3, dtype: gl.constexpr, ACC: gl.constexpr):
    """Those words as (rows, 128) of the left operand: registers only change their names."""
    B: gl.constexpr = p0.shape[0]
    pairs = gl.join(gl.join(p0, p1), gl.join(p2, p3))  # .., k / 8, row / 8
    low = pairs.to(gl.int16).to(dtype, bitcast=True)
    high = (pairs >> 16).to(gl.int16).to(dtype, bitcast=True)
    w = gl.join(low, high).reshape([B, VECTORS, 8, 4, 4, 2, 2, 2])  # brick, vector, row, pair, word, ..
    w = w.permute(0, 6, 2, 1, 4, 5, 3, 7).reshape([16 * B, STEP])
    return gl.convert_layout(w, gl.DotOperandLayout(0, ACC, 2), assert_trivial=True)


@gluon.jit
def scaled(acc, part, scale, ACC: gl.constexpr):
    """acc + part times each row's scale, in fp32."""
    rows = scale.to(gl.float32).reshape([scale.shape[0] * 16])
    rows = gl.convert_layout(rows, gl.SliceLayout(1, ACC), assert_trivial=True)
    return acc + part * rows[:, None]
