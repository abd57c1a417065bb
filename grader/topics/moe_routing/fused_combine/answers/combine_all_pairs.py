@triton.jit
def combine_all_pairs(
    rows_ptr, inv_permuted_idx_ptr, topk_weights_ptr, out_ptr, T, H, K, stride_rowsr, stride_rowsh,
    stride_inv_permuted_idxt, stride_inv_permuted_idxk, stride_topk_weightst, stride_topk_weightsk,
    stride_outt, stride_outh, KP: tl.constexpr, BLOCK: tl.constexpr,
):
    token = tl.program_id(0)
    slot, offs_h = tl.arange(0, KP), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mine = (slot < K) & (token < T)
    row_at = inv_permuted_idx_ptr + token * stride_inv_permuted_idxt + slot * stride_inv_permuted_idxk
    row = tl.load(row_at, mask=mine, other=0).to(tl.int64)
    weight_at = topk_weights_ptr + token * stride_topk_weightst + slot * stride_topk_weightsk
    weight = tl.load(weight_at, mask=mine, other=0.0)
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
    return {"steps": [{"kernel": combine_all_pairs, "grid": grid, "constexprs": constants, "num_warps": 4}]}
