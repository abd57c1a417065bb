"""List the mistakes of *grouped gemm*, a row each."""

from collections.abc import Callable

import numpy as np

from grader.box.serve.frames import DTYPES
from grader.questions import Case
from grader.questions.draws import rounded
from grader.questions.families import dense, family, one_stride, same_strides, within_limit
from grader.questions.rows import edited
from grader.topics.moe_routing.grouped_gemm.cases import gated, products_of
from grader.topics.moe_routing.shared import loads_of
from kernels.moe_routing import reference

BLOCKS = (16, 32, 64, 128, 256)  # numbers along H of a step


def stored(inputs: dict, case: Case, rows: np.ndarray, h: np.ndarray) -> dict:
    """Real rows written in h's dtype, all others as they were."""
    out = inputs["h"].astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        out[rows] = rounded(h, case.dtypes.get("h", case.dtype)).astype(np.float64)
    return {"h": out}


def would(joined: Callable = gated, **exchanged) -> Callable:
    def wrong(inputs: dict, case: Case) -> dict:
        rows, gate, up = products_of(inputs, case, **exchanged)
        with np.errstate(over="ignore", invalid="ignore"):
            return stored(inputs, case, rows, joined(gate, up))

    return wrong


def part(end: Callable, start: Callable = lambda h: 0) -> Callable:
    """Sums over numbers `start(H)` to `end(H)` alone."""

    def wrong(inputs: dict, case: Case) -> dict:
        h = case.sizes["H"]
        rows, gate, up = products_of(inputs, case, slice(start(h), max(0, end(h))))
        return stored(inputs, case, rows, gated(gate, up))

    return wrong


def narrow(dtype: str, block: int) -> Callable:
    """Round running sums to `dtype` after each `block` numbers, or to the dtype of x with "x"."""

    def wrong(inputs: dict, case: Case) -> dict:
        to, sums = DTYPES[case.dtype if dtype == "x" else dtype], 0.0
        with np.errstate(over="ignore", invalid="ignore"):
            for k in range(0, case.sizes["H"], block):
                rows, *both = products_of(inputs, case, slice(k, k + block))
                sums = (sums + np.array(both)).astype(to).astype(np.float64)
        return stored(inputs, case, rows, gated(*sums))

    return wrong


def tail_unset(block: int) -> Callable:
    """Fill masked lanes with anything: NaN everywhere where H fills no block."""

    def wrong(inputs: dict, case: Case) -> dict:
        rows, gate, up = products_of(inputs, case)
        return stored(
            inputs, case, rows, np.full_like(up, np.nan) if case.sizes["H"] % block else gated(gate, up)
        )

    return wrong


def padding_written(by: Callable) -> Callable:
    """Write rows without a pair as well, in tiles that have an expert: by(the result of an empty row, the result of
    token 0)."""

    def wrong(inputs: dict, case: Case) -> dict:
        pairs = inputs["sorted_token_ids"]
        tiles = np.arange(len(pairs)) // case.sizes["TILE"]
        padding = (pairs == reference.EMPTY) & (inputs["expert_ids"][tiles] != reference.EMPTY)
        right = would()(inputs, case)["h"]
        filled = would()(inputs | {"sorted_token_ids": np.where(padding, 0, pairs)}, case)["h"]
        return {"h": np.where(padding[:, None], by(np.zeros_like(filled), filled), right)}

    return wrong


def more_loads(most: int) -> Callable:
    """Return whether the mistake shows, which needs an expert with more than `most` tokens."""
    return lambda question, case: max(loads_of(case), default=0) > most


SILU = "h = gate / (1.0 + tl.exp(-gate)) * up"
OF_UP = "at + N * stride_wn"
ROW_OF_GATE = "offs_n[None, :] * stride_wn\n"
TOKEN = "tl.where(real, pair // K, 0)"
LOOP = "range(0, H, BLOCK_K)"
DOTS = "gate = tl.dot(x, w_gate, gate)", "up = tl.dot(x, w_up, up)"
STORE = "mask=real[:, None] & mask_n[None, :])"
HERE = "        h = gate"
WIDTH = "    width = 32\n"


def summed_in(dtype: str) -> list[tuple[str, str]]:
    names = zip(("gate", "up"), ("w_gate", "w_up"), DOTS, strict=True)
    return [(dot, f"{s} = ({s} + tl.dot(x, {w})).to({dtype}).to(tl.float32)") for s, w, dot in names]


def in_fp32() -> list[tuple[str, str]]:
    names = zip(("gate", "up"), ("w_gate", "w_up"), DOTS, strict=True)
    return [
        (dot, f'{s} = tl.dot(x.to(tl.float32), {w}.to(tl.float32), {s}, input_precision="ieee")')
        for s, w, dot in names
    ]


