@triton.jit
def combine_all_picks(
    rows_ptr, place_ptr, weights_ptr, out_ptr, T, H, K, stride_rowsr, stride_rowsh, stride_placet, stride_placek,
    stride_weightst, stride_weightsk, stride_outt, stride_outh, KP: tl.constexpr, BLOCK: tl.constexpr,
):
    token = tl.program_id(0)
    slot, offs_h = tl.arange(0, KP), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mine = (slot < K) & (token < T)
    row = tl.load(place_ptr + token * stride_placet + slot * stride_placek, mask=mine, other=0).to(tl.int64)
    weight = tl.load(weights_ptr + token * stride_weightst + slot * stride_weightsk, mask=mine, other=0.0)
    mask = mine[:, None] & (offs_h < H)[None, :]
    y = tl.load(rows_ptr + row[:, None] * stride_rowsr + offs_h[None, :] * stride_rowsh, mask=mask, other=0.0)
    total = tl.sum(weight[:, None] * y.to(tl.float32), 0)
    at = out_ptr + token * stride_outt + offs_h * stride_outh
    tl.store(at, total.to(out_ptr.dtype.element_ty), mask=(offs_h < H) & (token < T))


def launch_combine(p):
    """Combine all rows of a token together, in a block of two dimensions."""
    block = min(512, triton.next_power_of_2(p.H))
    constants = {"KP": triton.next_power_of_2(p.K), "BLOCK": block}
    grid = (max(1, p.T), triton.cdiv(p.H, block))
    return {"steps": [{"kernel": combine_all_picks, "grid": grid, "constexprs": constants, "num_warps": 4}]}
