@triton.jit
def walk(q, k_base, v_base, m, l, acc, begin, end, place, N, scale, stride_kn, stride_kd, stride_vn, stride_vd,
         D: tl.constexpr, BLOCK_N: tl.constexpr, MASKED: tl.constexpr):
    offs_d = tl.arange(0, D)
    for start in range(begin, end, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        k = tl.load(k_base + keys[None, :] * stride_kn + offs_d[:, None] * stride_kd, mask=keys[None, :] < N, other=0.0)
        v = tl.load(v_base + keys[:, None] * stride_vn + offs_d[None, :] * stride_vd, mask=keys[:, None] < N, other=0.0)
        s = tl.dot(q, k) * scale
        if MASKED:
            s = tl.where(keys[None, :] <= place[:, None], s, float("-inf"))
        top = tl.maximum(m, tl.max(s, 1))
        p = tl.exp(s - top[:, None])
        shrink = tl.exp(m - top)
        l = l * shrink + tl.sum(p, 1)
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None])
        m = top
    return m, l, acc


@triton.jit
def attend(q_ptr, k_ptr, v_ptr, o_ptr, H, G, M, N, scale,
           stride_qb, stride_qh, stride_qm, stride_qd, stride_kb, stride_kh, stride_kn, stride_kd,
           stride_vb, stride_vh, stride_vn, stride_vd, stride_ob, stride_oh, stride_om, stride_od,
           D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    tile = tl.program_id(0)
    batch = (tl.program_id(1) // H).to(tl.int64)
    head = tl.program_id(1) % H
    group = head // (H // G)
    rows = tile * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_d = tl.arange(0, D)
    inside = rows[:, None] < M
    q = tl.load(q_ptr + batch * stride_qb + head * stride_qh + rows[:, None] * stride_qm + offs_d[None, :] * stride_qd, mask=inside, other=0.0)
    k_base = k_ptr + batch * stride_kb + group * stride_kh
    v_base = v_ptr + batch * stride_vb + group * stride_vh
    m = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    l = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    place = rows + N - M
    whole = (tile * BLOCK_M + N - M + 1) // BLOCK_N * BLOCK_N  # every row of the tile sees all of these keys
    end = min(N, (tile + 1) * BLOCK_M + N - M)
    m, l, acc = walk(q, k_base, v_base, m, l, acc, 0, whole, place, N, scale, stride_kn, stride_kd, stride_vn, stride_vd, D, BLOCK_N, False)
    m, l, acc = walk(q, k_base, v_base, m, l, acc, whole, end, place, N, scale, stride_kn, stride_kd, stride_vn, stride_vd, D, BLOCK_N, True)
    o = (acc / l[:, None]).to(o_ptr.dtype.element_ty)
    tl.store(o_ptr + batch * stride_ob + head * stride_oh + rows[:, None] * stride_om + offs_d[None, :] * stride_od, o, mask=inside)


def launch(p):
    constants = {"D": p.D, "BLOCK_M": 64, "BLOCK_N": 64}
    return {"steps": [{"kernel": attend, "grid": (triton.cdiv(p.M, 64), p.B * p.H), "constexprs": constants, "num_warps": 4, "num_stages": 2}]}
