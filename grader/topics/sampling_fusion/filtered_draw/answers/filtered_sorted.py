@triton.jit
def filtered(logits_ptr, temperature_ptr, seed_ptr, top_k_ptr, top_p_ptr, min_p_ptr, token_ptr, V, stride_logitsb, stride_logitsv,
             BLOCK: tl.constexpr):
    b = tl.program_id(0)
    t = tl.load(temperature_ptr + b)
    k = tl.load(top_k_ptr + b)
    p = tl.load(top_p_ptr + b)
    offs = tl.arange(0, BLOCK)
    x = tl.load(logits_ptr + b * stride_logitsb + offs * stride_logitsv, mask=offs < V, other=float("-inf")).to(tl.float32)
    # one number to sort by: the logit in the order of integers, and below it the token, lowest first
    bits = x.to(tl.int32, bitcast=True)
    order = tl.where(bits < 0, -(bits & 0x7FFFFFFF), bits).to(tl.int64)
    both = tl.sort(order * BLOCK + (BLOCK - 1 - offs), descending=True)
    low = both & (BLOCK - 1)  # a power of two, so that negative numbers come apart too
    token = (BLOCK - 1 - low).to(tl.int32)
    order = ((both - low) // BLOCK).to(tl.int32)
    size = tl.abs(order).to(tl.float32, bitcast=True)
    y = tl.where(order < 0, -size, size)
    warm = tl.where(t == 0, 1.0, t)
    weight = tl.exp((y - tl.max(y, 0)) / warm)
    keep = (token < V) & (offs < tl.where(k == 0, V, k))
    kept = tl.where(keep, weight, 0.0)
    before = tl.cumsum(kept, 0) - kept
    keep = keep & ((before < p * tl.sum(kept, 0)) | (p >= 1)) & (weight >= tl.load(min_p_ptr + b))
    score = tl.where(keep, y / warm - tl.log(-tl.log(tl.rand(tl.load(seed_ptr + b), token))), float("-inf"))
    score = tl.where(t == 0, y, score)
    best = tl.max(score, 0)
    tl.store(token_ptr + b, tl.min(tl.where((score == best) & (token < V), token, 2147483647), 0))


def launch_filtered(p):
    block = max(16, triton.next_power_of_2(p.V))
    return {"steps": [{"kernel": filtered, "grid": (p.B,), "constexprs": {"BLOCK": block}, "num_warps": 4}]}
