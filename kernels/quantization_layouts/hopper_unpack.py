"""Turn words in shared memory into the left operand of a Hopper matmul, in registers. The layout is packed.py's.

A word holds eight codes of one lane: rows r and r + 8, two runs of columns 8 apart, two neighbours each. A lane holds
exactly these of a 16 x 16 piece of wgmma's left operand, so unpacking only ever looks at a lane's own words. It is
written in the machine's terms because every instruction counts. Four words of two numbers cost four OR-ed masks,
three shifts, four subtractions and, where weights are scaled rather than sums, four products. A codebook of four bits
is looked up as in unpack.py, with one choice for all eight codes.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

STEP = gl.constexpr(128)  # columns of W at a time
BRICKS = gl.constexpr(4)  # of 16 rows, one for each warp of a warpgroup
VECTORS = gl.constexpr(2)  # of 16 bytes, each lane's share
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
_LOOK_UP = """{
.reg .b32 c, t, a, b, l, h;
and.b32 c, $4, 0x77777777;
shr.u32 t, $4, 1;
lop3.b32 t, t, 0x44444444, $7, 0xEA;
%(two)s
shr.u32 c, c, 16;
shr.u32 t, t, 16;
%(more_two)s
%(more)s
}"""
_TWO = """prmt.b32 a, $8, $9, c;
prmt.b32 b, $10, $11, c;
prmt.b32 l, a, b, t;
prmt.b32 a, $12, $13, c;
prmt.b32 b, $14, $15, c;
prmt.b32 h, a, b, t;
prmt.b32 %s, l, h, 0x5140;
prmt.b32 %s, l, h, 0x7362;"""
_FP4 = """{
.reg .b32 t;
and.b32 $0, $4, 0x81C081C0;
shl.b32 t, $4, 3;
and.b32 $1, t, 0x81C081C0;
shl.b32 t, $4, 6;
and.b32 $2, t, 0x81C081C0;
shr.u32 t, $4, 6;
and.b32 $3, t, 0x01800180;
shr.u32 t, $4, 5;
lop3.b32 $3, t, 0x00400040, $3, 0xEA;
shl.b32 t, $4, 5;
lop3.b32 $3, t, 0x80008000, $3, 0xEA;
%s
}"""
_INT8 = """{
.reg .b32 t, s;
%s
%s
}"""
_BYTES = """lop3.b32 %(first)s, %(word)s, 0x007F007F, $6, 0xEA;
lop3.b32 s, %(word)s, 0x00800080, $6, 0xEA;
sub.%(pair)s %(first)s, %(first)s, s;
shr.u32 t, %(word)s, 8;
lop3.b32 %(second)s, t, 0x007F007F, $6, 0xEA;
lop3.b32 s, t, 0x00800080, $6, 0xEA;
sub.%(pair)s %(second)s, %(second)s, s;"""
_SCALE = """mul.%(pair)s $0, $0, %(first)s;
mul.%(pair)s $1, $1, %(first)s;
mul.%(pair)s $2, $2, %(second)s;
mul.%(pair)s $3, $3, %(second)s;"""


@gluon.constexpr_function
def _assembly(dtype, LATE):
    pair = "f16x2" if dtype == gl.float16 else "bf16x2"
    scaled = "" if LATE else _SCALE % {"pair": pair, "first": "$7", "second": "$8"}
    return _UNPACK % {"pair": pair, "more": scaled}


@gluon.constexpr_function
def _look_up(dtype, LATE):
    pair = "f16x2" if dtype == gl.float16 else "bf16x2"
    scaled = "" if LATE else _SCALE % {"pair": pair, "first": "$5", "second": "$6"}
    return _LOOK_UP % {"two": _TWO % ("$0", "$1"), "more_two": _TWO % ("$2", "$3"), "more": scaled}


@gluon.constexpr_function
def _fp4():
    return _FP4 % (_SCALE % {"pair": "bf16x2", "first": "$5", "second": "$6"})


@gluon.constexpr_function
def _int8(dtype):
    pair = "bf16x2" if str(dtype) == "bf16" else "f16x2"
    rows = (("$4", "$0", "$1"), ("$5", "$2", "$3"))
    return _INT8 % tuple(
        _BYTES % {"word": word, "first": first, "second": second, "pair": pair}
        for word, first, second in rows
    )


@gluon.constexpr_function
def words_layout():
    """Lay out words as (4, 256), a brick for each warp. A lane has four words in a row, and four more 128 words on."""
    lanes = [[0, 4], [0, 8], [0, 16], [0, 32], [0, 64]]
    return gl.DistributedLinearLayout([[0, 1], [0, 2], [0, 128]], lanes, [[1, 0], [2, 0]], [], [4, 256])


@gluon.constexpr_function
def rows_layout(PARTS):
    """Lay out scales or zero points as (4, parts x 16). Each lane has those of its rows r and r + 8."""
    lanes = [[0, 0], [0, 0], [0, 1], [0, 2], [0, 4]]
    parts = [[0, 16 << i] for i in range(PARTS.bit_length() - 1)]
    return gl.DistributedLinearLayout([[0, 8], *parts], lanes, [[1, 0], [2, 0]], [], [4, 16 * PARTS])


@gluon.constexpr_function
def _beside(layout):
    """Of (brick, vector, its share, row, pair, word, its share) what has one number for all of a share or pair."""
    return gl.SliceLayout(2, gl.SliceLayout(4, gl.SliceLayout(6, layout)))


@gluon.jit
def _of_rows(pairs, LAYOUT: gl.constexpr, PV: gl.constexpr, PW: gl.constexpr):
    """Turn (bricks, parts x 16) into rows r and rows r + 8, each aligned with its words."""
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
def _by_parts(words, PARTS: gl.constexpr):
    """Words (bricks, 256) as (brick, vector, its share, row, pair, word, its share)."""
    PV: gl.constexpr = min(PARTS, VECTORS)
    PW: gl.constexpr = PARTS // PV
    return words.reshape([words.shape[0], PV, VECTORS // PV, 8, 4, PW, 4 // PW])


@gluon.constexpr_function
def _of_lanes(layout):
    """Of those axes the rows alone."""
    for axis in (6, 5, 4, 2, 1, 0):
        layout = gl.SliceLayout(axis, layout)
    return layout


@gluon.jit
def book_of(book_ptr, PARTS: gl.constexpr):
    """Return sixteen levels in registers, aligned with the words: four words of low bytes, then four of high ones.

    Each lane reads a copy of its own, so that no word ends in a uniform register.
    """
    like = _by_parts(gl.full([BRICKS, WORDS], 0, gl.int32, words_layout()), PARTS)
    at = book_ptr + gl.arange(0, 8, _of_lanes(like.type.layout))
    book = ()
    for i in gl.static_range(8):
        word = gl.load(at + i * 32)
        for axis in gl.static_range(7):
            if axis != 3:
                word = gl.expand_dims(word, axis)
        book += (word,)
    return book


@gluon.jit
def unpack(
    words, scale, zero, filled, book, dtype: gl.constexpr, LATE: gl.constexpr, HAS_ZEROS: gl.constexpr
):
    """Turn words (bricks, 256) into four words of two weights each, by row / 8 and k / 8, scaled unless sums are
    scaled later."""
    PARTS: gl.constexpr = scale.shape[1] // 16
    PV: gl.constexpr = min(PARTS, VECTORS)
    PW: gl.constexpr = PARTS // PV
    words = _by_parts(words, PARTS)
    LAYOUT: gl.constexpr = words.type.layout
    s0, s1 = filled, filled
    if not LATE:
        s0, s1 = _of_rows(_twice(scale), LAYOUT, PV, PW)
    if len(book) == 1:  # of FP4, see packed.FP4_BITS
        return gl.inline_asm_elementwise(
            _fp4(),
            "=&r,=&r,=&r,=&r,r,r,r",
            [words, s0, s1],
            dtype=(gl.int32, gl.int32, gl.int32, gl.int32),
            is_pure=True,
            pack=1,
        )
    if len(book) > 1:
        b0, b1, b2, b3, b4, b5, b6, b7 = book
        return gl.inline_asm_elementwise(
            _look_up(dtype, LATE),
            "=&r,=&r,=&r,=&r,r,r,r,r,r,r,r,r,r,r,r,r",
            [words, s0, s1, filled, b0, b1, b2, b3, b4, b5, b6, b7],
            dtype=(gl.int32, gl.int32, gl.int32, gl.int32),
            is_pure=True,
            pack=1,
        )
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
def unpack_int8(words, filled, dtype: gl.constexpr):
    """Turn words (bricks, 256) of int8 into the same four, unscaled. Seven bits go after a one, and the eighth, which
    counts -128, into what is subtracted."""
    first, second = words.reshape([words.shape[0], words.shape[1] // 2, 2]).split()
    return gl.inline_asm_elementwise(
        _int8(dtype),
        "=&r,=&r,=&r,=&r,r,r,r",
        [first, second, filled],
        dtype=(gl.int32, gl.int32, gl.int32, gl.int32),
        is_pure=True,
        pack=1,
    )


@gluon.jit
def operand(p0, p1, p2, p3, dtype: gl.constexpr, ACC: gl.constexpr):
    """Return the same words as (rows, 128) of the left operand, or (rows, 64) of int8. Registers only change their
    names."""
    B: gl.constexpr = p0.shape[0]
    EACH: gl.constexpr = 4 if len(p0.shape) == 7 else 2  # of 16 columns, in a vector
    pairs = gl.join(gl.join(p0, p1), gl.join(p2, p3))  # .., k / 8, row / 8
    low = pairs.to(gl.int16).to(dtype, bitcast=True)
    high = (pairs >> 16).to(gl.int16).to(dtype, bitcast=True)
    w = gl.join(low, high).reshape([B, VECTORS, 8, 4, EACH, 2, 2, 2])  # brick, vector, row, pair, word, ..
    w = w.permute(0, 6, 2, 1, 4, 5, 3, 7).reshape([16 * B, VECTORS * EACH * 16])
    return gl.convert_layout(w, gl.DotOperandLayout(0, ACC, 2), assert_trivial=True)


@gluon.jit
def scaled(acc, part, scale, ACC: gl.constexpr):
    """acc + part times each row's scale, in fp32."""
    rows = scale.to(gl.float32).reshape([scale.shape[0] * 16])
    rows = gl.convert_layout(rows, gl.SliceLayout(1, ACC), assert_trivial=True)
    return acc + part * rows[:, None]
