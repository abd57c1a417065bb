"""Small kernels that between them use what a kernel may use, one subject each: (kernel, types, constants)."""

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def integers(x, y, o, B: tl.constexpr):
    at = tl.arange(0, B)
    a, b = tl.load(x + at), tl.load(y + at)
    c = a + b - a * b // (b | 1) + a % (b | 1)
    c = (c << 3) ^ (c >> 2) & ~a
    c = tl.maximum(tl.minimum(c, a), b) + tl.abs(a) + tl.where(a < b, a, b)
    u, v = a.to(tl.uint32), b.to(tl.uint32)
    w = (u // (v | 1)) + (u % (v | 1)) + (u >> 3) + tl.maximum(u, v) + tl.minimum(u, v) + tl.umulhi(u, v)
    small = c.to(tl.int8).to(tl.int64) + (u > v).to(tl.int64) + (c != 0).to(tl.int32)
    tl.store(o + at, (c + w + small).to(tl.int32))


@triton.jit
def floats(x, y, o, B: tl.constexpr):
    at = tl.arange(0, B)
    a, b = tl.load(x + at), tl.load(y + at)
    c = tl.exp(a) + tl.exp2(b) + tl.log(a) + tl.log2(b) + tl.sin(a) + tl.cos(b) + tl.sqrt(a) + tl.rsqrt(b)
    c += tl.abs(a) + tl.floor(b) + tl.ceil(a) + tl.erf(b) + tl.fma(a, b, c) + tl.div_rn(a, b) + tl.sqrt_rn(a)
    c = tl.maximum(c, a) + tl.minimum(c, b, propagate_nan=tl.PropagateNan.ALL) + a / b - (-a) + a % b
    c = tl.clamp(c, a, b) + tl.fdiv(a, b) + tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)
    c += tl.where(a == b, a, b) + (a < b).to(tl.float32) + (a != b).to(tl.float32) + tl.sigmoid(a)
    tl.store(o + at, c + float("inf"))


@triton.jit
def casts(x, o, B: tl.constexpr):
    at = tl.arange(0, B)
    a = tl.load(x + at)
    h, w, e, f = a.to(tl.float16), a.to(tl.bfloat16), a.to(tl.float8e4nv), a.to(tl.float8e5)
    z = a.to(tl.float16, fp_downcast_rounding="rtz")
    i, u, j = a.to(tl.int32), a.to(tl.uint32), a.to(tl.int16)
    s = h.to(tl.float32) + w.to(tl.float32) + e.to(tl.float32) + f.to(tl.float32) + z.to(tl.float32)
    s += i.to(tl.float32) + u.to(tl.float32) + j.to(tl.float32) + i.to(tl.float32, bitcast=True)
    s += a.to(tl.float64).to(tl.float32) + (i & 1).to(tl.int1).to(tl.float32)
    tl.store(o + at, s)


@triton.jit
def _larger(a, i, b, j):
    keep = a > b
    return tl.where(keep, a, b), tl.where(keep, i, j)


@triton.jit
def _sum(a, b):
    return a + b


@triton.jit
def folds(x, o, B: tl.constexpr):
    at = tl.arange(0, B)
    grid = at[:, None] * B + at[None, :]
    a = tl.load(x + grid)
    most, where = tl.reduce((a, grid), 1, _larger)
    summed = tl.cumsum(a, 0) + tl.cumprod(a, 1) + tl.associative_scan(a, 1, _sum, reverse=True)
    row = tl.sum(a, 1) + tl.max(a, 1) + tl.argmax(a, 1) + tl.xor_sum(grid, 1)
    tl.store(o + at, row + most + where + tl.sum(tl.sort(a, 1), 1))
    tl.store(o + grid, summed)
    tl.store(o, tl.sum(row))


