"""Kernels for gate and up of ragged experts, wrong."""

from grader.questions.tables import because, changed

GEMM = "moe_routing.grouped_gemm"

SILU = "h = gate / (1.0 + tl.exp(-gate)) * up"
OF_UP = "at + N * stride_wn"
ROW_OF_GATE = "offs_n[None, :] * stride_wn\n"
EXPERT = "tl.load(owner_ptr + tile * stride_owneri, mask=tile < TILES, other=-1)"
TOKEN = "tl.where(real, pick // K, 0)"
LOOP = "range(0, H, BLOCK_K)"
DOTS = "gate = tl.dot(x, w_gate, gate)", "up = tl.dot(x, w_up, up)"
STORE = "mask=real[:, None] & mask_n[None, :])"
HERE = "        h = gate"
WIDTH = "    width = 32\n"
STEP = '"BLOCK_K": 64'


def summed_in(dtype: str) -> list[tuple[str, str]]:
    names = zip(("gate", "up"), ("w_gate", "w_up"), DOTS, strict=True)
    return [(dot, f"{s} = ({s} + tl.dot(x, {w})).to({dtype}).to(tl.float32)") for s, w, dot in names]


def in_fp32() -> list[tuple[str, str]]:
    names = zip(("gate", "up"), ("w_gate", "w_up"), DOTS, strict=True)
    return [
        (dot, f'{s} = tl.dot(x.to(tl.float32), {w}.to(tl.float32), {s}, input_precision="ieee")')
        for s, w, dot in names
    ]


