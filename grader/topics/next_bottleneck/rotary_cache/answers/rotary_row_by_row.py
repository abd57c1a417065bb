@triton.jit
def head_of(x_ptr, first, w_ptr, cos, sin, stride_xc, eps, offs, mask, D):
    a = tl.load(x_ptr + (first + offs) * stride_xc, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(x_ptr + (first + D // 2 + offs) * stride_xc, mask=mask, other=0.0).to(tl.float32)
    rms = tl.sqrt(tl.sum(a * a + b * b, 0) / D + eps)
    a = a / rms * tl.load(w_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    b = b / rms * tl.load(w_ptr + D // 2 + offs, mask=mask, other=0.0).to(tl.float32)
    return a * cos - b * sin, b * cos + a * sin


@triton.jit
def rows(
    x_ptr, lens_ptr, table_ptr, turns_ptr, wq_ptr, wk_ptr, q_ptr, k_ptr, v_ptr, H, G, D, S, eps,
    stride_xt, stride_xc, stride_lenst, stride_tablet, stride_tablel, stride_turnsp, stride_turnsd,
    stride_qt, stride_qh, stride_qd, stride_kp, stride_kh, stride_ks, stride_kd, stride_vp, stride_vh, stride_vs, stride_vd,
    BLOCK: tl.constexpr,
):
    t = tl.program_id(0).to(tl.int64)
    offs = tl.arange(0, BLOCK)
    half = D // 2
    mask = offs < half
    at = tl.load(lens_ptr + t * stride_lenst) - 1
    page = tl.load(table_ptr + t * stride_tablet + at // S * stride_tablel).to(tl.int64)
    turn = turns_ptr + at * stride_turnsp
    cos = tl.load(turn + offs * stride_turnsd, mask=mask, other=0.0)
    sin = tl.load(turn + (half + offs) * stride_turnsd, mask=mask, other=0.0)
    x_ptr += t * stride_xt
    for head in range(0, H):
        a, b = head_of(x_ptr, head * D, wq_ptr, cos, sin, stride_xc, eps, offs, mask, D)
        at_q = q_ptr + t * stride_qt + head * stride_qh
        tl.store(at_q + offs * stride_qd, a.to(q_ptr.dtype.element_ty), mask=mask)
        tl.store(at_q + (half + offs) * stride_qd, b.to(q_ptr.dtype.element_ty), mask=mask)
    for head in range(0, G):
        a, b = head_of(x_ptr, (H + head) * D, wk_ptr, cos, sin, stride_xc, eps, offs, mask, D)
        at_k = k_ptr + page * stride_kp + head * stride_kh + at % S * stride_ks
        tl.store(at_k + offs * stride_kd, a.to(k_ptr.dtype.element_ty), mask=mask)
        tl.store(at_k + (half + offs) * stride_kd, b.to(k_ptr.dtype.element_ty), mask=mask)
        for part in tl.static_range(2):
            cols = part * half + offs
            v = tl.load(x_ptr + ((H + G + head) * D + cols) * stride_xc, mask=mask)
            tl.store(v_ptr + page * stride_vp + head * stride_vh + at % S * stride_vs + cols * stride_vd, v, mask=mask)


def launch_rotary(p):
    return {"steps": [{"kernel": rows, "grid": (p.T,), "constexprs": {"BLOCK": triton.next_power_of_2(p.D // 2)}, "num_warps": 1}]}
