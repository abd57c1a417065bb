@triton.jit
def filtered(logits_ptr, temperature_ptr, seed_ptr, top_k_ptr, top_p_ptr, min_p_ptr, token_ptr, V, stride_logitsb, stride_logitsv,
             BLOCK: tl.constexpr):
    b = tl.program_id(0)
    t = tl.load(temperature_ptr + b)
    k = tl.load(top_k_ptr + b)
    p = tl.load(top_p_ptr + b)
    offs = tl.arange(0, BLOCK)
    inside = offs < V
    x = tl.load(logits_ptr + b * stride_logitsb + offs * stride_logitsv, mask=inside, other=float("-inf")).to(tl.float32)
    warm = tl.where(t == 0, 1.0, t)
    top = tl.max(x, 0)
    weight = tl.where(inside, tl.exp((x - top) / warm), 0.0)
    k = tl.where(k == 0, V, tl.minimum(k, V))
    # how many come before a token: larger logits, and equal ones with a lower id
    before = tl.zeros((BLOCK,), tl.int32)
    mass = tl.zeros((BLOCK,), tl.float32)
    for i in range(0, V):
        other = tl.sum(tl.where(offs == i, x, 0.0), 0)
        share = tl.sum(tl.where(offs == i, weight, 0.0), 0)
        ahead = (other > x) | ((other == x) & (i < offs))
        before += ahead.to(tl.int32)
        mass += tl.where(ahead, share, 0.0)
    keep = inside & (before < k)
    kept = tl.sum(tl.where(keep, weight, 0.0), 0)
    keep = keep & ((mass < p * kept) | (p >= 1)) & (weight >= tl.load(min_p_ptr + b))
    score = tl.where(keep, x / warm - tl.log(-tl.log(tl.rand(tl.load(seed_ptr + b), offs))), float("-inf"))
    score = tl.where(t == 0, x, score)
    tl.store(token_ptr + b, tl.argmax(score, 0))


def launch_filtered(p):
    block = max(16, triton.next_power_of_2(p.V))
    return {"steps": [{"kernel": filtered, "grid": (p.B,), "constexprs": {"BLOCK": block}, "num_warps": 4}]}
