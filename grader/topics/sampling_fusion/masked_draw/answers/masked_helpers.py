@triton.jit
def times_seen(tokens, history, stride, L):
    seen = tl.zeros_like(tokens)
    for i in range(L):
        seen += tl.where(tokens == tl.load(history + i * stride), 1, 0)
    return seen


@triton.jit
def penalised(x, seen, r, f, p):
    once = tl.where(x < 0, x * r, x / r) - p
    return tl.where(seen > 0, once - f * seen, x)


@triton.jit
def draw_masked(logits_ptr, allowed_ptr, history_ptr, temperature_ptr, seed_ptr, repetition_ptr, frequency_ptr, presence_ptr,
                token_ptr, B, V, L, stride_logitsb, stride_logitsv, stride_allowedb, stride_allowedw, stride_historyb,
                stride_historyl, WORDS: tl.constexpr):
    b = tl.program_id(0)
    t, seed = tl.load(temperature_ptr + b), tl.load(seed_ptr + b)
    r, f, p = tl.load(repetition_ptr + b), tl.load(frequency_ptr + b), tl.load(presence_ptr + b)
    best, who = float("-inf"), -1
    words, bits = tl.arange(0, WORDS), tl.arange(0, 32)
    for start in range(0, tl.cdiv(V, 32), WORDS):  # a word of the mask beside its 32 tokens
        at = start + words
        word = tl.load(allowed_ptr + b * stride_allowedb + at * stride_allowedw, mask=at * 32 < V, other=0)
        token = at[:, None] * 32 + bits[None, :]
        may = (((word[:, None] >> bits[None, :]) & 1) == 1) & (token < V)
        x = tl.load(logits_ptr + b * stride_logitsb + token * stride_logitsv, mask=token < V, other=float("-inf")).to(tl.float32)
        x = penalised(x, times_seen(token, history_ptr + b * stride_historyb, stride_historyl, L), r, f, p)
        score = tl.where(t == 0, x, x / tl.where(t == 0, 1.0, t) - tl.log(-tl.log(tl.rand(seed, token))))
        score = tl.where(may, score, float("-inf"))
        top = tl.max(score)
        if top > best:
            best = top
            who = tl.min(tl.where(score == top, token, 2147483647))
    tl.store(token_ptr + b, who)


def launch_masked(p):
    return {"steps": [{"kernel": draw_masked, "grid": (p.B,), "constexprs": {"WORDS": 16}, "num_warps": 4}]}
