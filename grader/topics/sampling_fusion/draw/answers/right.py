@triton.jit
def draw(logits_ptr, temperature_ptr, seed_ptr, token_ptr, V, stride_logitsb, stride_logitsv, BLOCK: tl.constexpr):
    b = tl.program_id(0)
    t = tl.load(temperature_ptr + b)
    seed = tl.load(seed_ptr + b)
    lanes = tl.arange(0, BLOCK)
    best = tl.full((BLOCK,), float("-inf"), tl.float32)
    who = tl.full((BLOCK,), -1, tl.int32)
    row = logits_ptr + b.to(tl.int64) * stride_logitsb
    for start in range(0, V, BLOCK):
        offs = start + lanes
        x = tl.load(row + offs * stride_logitsv, mask=offs < V, other=float("-inf")).to(tl.float32)
        noise = -tl.log(-tl.log(tl.rand(seed, offs)))
        s = tl.where(t == 0, x, x / tl.where(t == 0, 1.0, t) + noise)
        better = (s > best) & (offs < V)
        best = tl.where(better, s, best)
        who = tl.where(better, offs, who)
    top = tl.max(best, 0)
    chosen = tl.min(tl.where((best == top) & (who >= 0), who, 2147483647), 0)
    tl.store(token_ptr + b, tl.where(top == float("-inf"), -1, chosen))


def launch(p):
    block = min(1024, triton.next_power_of_2(p.V))
    return {"steps": [{"kernel": draw, "grid": (p.B,), "constexprs": {"BLOCK": block}, "num_warps": 4}]}
