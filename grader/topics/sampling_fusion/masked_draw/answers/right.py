@triton.jit
def masked(logits_ptr, allowed_ptr, history_ptr, temperature_ptr, seed_ptr, repetition_ptr, frequency_ptr, presence_ptr, token_ptr,
           V, L, stride_logitsb, stride_logitsv, stride_allowedb, stride_allowedw, stride_historyb, stride_historyl, BLOCK: tl.constexpr):
    b = tl.program_id(0)
    t = tl.load(temperature_ptr + b)
    seed = tl.load(seed_ptr + b)
    r = tl.load(repetition_ptr + b)
    f = tl.load(frequency_ptr + b)
    p = tl.load(presence_ptr + b)
    lanes = tl.arange(0, BLOCK)
    best = tl.full((BLOCK,), float("-inf"), tl.float32)
    who = tl.full((BLOCK,), -1, tl.int32)
    row = logits_ptr + b.to(tl.int64) * stride_logitsb
    for start in range(0, V, BLOCK):
        offs = start + lanes
        inside = offs < V
        x = tl.load(row + offs * stride_logitsv, mask=inside, other=float("-inf")).to(tl.float32)
        word = tl.load(allowed_ptr + b * stride_allowedb + offs // 32 * stride_allowedw, mask=inside, other=0)
        x = tl.where(((word >> (offs % 32)) & 1) != 0, x, float("-inf"))
        count = tl.zeros((BLOCK,), tl.float32)
        for l in range(0, L):
            count += (offs == tl.load(history_ptr + b * stride_historyb + l * stride_historyl)).to(tl.float32)
        x = tl.where(count > 0, tl.where(x > 0, x / r, x * r) - f * count - p, x)
        s = tl.where(t == 0, x, x / tl.where(t == 0, 1.0, t) - tl.log(-tl.log(tl.rand(seed, offs))))
        better = (s > best) & inside
        best = tl.where(better, s, best)
        who = tl.where(better, offs, who)
    top = tl.max(best, 0)
    chosen = tl.min(tl.where((best == top) & (who >= 0), who, 2147483647), 0)
    tl.store(token_ptr + b, tl.where(top == float("-inf"), -1, chosen))


def launch_masked(p):
    block = min(1024, triton.next_power_of_2(p.V))
    return {"steps": [{"kernel": masked, "grid": (p.B,), "constexprs": {"BLOCK": block}, "num_warps": 4}]}
