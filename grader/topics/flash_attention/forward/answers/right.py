@triton.jit
def attend(q_ptr, k_ptr, v_ptr, o_ptr, H, G, M, N, scale,
           stride_qb, stride_qh, stride_qm, stride_qd, stride_kb, stride_kh, stride_kn, stride_kd,
           stride_vb, stride_vh, stride_vn, stride_vd, stride_ob, stride_oh, stride_om, stride_od,
           D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    tile = tl.program_id(0)
    batch, head = tl.program_id(1) // H, tl.program_id(1) % H
    group = head // (H // G)
    rows = tile * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, D)
    q_base = q_ptr + batch.to(tl.int64) * stride_qb + head.to(tl.int64) * stride_qh
    k_base = k_ptr + batch.to(tl.int64) * stride_kb + group.to(tl.int64) * stride_kh
    v_base = v_ptr + batch.to(tl.int64) * stride_vb + group.to(tl.int64) * stride_vh
    o_base = o_ptr + batch.to(tl.int64) * stride_ob + head.to(tl.int64) * stride_oh
    mask_m = rows < M
    q = tl.load(q_base + rows[:, None] * stride_qm + offs_d[None, :] * stride_qd, mask=mask_m[:, None], other=0.0)
    place = rows + N - M
    m = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    l = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    end = tl.minimum(N, (tile + 1) * BLOCK_M + N - M)
    for start in range(0, end, BLOCK_N):
        keys = start + offs_n
        mask_n = keys < N
        k = tl.load(k_base + keys[None, :] * stride_kn + offs_d[:, None] * stride_kd, mask=mask_n[None, :], other=0.0)
        s = tl.dot(q, k) * (scale * 1.4426950408889634)
        s = tl.where((keys[None, :] <= place[:, None]) & mask_n[None, :], s, float("-inf"))
        m_new = tl.maximum(m, tl.max(s, 1))
        alpha = tl.exp2(m - m_new)
        p = tl.exp2(s - m_new[:, None])
        l = l * alpha + tl.sum(p, 1)
        v = tl.load(v_base + keys[:, None] * stride_vn + offs_d[None, :] * stride_vd, mask=mask_n[:, None], other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
        m = m_new
    tl.store(o_base + rows[:, None] * stride_om + offs_d[None, :] * stride_od, (acc / l[:, None]).to(o_ptr.dtype.element_ty), mask=mask_m[:, None])


def launch(p):
    block_m = 128 if p.M >= 1024 else 64
    grid = (triton.cdiv(p.M, block_m), p.B * p.H)
    return {"steps": [{"kernel": attend, "grid": grid, "num_warps": 8 if block_m == 128 else 4, "num_stages": 3 if p.D <= 64 else 2,
                       "constexprs": {"D": p.D, "BLOCK_M": block_m, "BLOCK_N": 64}}]}
