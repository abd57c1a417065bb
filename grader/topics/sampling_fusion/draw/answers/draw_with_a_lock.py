import math


@triton.jit
def draw(logits_ptr, temperature_ptr, seed_ptr, token_ptr, best_ptr, lock_ptr, V, B, stride_logitsb, stride_logitsv, BLOCK: tl.constexpr):
    b = tl.program_id(0)
    part = tl.program_id(1)
    parts = tl.num_programs(1)
    chunk = tl.cdiv(tl.cdiv(V, parts), BLOCK) * BLOCK
    t = tl.load(temperature_ptr + b)
    seed = tl.load(seed_ptr + b)
    lanes = tl.arange(0, BLOCK)
    best = tl.full((BLOCK,), float("-inf"), tl.float32)
    who = tl.full((BLOCK,), -1, tl.int32)
    row = logits_ptr + b.to(tl.int64) * stride_logitsb
    for start in range(part * chunk, tl.minimum(V, (part + 1) * chunk), BLOCK):
        offs = start + lanes
        x = tl.load(row + offs * stride_logitsv, mask=offs < V, other=float("-inf")).to(tl.float32)
        noise = -tl.log(-tl.log(tl.rand(seed, offs)))
        s = tl.where(t == 0, x, x / tl.where(t == 0, 1.0, t) + noise)
        better = (s > best) & (offs < V)
        best = tl.where(better, s, best)
        who = tl.where(better, offs, who)
    top = tl.max(best, 0)
    chosen = tl.min(tl.where((best == top) & (who >= 0), who, 2147483647), 0)
    chosen = tl.where(top == float("-inf"), -1, chosen)
    while tl.atomic_cas(lock_ptr + b, 0, 1, sem="acquire") == 1:
        pass
    old = tl.load(best_ptr + b, volatile=True)
    was = tl.load(best_ptr + B + b, volatile=True)
    was = tl.where(was == float("-inf"), -1.0, was).to(tl.int32)
    better = (top > old) | ((top == old) & (top > float("-inf")) & (chosen < was) & (chosen >= 0))
    tl.store(best_ptr + b, tl.where(better, top, old))
    tl.store(best_ptr + B + b, tl.where(better, chosen, was).to(tl.float32))
    tl.debug_barrier()
    done = tl.atomic_add(lock_ptr + B + b, 1, sem="acq_rel")
    if done == parts - 1:
        tl.store(token_ptr + b, tl.where(tl.load(best_ptr + b, volatile=True) == float("-inf"), -1.0, tl.load(best_ptr + B + b, volatile=True)).to(tl.int32))
    tl.atomic_xchg(lock_ptr + b, 0, sem="release")


def launch(p):
    block = min(1024, triton.next_power_of_2(p.V))
    return {"scratch": {"best": ((2, p.B), "fp32", -math.inf), "lock": ((2, p.B), "i32", 0)}, "steps": [{"kernel": draw, "grid": (p.B, 4), "constexprs": {"BLOCK": block}, "num_warps": 4}]}
