@triton.jit
def gumbel(seed, token):
    return -tl.log(-tl.log(tl.rand(seed, token)))


@triton.jit
def best_of(row, stride, t, seed, V, BLOCK: tl.constexpr):
    best = float("-inf")
    who = -1
    for start in range(0, V, BLOCK):
        token = start + tl.arange(0, BLOCK)
        x = tl.load(row + token * stride, mask=token < V, other=float("-inf")).to(tl.float32)
        score = tl.where(t == 0, x, x / tl.where(t == 0, 1.0, t) + gumbel(seed, token))
        score = tl.where(token < V, score, float("-inf"))
        top, lane = tl.max(score, 0, return_indices=True, return_indices_tie_break_left=True)
        if top > best:
            best = top
            who = start + lane
    return who


@triton.jit
def draw(logits_ptr, temperature_ptr, seed_ptr, token_ptr, B, V, stride_logitsb, stride_logitsv, BLOCK: tl.constexpr):
    for b in range(tl.program_id(0), B, tl.num_programs(0)):
        t = tl.load(temperature_ptr + b)
        who = best_of(logits_ptr + b * stride_logitsb, stride_logitsv, t, tl.load(seed_ptr + b), V, BLOCK)
        tl.store(token_ptr + b, who)


def launch(p):
    block = min(2048, triton.next_power_of_2(p.V))
    return {"steps": [{"kernel": draw, "grid": min(p.B, p.sm_count), "constexprs": {"BLOCK": block}, "num_warps": 8}]}
