@triton.jit
def block(logits_ptr, temperature_ptr, seed_ptr, top_ptr, token_of_ptr, V, stride_logitsb, stride_logitsv,
          BLOCK: tl.constexpr, PARTS: tl.constexpr):
    b = tl.program_id(0)
    part = tl.program_id(1)
    offs = part * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(logits_ptr + b * stride_logitsb + offs * stride_logitsv, mask=offs < V, other=float("-inf")).to(tl.float32)
    t = tl.load(temperature_ptr + b)
    gumbel = -tl.log(-tl.log(tl.rand(tl.load(seed_ptr + b), offs)))
    score = tl.where(t == 0, x, x / tl.where(t == 0, 1.0, t) + gumbel)
    score = tl.where(offs < V, score, float("-inf"))
    best, where = tl.max(score, 0, return_indices=True)
    tl.store(top_ptr + b * PARTS + part, best)
    tl.store(token_of_ptr + b * PARTS + part, part * BLOCK + where)


@triton.jit
def choose(top_ptr, token_of_ptr, token_ptr, PARTS: tl.constexpr, PADDED: tl.constexpr):
    b = tl.program_id(0)
    part = tl.arange(0, PADDED)
    top = tl.load(top_ptr + b * PARTS + part, mask=part < PARTS, other=float("-inf"))
    at = tl.argmax(top, 0)
    tl.store(token_ptr + b, tl.where(tl.max(top, 0) == float("-inf"), -1, tl.load(token_of_ptr + b * PARTS + at)))


def launch(p):
    size = 512
    parts = triton.cdiv(p.V, size)
    return {
        "scratch": {"top": ((p.B, parts), "float32", 0), "token_of": ((p.B, parts), "int32", -1)},
        "steps": [
            {"kernel": block, "grid": (p.B, parts), "constexprs": {"BLOCK": size, "PARTS": parts}},
            {"kernel": choose, "grid": (p.B,), "constexprs": {"PARTS": parts, "PADDED": triton.next_power_of_2(parts)}, "num_warps": 1},
        ],
    }
