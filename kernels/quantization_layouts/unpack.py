"""Turn words into 16-bit numbers in registers, the part that all kernels share. The layout is packed.py's.

Four-bit integers: two nibbles of a word are OR-ed into the mantissas of two halves together (1024 + code in fp16, 128
+ code in bf16, both exact), and one subtraction brings zero back to zero, about one instruction a weight. Codebooks:
`byte_perm` looks four nibbles up in eight bytes, so a table of eight levels costs two look-ups (low bytes, high
bytes) and two interleavings for four weights. In longer tables the next bit of the code chooses the byte.
"""

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def rows_of(expert, offsets_ptr, M, RAGGED: tl.constexpr):
    """Return where an expert's rows of X begin and end."""
    first, last = expert * M, expert * M + M
    if RAGGED:
        first = tl.load(offsets_ptr + expert).to(tl.int64)
        last = tl.load(offsets_ptr + expert + 1).to(tl.int64)
    return first, last


@triton.jit
def words_of(
    at_ptr,
    brick,
    column,
    columns,
    stride_b,
    stride_w,
    step,
    B: tl.constexpr,
    W: tl.constexpr,
    RUN: tl.constexpr,
    FIELD: tl.constexpr,
    EVEN: tl.constexpr,
    POLICY: tl.constexpr,
):
    """(B, W, 32, words) of one field for RUN columns at B x W positions. A lane takes 16 bytes at a time, or all it
    needs.

    From one position of B to the next there are `stride_b` bricks of rows, and along W `stride_w` bricks or `step`
    columns.
    """
    SPAN: tl.constexpr = 256 // FIELD
    V: tl.constexpr = max(1, RUN // SPAN)
    WORDS: tl.constexpr = min(4, 4 * RUN // SPAN)
    place = tl.arange(
        0, B * V * W * 32
    )  # one axis, so that warps and lanes can only be dealt out in this order
    lane = place % 32
    w = place // 32 % W
    v = place // (32 * W) % V
    b = place // (32 * W * V)
    word = tl.arange(0, WORDS)
    across = tl.cdiv(columns, SPAN)
    vector = column // SPAN + v + w * (step // SPAN)
    offs = ((brick + b * stride_b + w * stride_w) * across + vector) * 128 + lane * 4
    if WORDS < 4:
        offs += column // RUN % (SPAN // RUN) * WORDS  # a multiple of WORDS, as the compiler must see
    offs = offs[:, None] + word[None, :]
    if EVEN:
        words = tl.load(at_ptr + offs, eviction_policy=POLICY)  # (B V W 32, WORDS)
    else:
        mask = ((vector < across)[:, None]) & (word >= 0)[None, :]
        words = tl.load(at_ptr + offs, mask=mask, other=0, eviction_policy=POLICY)
    words = tl.permute(tl.reshape(words, (B, V, W, 32, WORDS)), 0, 2, 3, 1, 4)
    return tl.reshape(words, (B, W, 32, WORDS * V))


@triton.jit
def nibbles(words, FIELD: tl.constexpr):
    """Return words of eight nibbles. A field of two bits gives two a word, one bit gives four."""
    B: tl.constexpr = words.shape[0]
    W: tl.constexpr = words.shape[1]
    COUNT: tl.constexpr = words.shape[3] * (4 // FIELD)
    found = words
    if FIELD == 2:
        found = tl.join(words & 0x33333333, (words >> 2) & 0x33333333)
    elif FIELD == 1:
        low = tl.join(words & 0x11111111, (words >> 2) & 0x11111111)
        high = tl.join((words >> 1) & 0x11111111, (words >> 3) & 0x11111111)
        found = tl.join(low, high)
    return tl.reshape(found, (B, W, 32, COUNT))


@triton.jit
def book_of(book_ptr, BITS: tl.constexpr):
    """The codebook's low bytes and its high bytes in registers, four a word."""
    COUNT: tl.constexpr = 2**BITS // 4
    low = _table(book_ptr, COUNT)
    high = _table(book_ptr + COUNT * 32, COUNT)
    return low, high


@triton.jit
def _table(at_ptr, COUNT: tl.constexpr):
    """Return eight words, (1, 1, 32, 1) each. Missing ones are never read, and cost nothing.

    Each lane reads a copy of its own. A word that is known to be the same for all would land in a uniform register,
    and every look-up would first move it back.
    """
    at_ptr += tl.arange(0, 32)[None, None, :, None]
    a = tl.load(at_ptr)
    b = tl.load(at_ptr + 1 % COUNT * 32)
    c = tl.load(at_ptr + 2 % COUNT * 32)
    d = tl.load(at_ptr + 3 % COUNT * 32)
    e = tl.load(at_ptr + 4 % COUNT * 32)
    f = tl.load(at_ptr + 5 % COUNT * 32)
    g = tl.load(at_ptr + 6 % COUNT * 32)
    h = tl.load(at_ptr + 7 % COUNT * 32)
    return a, b, c, d, e, f, g, h


@triton.jit
def _bytes(table, code, third, fourth, BITS: tl.constexpr):
    """Return four bytes of a table by the four low nibbles of `code`. `third` and `fourth` choose between its eights."""
    found = libdevice.byte_perm(table[0], table[1], code)
    if BITS >= 4:
        found = libdevice.byte_perm(found, libdevice.byte_perm(table[2], table[3], code), third)
    if BITS == 5:
        more = libdevice.byte_perm(table[4], table[5], code)
        more = libdevice.byte_perm(more, libdevice.byte_perm(table[6], table[7], code), third)
        found = libdevice.byte_perm(found, more, fourth)
    return found


@triton.jit
def _pairs(book, code, top, filled, BITS: tl.constexpr):
    """Two words of two numbers each, looked up by the four low nibbles."""
    third, fourth = code, code
    if BITS >= 4:  # byte i of the first word, or of the second where the bit is set, i or i + 4
        third = ((code >> 1) & 0x4444) | filled
    if BITS == 5:
        fourth = ((top << 2) & 0x4444) | filled
    low = _bytes(book[0], code, third, fourth, BITS)
    high = _bytes(book[1], code, third, fourth, BITS)
    return libdevice.byte_perm(low, high, 0x5140), libdevice.byte_perm(low, high, 0x7362)


@triton.jit
def _halves(pairs, dtype: tl.constexpr):
    low = pairs.to(tl.int16).to(dtype, bitcast=True)
    high = (pairs >> 16).to(tl.int16).to(dtype, bitcast=True)
    return tl.join(low, high)


@triton.jit
def numbers(code, top, book, filled, KIND: tl.constexpr, BITS: tl.constexpr, dtype: tl.constexpr):
    """Turn (.., words) into (.., words, k / 8, row / 8, k % 2). For int4, 1024 (fp16) or 128 (bf16) must still be
    subtracted."""
    if KIND == "int4":
        p0 = (code & 0x000F000F) | filled
        p1 = ((code >> 4) & 0x000F000F) | filled
        p2 = ((code >> 8) & 0x000F000F) | filled
        p3 = ((code >> 12) & 0x000F000F) | filled
    elif KIND == "fp4":  # packed.FP4_BITS, too small by a power of two, which the scales make good
        p0 = code & -0x7E3F7E40
        p1 = (code << 3) & -0x7E3F7E40
        p2 = (code << 6) & -0x7E3F7E40
        p3 = ((code >> 6) & 0x01800180) | ((code >> 5) & 0x00400040) | ((code << 5) & -0x7FFF8000)
    else:
        p0, p1 = _pairs(book, code, top, filled, BITS)
        p2, p3 = _pairs(book, code >> 16, top >> 16, filled, BITS)
    return _halves(tl.join(tl.join(p0, p1), tl.join(p2, p3)), dtype)


@triton.jit
def codes_of(
    low_ptr,
    high_ptr,
    brick,
    column,
    columns,
    stride_b,
    stride_w,
    step,
    B: tl.constexpr,
    W: tl.constexpr,
    RUN: tl.constexpr,
    BITS: tl.constexpr,
    EVEN: tl.constexpr,
):
    """Return words of nibbles, (B, W, 32, RUN / 16), and those of the fifth bit (or the same again). See words_of."""
    low, high = field_words(
        low_ptr, high_ptr, brick, column, columns, stride_b, stride_w, step, B, W, RUN, BITS, EVEN, ""
    )
    return codes_from(low, high, BITS)


@triton.jit
def field_words(
    low_ptr,
    high_ptr,
    brick,
    column,
    columns,
    stride_b,
    stride_w,
    step,
    B: tl.constexpr,
    W: tl.constexpr,
    RUN: tl.constexpr,
    BITS: tl.constexpr,
    EVEN: tl.constexpr,
    POLICY: tl.constexpr,
):
    """Return words of both fields as stored in memory. Words that aren't used yet may still be in flight."""
    FIRST: tl.constexpr = 4 if BITS >= 4 else 2
    low = words_of(low_ptr, brick, column, columns, stride_b, stride_w, step, B, W, RUN, FIRST, EVEN, POLICY)
    high = low
    if BITS == 3 or BITS == 5:
        high = words_of(
            high_ptr, brick, column, columns, stride_b, stride_w, step, B, W, RUN, 1, EVEN, POLICY
        )
    return low, high


@triton.jit
def codes_from(low, high, BITS: tl.constexpr):
    """The same from the words of both fields as they were loaded."""
    code = nibbles(low, 4 if BITS >= 4 else 2)
    top = code
    if BITS == 3 or BITS == 5:
        top = nibbles(high, 1)
        if BITS == 3:
            code = code | (top << 2)
    return code, top


@triton.jit
def of_groups(at_ptr, offs, first, groups, GROUP: tl.constexpr, RUN: tl.constexpr):
    """Return (rows, RUN) scales or zero points, each repeated over its group's columns, 0 beyond the last group.

    Each group is a load of its own, which arrives in its row's lanes. One load of two would cross lanes.
    """
    found = tl.load(at_ptr + offs + first * 16, mask=(first < groups) & (offs >= 0), other=0)[
        :, None
    ]  # (rows, 1)
    for i in tl.static_range(1, RUN // GROUP):
        more = tl.load(at_ptr + offs + (first + i) * 16, mask=(first + i < groups) & (offs >= 0), other=0)
        found = tl.where((tl.arange(0, RUN) < i * GROUP)[None, :], found, more[:, None])
    return found
