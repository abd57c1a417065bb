@triton.jit
def partial(a_ptr, b_ptr, c_ptr, part_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
            BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, SPLITS: tl.constexpr):
    pid = tl.program_id(0)
    split = tl.program_id(1)
    tiles_n = tl.cdiv(N, BN)
    width = GROUP * tiles_n
    first = pid // width * GROUP
    rows = min(tl.cdiv(M, BM) - first, GROUP)
    offs_m = (first + pid % width % rows) * BM + tl.arange(0, BM)
    offs_n = (pid % width // rows) * BN + tl.arange(0, BN)
    inside = (offs_m[:, None] < M) & (offs_n[None, :] < N)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(split * BK, K, SPLITS * BK):
        offs_k = k + tl.arange(0, BK)
        a = tl.load(a_ptr + offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak, mask=(offs_m[:, None] < M) & (offs_k[None, :] < K), other=0.0)
        b = tl.load(b_ptr + offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn, mask=(offs_k[:, None] < K) & (offs_n[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc)
    if SPLITS == 1:
        tl.store(c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :] * stride_cn, acc.to(c_ptr.dtype.element_ty), mask=inside)
    else:
        tl.store(part_ptr + split * M * N + offs_m[:, None] * N + offs_n[None, :], acc, mask=inside)


@triton.jit
def finish(part_ptr, c_ptr, M, N, stride_cm, stride_cn, SPLITS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < M * N
    total = tl.zeros((BLOCK,), tl.float32)
    for split in range(SPLITS):
        total += tl.load(part_ptr + split * M * N + at, mask=mask, other=0.0)
    tl.store(c_ptr + at // N * stride_cm + at % N * stride_cn, total.to(c_ptr.dtype.element_ty), mask=mask)


def launch(p):
    tiles = triton.cdiv(p.M, 64) * triton.cdiv(p.N, 128)
    splits = 4 if tiles < p.sm_count and p.K >= 128 else 1
    tile = {"kernel": partial, "grid": (tiles, splits), "constexprs": {"BM": 64, "BN": 128, "BK": 32, "GROUP": 8, "SPLITS": splits}}
    total = {"kernel": finish, "grid": triton.cdiv(p.M * p.N, 1024), "constexprs": {"SPLITS": splits, "BLOCK": 1024}}
    scratch = {"part": ((splits, p.M, p.N) if splits > 1 else (1,), "fp32", 0)}
    return {"scratch": scratch, "steps": [tile, total] if splits > 1 else [tile]}
