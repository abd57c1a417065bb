@triton.jit
def piece(ptr, rows, cols, row_end, col_end, stride_row, stride_col):
    mask = (rows < row_end)[:, None] & (cols < col_end)[None, :]
    return tl.load(ptr + rows.to(tl.int64)[:, None] * stride_row + cols.to(tl.int64)[None, :] * stride_col, mask=mask, other=0)


@triton.jit
def gemm(a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
         TILE: tl.constexpr, WIDE: tl.constexpr, DEEP: tl.constexpr, BAND: tl.constexpr):
    tiles_m, tiles_n = tl.cdiv(M, TILE), tl.cdiv(N, WIDE)
    pm, pn = tl.swizzle2d(tl.program_id(0) // tiles_n, tl.program_id(0) % tiles_n, tiles_m, tiles_n, BAND)
    rows = pm * TILE + tl.arange(0, TILE)
    columns = pn * WIDE + tl.arange(0, WIDE)
    c = tl.zeros([TILE, WIDE], dtype=tl.float32)
    for step in tl.range(0, tl.cdiv(K, DEEP), num_stages=3):
        along = step * DEEP + tl.arange(0, DEEP)
        a = piece(a_ptr, rows, along, M, K, stride_am, stride_ak)
        bt = piece(b_ptr, columns, along, N, K, stride_bn, stride_bk)
        c = tl.dot(a, tl.trans(bt), acc=c, out_dtype=tl.float32)
    inside = (rows < M)[:, None] & (columns < N)[None, :]
    tl.store(c_ptr + rows[:, None] * stride_cm + columns[None, :] * stride_cn, tl.cast(c, c_ptr.type.element_ty), mask=inside)


def launch(p):
    table = {"TILE": 64, "WIDE": 128, "DEEP": 64, "BAND": 8}
    programs = triton.cdiv(p.M, table["TILE"]) * triton.cdiv(p.N, table["WIDE"])
    return dict(steps=[dict(kernel=gemm, grid=programs, constexprs=table, num_warps=4, num_stages=2)])