WRONG = {
    GEMM: {
        "up through SiLU": changed((SILU, "h = up / (1.0 + tl.exp(-up)) * gate"), mistake="up through SiLU"),
        "no SiLU": changed((SILU, "h = gate * up"), mistake="no SiLU"),
        "a sigmoid": changed((SILU, "h = up / (1.0 + tl.exp(-gate))"), mistake="a sigmoid"),
        "SiLU of the product": changed(
            (SILU, "h = gate * up / (1.0 + tl.exp(-gate * up))"), mistake="SiLU of the product"
        ),
        "gate alone": changed((SILU, "h = gate / (1.0 + tl.exp(-gate))"), mistake="gate alone"),
        "gate and up in turn": changed(
            (ROW_OF_GATE, "2 * offs_n[None, :] * stride_wn\n"),
            (OF_UP, "at + stride_wn"),
            mistake="gate and up in turn",
        ),
        "the first expert for all": changed(
            ("w_ptr + expert.to(tl.int64) * stride_we", "w_ptr"), mistake="the first expert for all"
        ),
        "one expert on": changed(
            ("        row = tile", "        expert = tl.minimum(expert + 1, E - 1)\n        row = tile"),
            ("h_ptr, K, H,", "h_ptr, E, K, H,"),
            mistake="one expert on",
        ),
        "sums in x's dtype": changed(*summed_in("dtype"), mistake="low precision"),
        "sums in fp16": changed(*summed_in("tl.float16"), mistake="low precision"),
        "masked lanes unset": changed((", other=0.0", ""), mistake="unmasked tail"),
        "one block of H": changed((LOOP, "range(0, BLOCK_K, BLOCK_K)"), mistake="one block of H"),
        "tail left out": changed(
            (LOOP, "range(0, H // BLOCK_K * BLOCK_K, BLOCK_K)"), mistake="tail left out"
        ),
        "the last block alone": changed(
            (DOTS[0], "gate = tl.dot(x, w_gate)"),
            (DOTS[1], "up = tl.dot(x, w_up)"),
            mistake="the last block alone",
        ),
        "picks for tokens": changed((TOKEN, "tl.where(real, pick, 0)")),
        "padding written": changed((STORE, "mask=mask_n[None, :])"), mistake="padding written"),
        "every tile is somebody's": changed(("if expert >= 0:", "if expert >= -1:")),
        "no program where there is no tile": changed(("max(1, most_tiles(p))", "most_tiles(p)")),
        "owner not masked": changed((", mask=tile < TILES, other=-1", "")),
        "tiles of all picks alone": changed(
            ("grid = (max(1, most_tiles(p)),", "grid = (max(1, triton.cdiv(p.T * p.K, p.TILE)),")
        ),
        "room for one pick a token": changed(("picks = p.T * p.K", "picks = p.T")),
        "the tile's first pick for all": changed(
            (
                "pick = tl.load(picks_ptr + row * stride_picksr)",
                "pick = tl.load(picks_ptr + row * 0 + tile * BLOCK_M * stride_picksr)",
            )
        ),
        "no mask along N": changed(("mask=real[:, None] & mask_n[None, :])", "mask=real[:, None])")),
        "no mask along H": changed(("mask=real[:, None] & mask_k[None, :]", "mask=real[:, None]")),
        "weights not masked along H": changed(("mask_k[:, None] & mask_n[None, :]", "mask_n[None, :]")),
        "x's strides swapped": changed(
            (
                "token[:, None] * stride_xt + offs_k[None, :] * stride_xh",
                "token[:, None] * stride_xh + offs_k[None, :] * stride_xt",
            )
        ),
        "weights taken for dense": changed(("offs_k[:, None] * stride_wh", "offs_k[:, None]")),
        "h taken for dense": changed(("offs_n[None, :] * stride_hn", "offs_n[None, :]")),
        "owner taken for dense": changed(("tile * stride_owneri", "tile")),
        "NaN cleaned away": changed(
            ("            at = ", "            x = tl.where(x == x, x, 0.0)\n            at = ")
        ),
        "weights in fp16": changed(
            (
                "            gate = tl.dot",
                "            x, w_gate, w_up = x.to(tl.float16), w_gate.to(tl.float16), w_up.to(tl.float16)\n            gate = tl.dot",
            )
        ),
        "nonsense at the size that is compiled": changed(
            (HERE, "        if N == 256:\n            gate = gate * 0.5\n        h = gate")
        ),
        "experts without tokens read": changed(
            (
                "    if expert >= 0:",
                "    idle = tl.load(w_ptr + tile % E * stride_we + offs_n * stride_wn, mask=mask_n & (expert < 0), other=0.0)\n    tl.device_assert(idle.shape[0] > 0)\n    if expert >= 0:",
            ),
            ("h_ptr, K, H,", "h_ptr, E, K, H,"),
            part="traffic",
        ),
        "narrow strips": changed((WIDTH, "    width = 16\n"), part="traffic"),
        "padding read": changed(
            (
                "mask=real[:, None] & mask_k[None, :], other=0.0",
                "mask=(row >= 0)[:, None] & mask_k[None, :], other=0.0",
            ),
            part="traffic",
        ),
        "weights twice": changed(
            (
                "            gate = tl.dot",
                "            w_up = tl.load(at + N * stride_wn, mask=mask_w, other=0.0) + 0.0 * w_up\n            gate = tl.dot",
            ),
            part="traffic",
        ),
        "products without tensor cores": changed(*in_fp32(), part="speed"),
        "few programs": changed((WIDTH, "    width = 256\n"), part="speed"),
        "numbers far apart": changed(
            (
                "offs_k = start + tl.arange(0, BLOCK_K)",
                "offs_k = start // BLOCK_K + tl.cdiv(H, BLOCK_K) * tl.arange(0, BLOCK_K)",
            ),
            part="speed",
        ),
        "each number four hundred times": changed(
            (HERE, "        for _ in range(400):\n            gate = gate + 0.0 * up\n        h = gate"),
            part="speed",
        ),
        "more than registers hold": changed((WIDTH, "    width = 512\n"), part="compiled"),
    },
}

EQUIVALENT = {
    GEMM: because(
        {
            "another length of the steps along H": ["halved: 64 -> 32"],
            "a second program beyond the tiles does nothing": ["plus one: 1 -> 2"],
            "nobody's tile is any number below 0": ["plus one: 1 -> 2 (3)"],
            "rows without a pick are masked, whichever token they name": ["plus one: 0 -> 1 (7)"],
            "a masked lane of x or of the weights meets a masked one of 0": [
                "plus one: 0.0 -> 1.0",
                "plus one: 0.0 -> 1.0 (2)",
                "plus one: 0.0 -> 1.0 (3)",
            ],
        }
    ),
}
