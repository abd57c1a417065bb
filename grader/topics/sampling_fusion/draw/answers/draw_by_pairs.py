@triton.jit
def larger(a, i, b, j):
    take = (a > b) | ((a == b) & (i < j))
    return tl.where(take, a, b), tl.where(take, i, j)


@triton.jit
def draw(logits_ptr, temperature_ptr, seed_ptr, token_ptr, V, stride_logitsb, stride_logitsv, CHUNK: tl.constexpr):
    b = tl.program_id(0)
    t = tl.load(temperature_ptr + b)
    seed = tl.load(seed_ptr + b)
    best = float("-inf")
    who = 2147483647
    for start in range(0, V, CHUNK):
        token = start + tl.arange(0, CHUNK)
        x = tl.load(logits_ptr + b * stride_logitsb + token * stride_logitsv, mask=token < V, other=float("-inf")).to(tl.float32)
        warm = x / tl.maximum(t, 1e-30) - tl.log(-tl.log(tl.rand(seed, token)))
        score = tl.where(token < V, tl.where(t > 0, warm, x), float("-inf"))
        here, first = tl.reduce((score, token), 0, larger)
        best, who = larger(best, who, here, first)
    tl.store(token_ptr + b, tl.where(best == float("-inf"), -1, who))


def launch(p):
    chunk = min(8192, triton.next_power_of_2(p.V))
    return {"steps": [{"kernel": draw, "grid": p.B, "constexprs": {"CHUNK": chunk}, "num_warps": 16}]}