MISTAKES = (
    family(
        "padding written",
        "rows without a pair are written, too: mask the store so that it writes only rows with a pair",
        padding_written(lambda nothing, token: nothing),
        padding_written(lambda nothing, token: token),
        edits=((STORE, "mask=mask_n[None, :])"),),
    ),
    family(
        "up through SiLU",
        "gate and up are swapped: the first N rows of an expert's weight are gate, which goes through SiLU",
        would(lambda gate, up: reference.silu(up) * gate),
        edits=((SILU, "h = up / (1.0 + tl.exp(-up)) * gate"),),
    ),
    family(
        "no SiLU",
        "gate must go through SiLU before it is multiplied by up",
        would(lambda gate, up: gate * up),
        edits=((SILU, "h = gate * up"),),
    ),
    family(
        "a sigmoid",
        "this is only the sigmoid: SiLU(g) is g times it",
        would(lambda gate, up: reference.sigmoid(gate) * up),
        edits=((SILU, "h = up / (1.0 + tl.exp(-gate))"),),
    ),
    family(
        "SiLU of the product",
        "apply SiLU to the gate only, before it is multiplied by up",
        would(lambda gate, up: reference.silu(gate * up)),
        edits=((SILU, "h = gate * up / (1.0 + tl.exp(-gate * up))"),),
    ),
    family(
        "gate alone",
        "this is only SiLU(gate): multiply it by up",
        would(lambda gate, up: reference.silu(gate)),
        edits=((SILU, "h = gate / (1.0 + tl.exp(-gate))"),),
    ),
    family(
        "gate and up in turn",
        "all rows of gate come before those of up: row n of gate is row n of the weight, and row n of up is row N + n",
        would(split=lambda w: (w[..., ::2, :], w[..., 1::2, :])),
        edits=(
            (ROW_OF_GATE, "2 * offs_n[None, :] * stride_wn\n"),
            (OF_UP, "at + stride_wn"),
        ),
    ),
    family(
        "the first expert for all",
        "every expert has its own weight: where does stride_we come in?",
        would(expert_of=lambda e, experts: np.zeros_like(e)),
        edits=(("w_ptr + expert.to(tl.int64) * stride_we", "w_ptr"),),
    ),
    family(
        "one expert on",
        "expert_ids[tile] is the expert itself, not the one before it",
        would(expert_of=lambda e, experts: e + 1),
        edits=(
            ("        row = tile", "        expert = tl.minimum(expert + 1, E - 1)\n        row = tile"),
            ("h_ptr, K, H,", "h_ptr, E, K, H,"),
        ),
    ),
    family(
        "low precision",
        "close, but off: both sums must be fp32 from the first product to SiLU(gate) * up, rounded once, at the store",
        *(narrow(d, b) for d in ("x", "fp16", "bf16") for b in (32, 64, 128)),
        edits=(*summed_in("dtype"),),
    ),
    family(
        "unmasked tail",
        "NaN if H is not a multiple of the block: is every load masked along H too, with other=0.0?",
        *map(tail_unset, BLOCKS),
        edits=((", other=0.0", ""),),
    ),
    family(
        "one block of H",
        "these are sums over only the first block of H: does the loop run to the end of H?",
        *(part(lambda h, b=b: min(h, b)) for b in BLOCKS),
        edits=((LOOP, "range(0, BLOCK_K, BLOCK_K)"),),
    ),
    family(
        "tail left out",
        "the last, ragged block of H is left out: does the loop run to cdiv(H, block)?",
        *(part(lambda h, b=b: h // b * b) for b in BLOCKS),
        edits=((LOOP, "range(0, H // BLOCK_K * BLOCK_K, BLOCK_K)"),),
    ),
    family(
        "the last block alone",
        "this is only the last block's part: add each part to the sum so far",
        *(part(lambda h: h, lambda h, b=b: (h - 1) // b * b) for b in BLOCKS),
        edits=(
            (DOTS[0], "gate = tl.dot(x, w_gate)"),
            (DOTS[1], "up = tl.dot(x, w_up)"),
        ),
    ),
    edited("sums in fp16", *summed_in("tl.float16"), told_as="low precision"),
    edited("pairs for tokens", (TOKEN, "tl.where(real, pair, 0)")),
    edited("every tile is somebody's", ("if expert >= 0:", "if expert >= -1:")),
    edited("no program where there is no tile", ("max(1, most_tiles(p))", "most_tiles(p)")),
    edited("expert_ids not masked", (", mask=tile < TILES, other=-1", "")),
    edited(
        "tiles of all pairs alone",
        ("grid = (max(1, most_tiles(p)),", "grid = (max(1, triton.cdiv(p.T * p.K, p.TILE)),"),
    ),
    edited("room for one pair a token", ("pairs = p.T * p.K", "pairs = p.T")),
    edited(
        "the tile's first pair for all",
        (
            "pair = tl.load(sorted_token_ids_ptr + row * stride_sorted_token_idsr)",
            "pair = tl.load(sorted_token_ids_ptr + row * 0 + tile * BLOCK_M * stride_sorted_token_idsr)",
        ),
    ),
    edited("no mask along N", ("mask=real[:, None] & mask_n[None, :])", "mask=real[:, None])")),
    edited("no mask along H", ("mask=real[:, None] & mask_k[None, :]", "mask=real[:, None]")),
    edited("weights not masked along H", ("mask_k[:, None] & mask_n[None, :]", "mask_n[None, :]")),
    edited(
        "x's strides swapped",
        (
            "token[:, None] * stride_xt + offs_k[None, :] * stride_xh",
            "token[:, None] * stride_xh + offs_k[None, :] * stride_xt",
        ),
    ),
    edited("weights taken for dense", ("offs_k[:, None] * stride_wh", "offs_k[:, None]")),
    edited("h taken for dense", ("offs_n[None, :] * stride_hn", "offs_n[None, :]")),
    edited("expert_ids taken for dense", ("tile * stride_expert_idsi", "tile")),
    edited(
        "NaN cleaned away",
        ("            at = ", "            x = tl.where(x == x, x, 0.0)\n            at = "),
    ),
    edited(
        "weights in fp16",
        (
            "            gate = tl.dot",
            "            x, w_gate, w_up = x.to(tl.float16), w_gate.to(tl.float16), w_up.to(tl.float16)\n            gate = tl.dot",
        ),
    ),
    edited(
        "nonsense at the size that is compiled",
        (HERE, "        if N == 256:\n            gate = gate * 0.5\n        h = gate"),
    ),
    edited(
        "experts without tokens read",
        (
            "    if expert >= 0:",
            "    idle = tl.load(w_ptr + tile % E * stride_we + offs_n * stride_wn, mask=mask_n & (expert < 0), other=0.0)\n    tl.device_assert(idle.shape[0] > 0)\n    if expert >= 0:",
        ),
        ("h_ptr, K, H,", "h_ptr, E, K, H,"),
        part="traffic",
    ),
    edited("narrow strips", (WIDTH, "    width = 16\n"), part="traffic"),
    edited(
        "padding read",
        (
            "mask=real[:, None] & mask_k[None, :], other=0.0",
            "mask=(row >= 0)[:, None] & mask_k[None, :], other=0.0",
        ),
        part="traffic",
    ),
    edited(
        "weights twice",
        (
            "            gate = tl.dot",
            "            w_up = tl.load(at + N * stride_wn, mask=mask_w, other=0.0) + 0.0 * w_up\n            gate = tl.dot",
        ),
        part="traffic",
    ),
    edited("products without tensor cores", *in_fp32(), part="speed"),
    edited("few programs", (WIDTH, "    width = 256\n"), part="speed"),
    edited(
        "numbers far apart",
        (
            "offs_k = start + tl.arange(0, BLOCK_K)",
            "offs_k = start // BLOCK_K + tl.cdiv(H, BLOCK_K) * tl.arange(0, BLOCK_K)",
        ),
        part="speed",
    ),
    edited(
        "each number four hundred times",
        (HERE, "        for _ in range(400):\n            gate = gate + 0.0 * up\n        h = gate"),
        part="speed",
    ),
    edited("more than registers hold", (WIDTH, "    width = 512\n"), part="compiled"),
)


SHORTCUTS = {
    **{
        f"{name} up to {most}": within_limit(name, most)
        for name, most in (
            *(("T", most) for most in (1, 16, 64, 128)),
            *(("E", most) for most in (4, 8, 16)),
            *(("K", most) for most in (1, 2, 3)),
            *(("TILE", most) for most in (16, 32)),
            *(("H", most) for most in (16, 64, 1024, 4096)),
            *(("N", most) for most in (16, 64, 256, 1024)),
        )
    },
    **{f"{most} tokens an expert": more_loads(most) for most in (1, 16, 32, 64, 128)},
    "at least one token": lambda question, case: case.sizes["T"] == 0,
    **{f"stride {axis} of {name} taken for 1": one_stride(name, axis) for name in "xh" for axis in (0, 1)},
    **{f"stride {axis} of w taken for 1": one_stride("w", axis) for axis in (0, 1, 2)},
    **{
        f"the stride of {name} taken for 1": one_stride(name, 0)
        for name in ("sorted_token_ids", "expert_ids")
    },
    **{f"{name} taken for dense": dense(name) for name in "xwh"},
    "the strides of x for h": same_strides("x", "h"),
}
