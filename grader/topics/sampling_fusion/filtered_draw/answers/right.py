@triton.jit
def filtered(logits_ptr, temperature_ptr, seed_ptr, top_k_ptr, top_p_ptr, min_p_ptr, token_ptr, V, stride_logitsb, stride_logitsv, BLOCK: tl.constexpr):
    b = tl.program_id(0)
    t = tl.load(temperature_ptr + b)
    seed = tl.load(seed_ptr + b)
    k = tl.load(top_k_ptr + b)
    p = tl.load(top_p_ptr + b)
    m = tl.load(min_p_ptr + b)
    offs = tl.arange(0, BLOCK)
    x = tl.load(logits_ptr + b.to(tl.int64) * stride_logitsb + offs * stride_logitsv, mask=offs < V, other=float("-inf")).to(tl.float32)
    top = tl.max(x, 0)
    warm = tl.where(t == 0, 1.0, t)
    weight = tl.exp((x - top) / warm)
    k = tl.where(k == 0, V, tl.minimum(k, V))
    # logits as integers in the same order, so that halving ends exactly at a logit
    bits = x.to(tl.int32, bitcast=True)
    key = tl.where(bits < 0, -(bits & 0x7FFFFFFF), bits).to(tl.int64)
    low = tl.full((), -2147483648, tl.int64)
    high = tl.full((), 2147483647, tl.int64)
    for _ in range(32):
        middle = low + (high - low + 1) // 2
        enough = tl.sum((key >= middle).to(tl.int32), 0) >= k
        low = tl.where(enough, middle, low)
        high = tl.where(enough, high, middle - 1)
    above = key > low
    tie = key == low
    room = k - tl.sum(above.to(tl.int32), 0)
    keep = above | (tie & (tl.cumsum(tie.to(tl.int32), 0) <= room))
    keep = keep & (offs < V)
    kept = tl.where(keep, weight, 0.0)
    mass = tl.sum(kept, 0)
    # top-p: the lowest key such that the mass strictly above it is still below p
    low2 = tl.full((), -2147483648, tl.int64)
    high2 = tl.full((), 2147483647, tl.int64)
    for _ in range(32):
        middle2 = low2 + (high2 - low2) // 2
        inside = tl.sum(tl.where(key > middle2, kept, 0.0), 0) < p * mass
        high2 = tl.where(inside, middle2, high2)
        low2 = tl.where(inside, low2, middle2 + 1)
    edge = keep & (key == high2)
    before = tl.sum(tl.where(key > high2, kept, 0.0), 0) + tl.cumsum(tl.where(edge, kept, 0.0), 0) - tl.where(edge, kept, 0.0)
    nucleus = keep & ((key > high2) | (edge & (before < p * mass)))
    keep = tl.where(p < 1, nucleus, keep) & (weight >= m)
    s = tl.where(keep, x / warm - tl.log(-tl.log(tl.rand(seed, offs))), float("-inf"))
    s = tl.where(t == 0, x, s)
    best = tl.max(s, 0)
    tl.store(token_ptr + b, tl.min(tl.where((s == best) & (offs < V), offs, 2147483647), 0))


def launch_filtered(p):
    block = max(16, triton.next_power_of_2(p.V))
    return {"steps": [{"kernel": filtered, "grid": (p.B,), "constexprs": {"BLOCK": block}, "num_warps": 4}]}
