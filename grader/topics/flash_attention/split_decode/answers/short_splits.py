@triton.jit
def decode_part(
    q_ptr, k_ptr, v_ptr, part_o_ptr, part_m_ptr, part_l_ptr, H, G, N, scale, stride_qb, stride_qh, stride_qd,
    stride_kb, stride_kh, stride_kn, stride_kd, stride_vb, stride_vh, stride_vn, stride_vd,
    D: tl.constexpr, GROUP: tl.constexpr, BLOCK_N: tl.constexpr, CHUNK: tl.constexpr, SPLITS: tl.constexpr,
):
    split = tl.program_id(0)
    batch, key_head = tl.program_id(1) // G, tl.program_id(1) % G
    share = H // G
    r = tl.arange(0, GROUP)
    heads = key_head * share + r
    mine = r < share
    d = tl.arange(0, D)
    q = tl.load(
        q_ptr + batch * stride_qb + heads[:, None] * stride_qh + d[None, :] * stride_qd,
        mask=mine[:, None], other=0.0,
    )
    m = tl.full((GROUP,), float("-inf"), tl.float32)
    l = tl.zeros((GROUP,), tl.float32)
    acc = tl.zeros((GROUP, D), tl.float32)
    for start in range(split * CHUNK, tl.minimum((split + 1) * CHUNK, N), BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        inside = keys < N
        k = tl.load(
            k_ptr + batch * stride_kb + key_head * stride_kh + d[:, None] * stride_kd + keys[None, :] * stride_kn,
            mask=inside[None, :], other=0.0,
        )
        v = tl.load(
            v_ptr + batch * stride_vb + key_head * stride_vh + keys[:, None] * stride_vn + d[None, :] * stride_vd,
            mask=inside[:, None], other=0.0,
        )
        s = tl.where(inside[None, :], tl.dot(q, k) * scale, float("-inf"))
        m_new = tl.maximum(m, tl.max(s, axis=1))
        alpha = tl.exp(m - m_new)
        p = tl.exp(s - m_new[:, None])
        l = l * alpha + tl.sum(p, axis=1)
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
        m = m_new
    at = (batch * H + heads) * SPLITS + split
    tl.store(part_m_ptr + at, m, mask=mine)
    tl.store(part_l_ptr + at, l, mask=mine)
    tl.store(part_o_ptr + at[:, None] * D + d[None, :], acc, mask=mine[:, None])


@triton.jit
def decode_combine(
    part_o_ptr, part_m_ptr, part_l_ptr, o_ptr, H, stride_ob, stride_oh, stride_od,
    D: tl.constexpr, SPLITS: tl.constexpr, PADDED: tl.constexpr,
):
    row = tl.program_id(0)
    d = tl.arange(0, D)
    every = tl.arange(0, PADDED)
    m = tl.load(part_m_ptr + row * SPLITS + every, mask=every < SPLITS, other=float("-inf"))
    highest = tl.max(m, axis=0)
    l = tl.load(part_l_ptr + row * SPLITS + every, mask=every < SPLITS, other=0.0)
    total = tl.sum(l * tl.exp(m - highest), axis=0)
    out = tl.zeros((D,), tl.float32)
    for first in range(0, SPLITS, 16):
        i = first + tl.arange(0, 16)
        part_m = tl.load(part_m_ptr + row * SPLITS + i, mask=i < SPLITS, other=float("-inf"))
        o = tl.load(
            part_o_ptr + (row * SPLITS + i)[:, None] * D + d[None, :], mask=(i < SPLITS)[:, None], other=0.0
        )
        out += tl.sum(o * tl.exp(part_m - highest)[:, None], axis=0)
    at = o_ptr + (row // H) * stride_ob + (row % H) * stride_oh + d * stride_od
    tl.store(at, (out / total).to(o_ptr.dtype.element_ty))


def launch_decode(p):
    """Plan enough splits to fill the machine, each with whole tiles of keys, and none of them empty."""
    want = triton.cdiv(p.sm_count, p.B * p.G)
    plans = []
    for block in (64, 32, 16):
        tiles = triton.cdiv(p.N, block)
        chunk = block * max(1, tiles // want)
        plans.append((triton.cdiv(p.N, chunk), block, chunk))
    enough = [plan for plan in plans if plan[0] >= want]
    splits, block, chunk = min(enough, key=lambda plan: plan[0]) if enough else plans[-1]
    group = max(16, triton.next_power_of_2(p.H // p.G))
    part = {"D": p.D, "GROUP": group, "BLOCK_N": block, "CHUNK": chunk, "SPLITS": splits}
    combine = {"D": p.D, "SPLITS": splits, "PADDED": triton.next_power_of_2(splits)}
    rows = p.B * p.H
    return {
        "scratch": {
            "part_o": ((rows, splits, p.D), "fp32", 0),
            "part_m": ((rows, splits), "fp32", 0),
            "part_l": ((rows, splits), "fp32", 0),
        },
        "steps": [
            {"kernel": decode_part, "grid": (splits, p.B * p.G), "constexprs": part, "num_warps": 4, "num_stages": 2},
            {"kernel": decode_combine, "grid": (rows,), "constexprs": combine, "num_warps": 4},
        ],
    }
