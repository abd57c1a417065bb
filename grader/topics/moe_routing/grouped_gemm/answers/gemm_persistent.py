@triton.jit
def grouped_gate_up(
    x_ptr, w_ptr, sorted_token_ids_ptr, expert_ids_ptr, h_ptr, K, H, N, stride_xt, stride_xh,
    stride_we, stride_wn, stride_wh, stride_sorted_token_idsr, stride_expert_idsi, stride_hr, stride_hn,
    TILES: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    # whose tile? -> its rows, their tokens -> along H: x once, gate and up -> SiLU(gate) * up -> store real rows
    for tile in range(tl.program_id(0), TILES, tl.num_programs(0)):
        offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
        mask_n = offs_n < N
        dtype = x_ptr.dtype.element_ty
        expert = tl.load(expert_ids_ptr + tile * stride_expert_idsi)
        if expert >= 0:
            row = tile * BLOCK_M + tl.arange(0, BLOCK_M)
            pair = tl.load(sorted_token_ids_ptr + row * stride_sorted_token_idsr)
            real = pair >= 0
            token = tl.where(real, pair // K, 0).to(tl.int64)
            of_expert = w_ptr + expert.to(tl.int64) * stride_we + offs_n[None, :] * stride_wn
            gate = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
            up = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
            for start in range(0, H, BLOCK_K):
                offs_k = start + tl.arange(0, BLOCK_K)
                mask_k = offs_k < H
                x = tl.load(
                    x_ptr + token[:, None] * stride_xt + offs_k[None, :] * stride_xh,
                    mask=real[:, None] & mask_k[None, :], other=0.0,
                )  # (BLOCK_M, BLOCK_K)
                at = of_expert + offs_k[:, None] * stride_wh
                mask_w = mask_k[:, None] & mask_n[None, :]
                w_gate = tl.load(at, mask=mask_w, other=0.0)  # (BLOCK_K, BLOCK_N)
                w_up = tl.load(at + N * stride_wn, mask=mask_w, other=0.0)
                gate = tl.dot(x, w_gate, gate)
                up = tl.dot(x, w_up, up)
            h = gate / (1.0 + tl.exp(-gate)) * up
            at_h = h_ptr + row.to(tl.int64)[:, None] * stride_hr + offs_n[None, :] * stride_hn
            tl.store(at_h, h.to(h_ptr.dtype.element_ty), mask=real[:, None] & mask_n[None, :])


def most_tiles(p):
    """Return the tiles that the worst routing of a case's sizes needs."""
    pairs = p.T * p.K
    opened = min(p.E, pairs)
    return min(opened + (pairs - opened) // p.TILE, p.E * triton.cdiv(p.T, p.TILE))


def launch_gemm(p):
    """As many programs as multiprocessors, each with several tiles."""
    width = 32
    constants = {"TILES": most_tiles(p), "BLOCK_M": p.TILE, "BLOCK_N": width, "BLOCK_K": 64}
    grid = (max(1, min(p.sm_count, most_tiles(p))), triton.cdiv(p.N, width))
    return {"steps": [{"kernel": grouped_gate_up, "grid": grid, "constexprs": constants, "num_warps": 4}]}
