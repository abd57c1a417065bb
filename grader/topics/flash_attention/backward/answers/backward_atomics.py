@triton.jit
def row_delta(o_ptr, do_ptr, delta_ptr, H, M, stride_ob, stride_oh, stride_om, stride_od,
              stride_dob, stride_doh, stride_dom, stride_dod, D: tl.constexpr, BLOCK_M: tl.constexpr):
    batch, head = (tl.program_id(1) // H).to(tl.int64), tl.program_id(1) % H
    rows, offs_d = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M), tl.arange(0, D)
    mask = rows[:, None] < M
    o = tl.load(o_ptr + batch * stride_ob + head * stride_oh + rows[:, None] * stride_om + offs_d[None, :] * stride_od, mask=mask, other=0.0)
    do = tl.load(do_ptr + batch * stride_dob + head * stride_doh + rows[:, None] * stride_dom + offs_d[None, :] * stride_dod, mask=mask, other=0.0)
    tl.store(delta_ptr + (batch * H + head) * M + rows, tl.sum(o.to(tl.float32) * do.to(tl.float32), 1), mask=rows < M)


@triton.jit
def gradients(q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, sum_ptr, dk_ptr, dv_ptr, H, M, N, scale,
              stride_qb, stride_qh, stride_qm, stride_qd, stride_kb, stride_kh, stride_kn, stride_kd,
              stride_vb, stride_vh, stride_vn, stride_vd, stride_dob, stride_doh, stride_dom, stride_dod,
              stride_lseb, stride_lseh, stride_lsem, stride_dkb, stride_dkh, stride_dkn, stride_dkd,
              stride_dvb, stride_dvh, stride_dvn, stride_dvd, D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    # one pass: a tile of keys keeps dk and dv, and adds its share of dq to fp32 sums in memory, as FlashAttention-2 does
    batch, head = (tl.program_id(1) // H).to(tl.int64), tl.program_id(1) % H
    first = tl.program_id(0) * BLOCK_N
    keys, offs_m, offs_d = first + tl.arange(0, BLOCK_N), tl.arange(0, BLOCK_M), tl.arange(0, D)
    mask_n = keys[:, None] < N
    k = tl.load(k_ptr + batch * stride_kb + head * stride_kh + keys[:, None] * stride_kn + offs_d[None, :] * stride_kd, mask=mask_n, other=0.0)
    v = tl.load(v_ptr + batch * stride_vb + head * stride_vh + keys[:, None] * stride_vn + offs_d[None, :] * stride_vd, mask=mask_n, other=0.0)
    dk = tl.zeros((BLOCK_N, D), tl.float32)
    dv = tl.zeros((BLOCK_N, D), tl.float32)
    row = (batch * H + head) * M
    for start in range(max(0, first - (N - M)) // BLOCK_M * BLOCK_M, M, BLOCK_M):
        rows = start + offs_m
        mask_m = rows[:, None] < M
        q = tl.load(q_ptr + batch * stride_qb + head * stride_qh + rows[:, None] * stride_qm + offs_d[None, :] * stride_qd, mask=mask_m, other=0.0)
        do = tl.load(do_ptr + batch * stride_dob + head * stride_doh + rows[:, None] * stride_dom + offs_d[None, :] * stride_dod, mask=mask_m, other=0.0)
        lse = tl.load(lse_ptr + batch * stride_lseb + head * stride_lseh + rows * stride_lsem, mask=rows < M, other=float("inf"))
        delta = tl.load(delta_ptr + row + rows, mask=rows < M, other=0.0)
        pt = tl.exp(tl.dot(k, tl.trans(q)) * scale - lse[None, :])
        pt = tl.where((keys[:, None] <= rows[None, :] + N - M) & mask_n, pt, 0.0)
        dv = tl.dot(pt.to(do.dtype), do, dv)
        dst = (pt * (tl.dot(v, tl.trans(do)) - delta[None, :])).to(q.dtype)
        dk = tl.dot(dst, q, dk)
        part = tl.dot(tl.trans(dst), k) * scale
        tl.atomic_add(sum_ptr + (row + rows)[:, None] * D + offs_d[None, :], part, mask=mask_m)
    tl.store(dk_ptr + batch * stride_dkb + head * stride_dkh + keys[:, None] * stride_dkn + offs_d[None, :] * stride_dkd, (dk * scale).to(dk_ptr.dtype.element_ty), mask=mask_n)
    tl.store(dv_ptr + batch * stride_dvb + head * stride_dvh + keys[:, None] * stride_dvn + offs_d[None, :] * stride_dvd, dv.to(dv_ptr.dtype.element_ty), mask=mask_n)


@triton.jit
def rounded(sum_ptr, dq_ptr, H, M, stride_dqb, stride_dqh, stride_dqm, stride_dqd, D: tl.constexpr, BLOCK_M: tl.constexpr):
    batch, head = (tl.program_id(1) // H).to(tl.int64), tl.program_id(1) % H
    rows, offs_d = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M), tl.arange(0, D)
    mask = rows[:, None] < M
    dq = tl.load(sum_ptr + ((batch * H + head) * M + rows)[:, None] * D + offs_d[None, :], mask=mask, other=0.0)
    tl.store(dq_ptr + batch * stride_dqb + head * stride_dqh + rows[:, None] * stride_dqm + offs_d[None, :] * stride_dqd, dq.to(dq_ptr.dtype.element_ty), mask=mask)


def launch_backward(p):
    heads, whole = p.B * p.H, {"D": p.D, "BLOCK_M": 64}
    rows = (triton.cdiv(p.M, 64), heads)
    return {
        "scratch": {"delta": ((heads, p.M), "fp32", 0), "sum": ((heads, p.M, p.D), "fp32", 0)},
        "steps": [
            {"kernel": row_delta, "grid": rows, "constexprs": whole, "num_warps": 4},
            {"kernel": gradients, "grid": (triton.cdiv(p.N, 64), heads), "constexprs": whole | {"BLOCK_N": 64}, "num_warps": 4, "num_stages": 1},
            {"kernel": rounded, "grid": rows, "constexprs": whole, "num_warps": 4},
        ],
    }
