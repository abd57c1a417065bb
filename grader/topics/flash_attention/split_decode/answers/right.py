@triton.jit
def part(q_ptr, k_ptr, v_ptr, po_ptr, pm_ptr, pl_ptr, H, G, N, scale, stride_qb, stride_qh, stride_qd,
         stride_kb, stride_kh, stride_kn, stride_kd, stride_vb, stride_vh, stride_vn, stride_vd,
         D: tl.constexpr, GROUP: tl.constexpr, BLOCK_N: tl.constexpr, SPLITS: tl.constexpr, CHUNK: tl.constexpr):
    split = tl.program_id(0)
    batch, group = tl.program_id(1) // G, tl.program_id(1) % G
    per = H // G
    offs_h = tl.arange(0, GROUP)
    offs_n = tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, D)
    mask_h = offs_h < per
    heads = group * per + offs_h
    q = tl.load(q_ptr + batch * stride_qb + heads[:, None] * stride_qh + offs_d[None, :] * stride_qd, mask=mask_h[:, None], other=0.0)
    k_base = k_ptr + batch.to(tl.int64) * stride_kb + group.to(tl.int64) * stride_kh
    v_base = v_ptr + batch.to(tl.int64) * stride_vb + group.to(tl.int64) * stride_vh
    m = tl.full((GROUP,), float("-inf"), tl.float32)
    l = tl.zeros((GROUP,), tl.float32)
    acc = tl.zeros((GROUP, D), tl.float32)
    for start in range(split * CHUNK, tl.minimum(N, (split + 1) * CHUNK), BLOCK_N):
        keys = start + offs_n
        mask_n = keys < N
        k = tl.load(k_base + keys[None, :] * stride_kn + offs_d[:, None] * stride_kd, mask=mask_n[None, :], other=0.0)
        s = tl.where(mask_n[None, :], tl.dot(q, k) * scale, float("-inf"))
        m_new = tl.maximum(m, tl.max(s, 1))
        alpha = tl.exp(m - m_new)
        p = tl.exp(s - m_new[:, None])
        l = l * alpha + tl.sum(p, 1)
        v = tl.load(v_base + keys[:, None] * stride_vn + offs_d[None, :] * stride_vd, mask=mask_n[:, None], other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
        m = m_new
    at = (batch * H + heads) * SPLITS + split
    tl.store(po_ptr + at[:, None] * D + offs_d[None, :], acc, mask=mask_h[:, None])
    tl.store(pm_ptr + at, m, mask=mask_h)
    tl.store(pl_ptr + at, l, mask=mask_h)


@triton.jit
def combine(po_ptr, pm_ptr, pl_ptr, o_ptr, H, stride_ob, stride_oh, stride_od, D: tl.constexpr, SPLITS: tl.constexpr, PADDED: tl.constexpr):
    row = tl.program_id(0)
    offs_s = tl.arange(0, PADDED)
    offs_d = tl.arange(0, D)
    mask = offs_s < SPLITS
    m = tl.load(pm_ptr + row * SPLITS + offs_s, mask=mask, other=float("-inf"))
    l = tl.load(pl_ptr + row * SPLITS + offs_s, mask=mask, other=0.0)
    weight = tl.exp(m - tl.max(m, 0))
    parts = tl.load(po_ptr + (row * SPLITS + offs_s)[:, None] * D + offs_d[None, :], mask=mask[:, None], other=0.0)
    out = tl.sum(parts * weight[:, None], 0) / tl.sum(l * weight, 0)
    tl.store(o_ptr + (row // H) * stride_ob + (row % H) * stride_oh + offs_d * stride_od, out.to(o_ptr.dtype.element_ty))


def launch_decode(p):
    block_n = 64
    wanted = max(1, triton.cdiv(2 * p.sm_count, p.B * p.G))
    chunk = max(block_n, triton.cdiv(triton.cdiv(p.N, wanted), block_n) * block_n)
    splits = triton.cdiv(p.N, chunk)
    group = max(16, triton.next_power_of_2(p.H // p.G))
    rows = p.B * p.H
    return {
        "scratch": {"po": ((rows, splits, p.D), "fp32", 0), "pm": ((rows, splits), "fp32", 0), "pl": ((rows, splits), "fp32", 0)},
        "steps": [
            {"kernel": part, "grid": (splits, p.B * p.G), "num_warps": 4, "num_stages": 2,
             "constexprs": {"D": p.D, "GROUP": group, "BLOCK_N": block_n, "SPLITS": splits, "CHUNK": chunk}},
            {"kernel": combine, "grid": (rows,), "num_warps": 4, "num_stages": 1,
             "constexprs": {"D": p.D, "SPLITS": splits, "PADDED": triton.next_power_of_2(splits)}},
        ],
    }
