@triton.jit
def penalized(x, count, repetition, frequency, presence):
    y = tl.where(x > 0, x / repetition, x * repetition)
    y = y - count * frequency
    y = y - presence
    return tl.where(count > 0, y, x)


@triton.jit
def masked(
    logits_ptr, allowed_ptr, history_ptr, temperature_ptr, seed_ptr, repetition_ptr, frequency_ptr, presence_ptr, token_ptr,
    V, L, stride_logitsb, stride_logitsv, stride_allowedb, stride_allowedw, stride_historyb, stride_historyl,
    WORDS: tl.constexpr,
):
    # WORDS words of the mask at a time, one row of 32 tokens for each word
    b = tl.program_id(0)
    temperature = tl.load(temperature_ptr + b)
    seed = tl.load(seed_ptr + b)
    repetition = tl.load(repetition_ptr + b)
    frequency = tl.load(frequency_ptr + b)
    presence = tl.load(presence_ptr + b)
    bit = tl.arange(0, 32)
    top = float("-inf")
    token = -1
    for first in range(0, tl.cdiv(V, 32), WORDS):
        w = first + tl.arange(0, WORDS)
        word = tl.load(allowed_ptr + b * stride_allowedb + w * stride_allowedw, mask=w * 32 < V, other=0)
        ids = w[:, None] * 32 + bit[None, :]
        may = ((word[:, None] >> bit[None, :]) & 1 != 0) & (ids < V)
        x = tl.load(logits_ptr + b * stride_logitsb + ids * stride_logitsv, mask=may, other=float("-inf")).to(tl.float32)
        count = tl.zeros((WORDS, 32), tl.float32)
        for l in range(L):
            seen = tl.load(history_ptr + b * stride_historyb + l * stride_historyl)
            count += tl.where(ids == seen, 1.0, 0.0)
        may = may & (x > float("-inf"))
        x = penalized(x, count, repetition, frequency, presence)
        score = x
        if temperature != 0:
            score = x / temperature - tl.log(-tl.log(tl.rand(seed, ids)))
        score = tl.where(may, tl.maximum(score, -3.4028234663852886e38), float("-inf"))
        here = tl.max(tl.max(score, 1), 0)
        lowest = tl.min(tl.min(tl.where(score == here, ids, 2147483647), 1), 0)
        if here > top:
            top = here
            token = lowest
    tl.store(token_ptr + b, token)


def launch_masked(p):
    """Plan one program per row."""
    words = min(32, triton.next_power_of_2(triton.cdiv(p.V, 32)))
    return {"steps": [{"kernel": masked, "grid": (p.B,), "constexprs": {"WORDS": words}, "num_warps": 4}]}