@triton.jit
def shapes(x, o, B: tl.constexpr):
    at = tl.arange(0, B)
    a, b = tl.load(x + at), tl.load(x + at + B)
    pairs = tl.load(x + at[:, None] * B + at[None, :])
    joined = tl.join(a, b)
    low, high = tl.split(joined)
    turned = tl.trans(joined).reshape(2 * B)
    both = tl.cat(low, high, can_reorder=True) + turned + tl.interleave(a, b)
    cube = tl.permute(tl.reshape(both, (2, B // 2, 2)), (2, 0, 1))
    counts = tl.histogram(at, B) + tl.gather(at, (at + 1) % B, 0)
    flipped = tl.max(tl.flip(pairs, 1), 1) + tl.broadcast_to(tl.load(x), (B,))
    tl.store(o + tl.arange(0, 2 * B), tl.ravel(cube))
    tl.store(o + at, counts + flipped + tl.zeros_like(a))


@triton.jit
def products(x, y, o, B: tl.constexpr):
    at = tl.arange(0, B)
    grid = at[:, None] * B + at[None, :]
    a, b = tl.load(x + grid), tl.load(y + grid)
    acc = tl.dot(a, b)
    acc = tl.dot(a, b, acc, input_precision="tf32x3")
    acc = tl.dot(a, b, acc, input_precision="ieee", max_num_imprecise_acc=32)
    e = tl.dot(a.to(tl.float8e5), b.to(tl.float8e5), acc)
    i = tl.dot(a.to(tl.int8), b.to(tl.int8))
    tl.store(o + grid, acc + e + i)


@triton.jit
def loops(x, o, n, B: tl.constexpr):
    at = tl.arange(0, B)
    acc = tl.zeros((B,), tl.float32)
    for i in tl.range(0, n, B, num_stages=2, loop_unroll_factor=2, disallow_acc_multi_buffer=True):
        acc += tl.load(
            x + i + at, mask=i + at < n, other=0.0, cache_modifier=".cg", eviction_policy="evict_first"
        )
        for j in range(3):
            if j == n:
                acc += 1.0
            else:
                acc -= j
    for i in tl.range(n, disable_licm=True, warp_specialize=True):
        acc -= i
    for i in tl.range(n, flatten=True):
        acc += i
    for i in tl.static_range(2):
        acc *= i + 1.5
    k = n
    while k > 0:
        acc += k
        k -= 1
    tl.store(o + at, acc, cache_modifier=".wb", eviction_policy="evict_last")


@triton.jit
def returns(x, o, n):
    pid = tl.program_id(0) + tl.program_id(1) * tl.num_programs(0) + tl.program_id(2)
    if pid >= n:
        return
    v = tl.load(x + pid)
    if v > 3:
        if v > 5:
            tl.store(o + pid, v)
            return
        v += 1
    tl.store(o + pid, v * 2)


@triton.jit(noinline=True)
def _apart(a, b):
    return a * b + 1


@triton.jit(noinline=True)
def _two(a, b):
    return a + b, a - b


@triton.jit
def calls(x, o, B: tl.constexpr):
    at = tl.arange(0, B)
    a = tl.load(x + at)
    s, t = _two(tl.sum(a), 2.0)
    tl.store(o + at, a + _apart(s, t))


@triton.jit
def atomics(x, y, o, B: tl.constexpr):
    at = tl.arange(0, B)
    i, f = tl.load(x + at), tl.load(y + at)
    tl.atomic_add(o + at, f, mask=i > 0, sem="relaxed")
    tl.atomic_max(x + at, i)
    tl.atomic_min(x + at, i, sem="acquire", scope="cta")
    tl.atomic_and(x + at, i, sem="release", scope="sys")
    tl.atomic_or(x + at, i)
    tl.atomic_xor(x + at, i)
    tl.atomic_max(y + at, f)
    old = tl.atomic_xchg(x + at, i)
    while tl.atomic_cas(x, 0, 1) != 0:
        pass
    tl.debug_barrier()
    tl.atomic_xchg(x, 0)
    tl.store(o + at, old.to(tl.float32))


@triton.jit
def words(x, o, n, B: tl.constexpr):
    at = tl.multiple_of(tl.max_contiguous(tl.program_id(0) * B + tl.arange(0, B), B), B)
    tl.assume(n > 0)
    tl.device_assert(n > 0, 'n must be "positive"\n, é')
    a = tl.load(x + tl.max_constancy(at, 1), mask=at < n, volatile=True)
    tl.device_print("a is", a, n)
    tl.device_print("bits", at, hex=True)
    tl.device_print("here")
    tl.store(o + at, a, mask=at < n)


@triton.jit
def libraries(x, o, B: tl.constexpr):
    at = tl.arange(0, B)
    a = tl.load(x + at)
    c = (
        libdevice.tanh(a)
        + libdevice.rsqrt(a)
        + libdevice.erf(a)
        + libdevice.pow(a, a)
        + libdevice.atan2(a, a)
    )
    c += (
        libdevice.pow(a, at) + libdevice.isnan(a).to(tl.float32) + libdevice.div_rz(a, a) + libdevice.trunc(a)
    )
    tl.store(o + at, c + libdevice.finitef(a) + libdevice.isinf(a) + libdevice.tan(a) + libdevice.atan(a))


@triton.jit
def descriptors(x, o, M, N, B: tl.constexpr):
    a = tl.make_tensor_descriptor(x, [M, N], [N, 1], [B, B])
    c = tl.make_tensor_descriptor(o, [M, N], [N, 1], [B, B], padding_option="zero")
    row = tl.program_id(0) * B
    for k in range(0, N, B):
        c.store([row, k], a.load([row, k]) * 2)


@triton.jit
def descriptor_words(x, o, M, N, B: tl.constexpr):
    a = tl.make_tensor_descriptor(x, [M, N], [N, 1], [1, B], padding_option="nan")
    c = tl.make_tensor_descriptor(o, [M, N], [N, 1], [1, B])
    rows = tl.arange(0, 8)
    c.scatter(a.gather(rows, 0), rows, 0)
    d = tl.make_tensor_descriptor(o, [M, N], [N, 1], [B, B])
    d.atomic_add([0, 0], tl.full((B, B), 1.0, tl.float32))


@triton.jit
def block_pointers(x, o, M, N, B: tl.constexpr):
    a = tl.make_block_ptr(x, (M, N), (N, 1), (0, 0), (B, B), (1, 0))
    c = tl.make_block_ptr(o, (M, N), (N, 1), (0, 0), (B, B), (1, 0))
    for _ in range(0, N, B):
        tl.store(c, tl.load(a, boundary_check=(0, 1), padding_option="zero"), boundary_check=(0, 1))
        a, c = tl.advance(a, (0, B)), tl.advance(c, (0, B))


@triton.jit
def addresses(x, o, n, B: tl.constexpr):
    base = tl.load(x).to(tl.pointer_type(tl.float32))
    at = tl.arange(0, B)
    number = (base + at).to(tl.int64, bitcast=True) if n > 3 else x.to(tl.int64, bitcast=True) + at
    tl.store(o + at, tl.load(base + at) + number)


@triton.jit
def _collatz(a, b):
    if a > b:
        return a - b, a
    return b * 2, b


@triton.jit
def mapped(x, o, B: tl.constexpr):
    at = tl.arange(0, B)
    a, b = tl.map_elementwise(_collatz, tl.load(x + at), at)
    tl.store(o + at, a + b)


@triton.jit
def scaled(x, y, s, o, B: tl.constexpr):
    at = tl.arange(0, B)
    grid = at[:, None] * B + at[None, :]
    scale = tl.load(s + at[:, None] * (B // 32) + tl.arange(0, B // 32)[None, :])
    c = tl.dot_scaled(tl.load(x + grid), scale, "e4m3", tl.load(y + grid), scale, "e4m3")
    tl.store(o + grid, c)


@triton.jit
def assembly(x, o, B: tl.constexpr):
    at = tl.arange(0, B)
    a = tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [tl.load(x + at)], tl.float32, True, 1)
    tl.store(o + at, a)


F, I, B = "*fp32", "*i32", "constexpr"
KERNELS = {
    "integers": (integers, {"x": I, "y": I, "o": I, "B": B}, {"B": 128}),
    "floats": (floats, {"x": F, "y": F, "o": F, "B": B}, {"B": 128}),
    "casts": (casts, {"x": F, "o": F, "B": B}, {"B": 128}),
    "folds": (folds, {"x": F, "o": F, "B": B}, {"B": 32}),
    "shapes": (shapes, {"x": F, "o": F, "B": B}, {"B": 64}),
    "products": (products, {"x": F, "y": F, "o": F, "B": B}, {"B": 32}),
    "loops": (loops, {"x": F, "o": F, "n": "i32", "B": B}, {"B": 128}),
    "returns": (returns, {"x": I, "o": I, "n": "i32"}, {}),
    "calls": (calls, {"x": F, "o": F, "B": B}, {"B": 128}),
    "atomics": (atomics, {"x": I, "y": F, "o": F, "B": B}, {"B": 128}),
    "words": (words, {"x": F, "o": F, "n": "i32", "B": B}, {"B": 128}),
    "libraries": (libraries, {"x": F, "o": F, "B": B}, {"B": 128}),
    "descriptors": (descriptors, {"x": F, "o": F, "M": "i32", "N": "i32", "B": B}, {"B": 32}),
    "descriptor_words": (descriptor_words, {"x": F, "o": F, "M": "i32", "N": "i32", "B": B}, {"B": 32}),
    "block_pointers": (block_pointers, {"x": F, "o": F, "M": "i32", "N": "i32", "B": B}, {"B": 32}),
    "addresses": (addresses, {"x": "*i64", "o": F, "n": "i32", "B": B}, {"B": 32}),
    "mapped": (mapped, {"x": I, "o": I, "B": B}, {"B": 128}),
}
REFUSED = {
    "scaled": (scaled, {"x": "*fp8e4nv", "y": "*fp8e4nv", "s": "*u8", "o": F, "B": B}, {"B": 128}),
    "assembly": (assembly, {"x": F, "o": F, "B": B}, {"B": 128}),
}
