@triton.jit
def row(
    x_ptr, lens_ptr, table_ptr, turns_ptr, wq_ptr, wk_ptr, q_ptr, k_ptr, v_ptr, H, G, D, S, eps,
    stride_xt, stride_xc, stride_lenst, stride_tablet, stride_tablel, stride_turnsp, stride_turnsd,
    stride_qt, stride_qh, stride_qd, stride_kp, stride_kh, stride_ks, stride_kd, stride_vp, stride_vh, stride_vs, stride_vd,
    HEADS: tl.constexpr, BLOCK: tl.constexpr,
):
    t = tl.program_id(0).to(tl.int64)
    heads = (tl.program_id(1) * HEADS + tl.arange(0, HEADS))[:, None]
    offs = tl.arange(0, BLOCK)[None, :]
    half = D // 2
    at = tl.load(lens_ptr + t * stride_lenst) - 1
    page = tl.load(table_ptr + t * stride_tablet + at // S * stride_tablel).to(tl.int64)
    is_q, is_k, is_v = heads < H, (heads >= H) & (heads < H + G), (heads >= H + G) & (heads < H + 2 * G)
    inside = (offs < half) & (heads < H + 2 * G)
    at_x = x_ptr + t * stride_xt + (heads * D + offs) * stride_xc
    a0 = tl.load(at_x, mask=inside, other=0.0)
    b0 = tl.load(at_x + half * stride_xc, mask=inside, other=0.0)
    a, b = a0.to(tl.float32), b0.to(tl.float32)
    scale = tl.rsqrt(tl.sum(a * a + b * b, 1) / D + eps)[:, None]
    wa = tl.load(wq_ptr + offs + 0 * heads, mask=inside & is_q, other=0.0).to(tl.float32)
    wb = tl.load(wq_ptr + half + offs + 0 * heads, mask=inside & is_q, other=0.0).to(tl.float32)
    wa += tl.load(wk_ptr + offs + 0 * heads, mask=inside & is_k, other=0.0).to(tl.float32)
    wb += tl.load(wk_ptr + half + offs + 0 * heads, mask=inside & is_k, other=0.0).to(tl.float32)
    cos = tl.load(turns_ptr + at * stride_turnsp + offs * stride_turnsd, mask=offs < half, other=0.0)
    sin = tl.load(turns_ptr + at * stride_turnsp + (half + offs) * stride_turnsd, mask=offs < half, other=0.0)
    a, b = a * scale * wa, b * scale * wb
    a, b = a * cos - b * sin, b * cos + a * sin
    at_q = q_ptr + t * stride_qt + heads * stride_qh
    tl.store(at_q + offs * stride_qd, a.to(q_ptr.dtype.element_ty), mask=inside & is_q)
    tl.store(at_q + (half + offs) * stride_qd, b.to(q_ptr.dtype.element_ty), mask=inside & is_q)
    at_k = k_ptr + page * stride_kp + (heads - H) * stride_kh + at % S * stride_ks
    tl.store(at_k + offs * stride_kd, a.to(k_ptr.dtype.element_ty), mask=inside & is_k)
    tl.store(at_k + (half + offs) * stride_kd, b.to(k_ptr.dtype.element_ty), mask=inside & is_k)
    at_v = v_ptr + page * stride_vp + (heads - H - G) * stride_vh + at % S * stride_vs
    tl.store(at_v + offs * stride_vd, a0, mask=inside & is_v)
    tl.store(at_v + (half + offs) * stride_vd, b0, mask=inside & is_v)


def launch_rotary(p):
    constants = {"HEADS": 16, "BLOCK": triton.next_power_of_2(p.D // 2)}
    return {"steps": [{"kernel": row, "grid": (p.T, triton.cdiv(p.H + 2 * p.G, 16)), "constexprs": constants, "num_warps": 4}]}
