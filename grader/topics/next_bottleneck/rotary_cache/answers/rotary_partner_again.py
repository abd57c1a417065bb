@triton.jit
def head_of(
    x_ptr, lens_ptr, table_ptr, turns_ptr, wq_ptr, wk_ptr, q_ptr, k_ptr, v_ptr, H, G, D, S, eps,
    stride_xt, stride_xc, stride_lenst, stride_tablet, stride_tablel, stride_turnsp, stride_turnsd,
    stride_qt, stride_qh, stride_qd, stride_kp, stride_kh, stride_ks, stride_kd, stride_vp, stride_vh, stride_vs, stride_vd,
    BLOCK: tl.constexpr,
):
    t = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    offs = tl.arange(0, BLOCK)
    mask = offs < D
    other = (offs + D // 2) % D
    at = tl.load(lens_ptr + t * stride_lenst) - 1
    page = tl.load(table_ptr + t * stride_tablet + at // S * stride_tablel).to(tl.int64)
    slot = at % S
    x_ptr += t * stride_xt + head * D * stride_xc
    x = tl.load(x_ptr + offs * stride_xc, mask=mask, other=0.0)
    if head >= H + G:
        tl.store(v_ptr + page * stride_vp + (head - H - G) * stride_vh + slot * stride_vs + offs * stride_vd, x, mask=mask)
    else:
        mine = x.to(tl.float32)
        partner = tl.load(x_ptr + other * stride_xc, mask=mask, other=0.0).to(tl.float32)
        scale = tl.rsqrt(tl.sum(mine * mine, 0) / D + eps)
        turn = turns_ptr + at * stride_turnsp
        cos = tl.load(turn + offs % (D // 2) * stride_turnsd, mask=mask, other=0.0)
        sin = tl.load(turn + (D // 2 + offs % (D // 2)) * stride_turnsd, mask=mask, other=0.0)
        sin = tl.where(offs < D // 2, -sin, sin)
        if head < H:
            mine *= scale * tl.load(wq_ptr + offs, mask=mask, other=0.0).to(tl.float32)
            partner *= scale * tl.load(wq_ptr + other, mask=mask, other=0.0).to(tl.float32)
            found = (mine * cos + partner * sin).to(q_ptr.dtype.element_ty)
            tl.store(q_ptr + t * stride_qt + head * stride_qh + offs * stride_qd, found, mask=mask)
        else:
            mine *= scale * tl.load(wk_ptr + offs, mask=mask, other=0.0).to(tl.float32)
            partner *= scale * tl.load(wk_ptr + other, mask=mask, other=0.0).to(tl.float32)
            at_k = k_ptr + page * stride_kp + (head - H) * stride_kh + slot * stride_ks
            tl.store(at_k + offs * stride_kd, (mine * cos + partner * sin).to(k_ptr.dtype.element_ty), mask=mask)


def launch_rotary(p):
    constants = {"BLOCK": triton.next_power_of_2(p.D)}
    return {"steps": [{"kernel": head_of, "grid": (p.T, p.H + 2 * p.G), "constexprs": constants, "num_warps": 1}]}
