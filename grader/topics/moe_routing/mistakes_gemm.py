"""What goes wrong in a gated product over ragged experts: the whole h that each mistake gives, and the sentence that tells of it."""

from collections.abc import Callable

import numpy as np

from grader.box.serve.frames import DTYPES
from grader.questions import Case
from grader.questions.draws import rounded
from grader.questions.families import dense, family, one_stride, same_strides, within_limit
from grader.topics.moe_routing.cases import loads_of
from kernels.moe_routing import reference

BLOCKS = (16, 32, 64, 128, 256)  # numbers along H of a step
Pair = tuple[np.ndarray, np.ndarray]


def halves(w: np.ndarray) -> Pair:
    return tuple(np.split(w, 2, axis=-2))


def products(
    inputs: dict,
    case: Case,
    some: slice = slice(None),
    split: Callable = halves,
    expert_of: Callable = lambda e, experts: e,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(rows that are real, their gate, their up), over some of the numbers along H, by whatever expert is named."""
    picks, tile = inputs["picks"], case.sizes["TILE"]
    rows = np.flatnonzero(picks != reference.EMPTY)
    owner = np.minimum(expert_of(inputs["owner"][rows // tile], case.sizes["E"]), case.sizes["E"] - 1)
    x = inputs["x"].astype(np.float64)[picks[rows] // case.sizes["K"]][:, some]
    gate, up = split(inputs["w"].astype(np.float64))
    found = np.zeros((2, len(rows), case.sizes["N"]))
    with np.errstate(invalid="ignore", over="ignore"):
        for e in np.unique(owner):
            mine = owner == e
            found[0][mine], found[1][mine] = x[mine] @ gate[e][:, some].T, x[mine] @ up[e][:, some].T
    return rows, *found


def stored(inputs: dict, case: Case, rows: np.ndarray, h: np.ndarray) -> dict:
    """Real rows written in h's dtype, all others as they were."""
    out = inputs["h"].astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        out[rows] = rounded(h, case.dtypes.get("h", case.dtype)).astype(np.float64)
    return {"h": out}


def gated(gate: np.ndarray, up: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore"):
        return reference.silu(gate) * up


def would(joined: Callable = gated, **exchanged) -> Callable:
    def wrong(inputs: dict, case: Case) -> dict:
        rows, gate, up = products(inputs, case, **exchanged)
        with np.errstate(over="ignore", invalid="ignore"):
            return stored(inputs, case, rows, joined(gate, up))

    return wrong


def part(end: Callable, start: Callable = lambda h: 0) -> Callable:
    """Sums over numbers `start(H)` to `end(H)` alone."""

    def wrong(inputs: dict, case: Case) -> dict:
        h = case.sizes["H"]
        rows, gate, up = products(inputs, case, slice(start(h), max(0, end(h))))
        return stored(inputs, case, rows, gated(gate, up))

    return wrong


def narrow(dtype: str, block: int) -> Callable:
    """Running sums rounded to `dtype` after each `block` numbers; "x": to the dtype of x."""

    def wrong(inputs: dict, case: Case) -> dict:
        to, sums = DTYPES[case.dtype if dtype == "x" else dtype], 0.0
        with np.errstate(over="ignore", invalid="ignore"):
            for k in range(0, case.sizes["H"], block):
                rows, *both = products(inputs, case, slice(k, k + block))
                sums = (sums + np.array(both)).astype(to).astype(np.float64)
        return stored(inputs, case, rows, gated(*sums))

    return wrong


def tail_unset(block: int) -> Callable:
    """Masked lanes hold anything: NaN everywhere where H fills no block."""

    def wrong(inputs: dict, case: Case) -> dict:
        rows, gate, up = products(inputs, case)
        return stored(
            inputs, case, rows, np.full_like(up, np.nan) if case.sizes["H"] % block else gated(gate, up)
        )

    return wrong


def padding_written(by: Callable) -> Callable:
    """Rows without a pick written as well, where their tile is somebody's: by(what a row of nothing gives, what token 0 gives)."""

    def wrong(inputs: dict, case: Case) -> dict:
        picks, tiles = inputs["picks"], np.arange(len(inputs["picks"])) // case.sizes["TILE"]
        padding = (picks == reference.EMPTY) & (inputs["owner"][tiles] != reference.EMPTY)
        right = would()(inputs, case)["h"]
        filled = would()(inputs | {"picks": np.where(padding, 0, picks)}, case)["h"]
        return {"h": np.where(padding[:, None], by(np.zeros_like(filled), filled), right)}

    return wrong


GEMM = (
    family(
        "padding written",
        "rows that have no pick are written too: mask the store with the picks, it is for real rows alone",
        padding_written(lambda nothing, token: nothing),
        padding_written(lambda nothing, token: token),
    ),
    family(
        "up through SiLU",
        "gate and up have changed places: the first N rows of an expert's weight are gate's, and gate goes through SiLU",
        would(lambda gate, up: reference.silu(up) * gate),
    ),
    family("no SiLU", "gate goes through SiLU before it meets up", would(lambda gate, up: gate * up)),
    family(
        "a sigmoid",
        "SiLU(g) is g times its sigmoid: this is the sigmoid alone",
        would(lambda gate, up: reference.sigmoid(gate) * up),
    ),
    family(
        "SiLU of the product",
        "SiLU is taken of the gate alone, before it meets up",
        would(lambda gate, up: reference.silu(gate * up)),
    ),
    family(
        "gate alone",
        "this is SiLU(gate) alone: multiply it by up",
        would(lambda gate, up: reference.silu(gate)),
    ),
    family(
        "gate and up in turn",
        "gate's rows all stand above up's: row n of gate is row n of the weight, and row n of up is row N + n",
        would(split=lambda w: (w[..., ::2, :], w[..., 1::2, :])),
    ),
    family(
        "the first expert for all",
        "every expert has a weight of its own: where does stride_we come in?",
        would(expert_of=lambda e, experts: np.zeros_like(e)),
    ),
    family(
        "one expert on",
        "owner[tile] is the expert itself, not the one before it",
        would(expert_of=lambda e, experts: e + 1),
    ),
    family(
        "low precision",
        "close, but off in a long sum: are both sums fp32 from first to last?",
        *(narrow(d, b) for d in ("x", "fp16", "bf16") for b in (32, 64, 128)),
    ),
    family(
        "unmasked tail",
        "NaN where H fills no block: is every load masked along H too, with other=0.0?",
        *map(tail_unset, BLOCKS),
    ),
    family(
        "one block of H",
        "these are sums over the first block of H alone: does the loop run to the end of H?",
        *(part(lambda h, b=b: min(h, b)) for b in BLOCKS),
    ),
    family(
        "tail left out",
        "the last, ragged block of H is left out: does the loop run to cdiv(H, block)?",
        *(part(lambda h, b=b: h // b * b) for b in BLOCKS),
    ),
    family(
        "the last block alone",
        "this is the last block's part alone: add to what is there",
        *(part(lambda h: h, lambda h, b=b: (h - 1) // b * b) for b in BLOCKS),
    ),
)


def more_loads(most: int) -> Callable:
    """An answer that is right where no expert has more tokens than that."""
    return lambda question, case: max(loads_of(case), default=0) > most


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
    **{f"the stride of {name} taken for 1": one_stride(name, 0) for name in ("picks", "owner")},
    **{f"{name} taken for dense": dense(name) for name in "xwh"},
    "the strides of x for h": same_strides("x", "h"),
}
