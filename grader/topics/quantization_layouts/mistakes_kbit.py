"""What goes wrong with bit planes, codebooks and experts: the whole output that each mistake gives, and its sentence."""

from collections.abc import Callable

import numpy as np

from grader.questions import Case, KernelQuestion
from grader.questions.families import dense, family, one_stride, same_strides, within_limit
from grader.topics.quantization_layouts.cases_kbit import ROWS
from grader.topics.quantization_layouts.mistakes_sums import SUMS, stored
from grader.topics.quantization_layouts.wanted import BLOCK, kbit, product
from kernels.quantization_layouts import reference

COLUMNS = np.arange(BLOCK)
TILES = (16, 32, 64, 128)  # rows of X in a tile


def codes_by(w: np.ndarray, columns: np.ndarray = COLUMNS, of_planes: Callable = range) -> np.ndarray:
    """Codes as someone may put them together: bit `columns[i]` for column i, plane `of_planes(bits)[b]` for bit b."""
    each = w.astype(np.int64)[..., None] >> columns & 1  # (.., bits, N, words, 32)
    bits = w.shape[-3]
    found = sum(each[..., plane, :, :, :] << b for b, plane in enumerate(of_planes(bits)))
    return found.reshape(*w.shape[:-3], w.shape[-2], BLOCK * w.shape[-1])


def scales_of(inputs: dict) -> np.ndarray:
    return inputs["scales" if "scales" in inputs else "s"].astype(np.float64)


def would(
    columns: np.ndarray = COLUMNS,
    of_planes: Callable = range,
    level: Callable = lambda code, levels: levels[code],
    scales: Callable = lambda s: s,
    of_expert: Callable = lambda w: w,
    along: Callable = lambda s: reference.along_k(s, BLOCK),
    code: Callable = lambda code: code,
) -> Callable:
    """The right layer with one of its steps exchanged."""

    def wrong(inputs: dict, case: Case) -> dict:
        found = (
            inputs["codes"].astype(np.int64)
            if "codes" in inputs
            else codes_by(inputs["w"], columns, of_planes)
        )
        w = level(code(found), inputs["c"].astype(np.float64)) * along(scales(scales_of(inputs)))
        return stored(product(inputs, of_expert(w)), case)

    return wrong


def evenly(code: np.ndarray, levels: np.ndarray) -> np.ndarray:
    return levels[0] + code * (levels[-1] - levels[0]) / (len(levels) - 1)


def centred(code: np.ndarray, levels: np.ndarray) -> np.ndarray:
    return code - len(levels) / 2


def blocks_of(size: int) -> Callable:
    """Scales taken as if each served so many columns."""

    def along(s: np.ndarray) -> np.ndarray:
        at = np.minimum(np.arange(BLOCK * s.shape[-1]) // size, s.shape[-1] - 1)
        return s[..., at]

    return would(along=along)


def scaled_after(which: int) -> Callable:
    """Levels summed along K, then one scale of the row for all of them."""

    def wrong(inputs: dict, case: Case) -> dict:
        bare = inputs["c"].astype(np.float64)[kbit(inputs).codes]
        s = scales_of(inputs)[..., which, None]
        return stored(product(inputs, bare * np.broadcast_to(s, bare.shape)), case)

    return wrong


def first_for_all(of_experts: np.ndarray) -> np.ndarray:
    return np.broadcast_to(of_experts[:1], of_experts.shape)


def by_other_rows(expert_of: Callable) -> Callable:
    """Each row of X meets the weight of the expert that `expert_of(offsets, rows, experts)` names."""

    def wrong(inputs: dict, case: Case) -> dict:
        levels, s = (inputs[name].astype(np.float64) for name in "cs")
        w = levels[codes_by(inputs["w"])] * reference.along_k(s, BLOCK)
        rows = np.arange(case.sizes["M"])
        expert = np.clip(
            expert_of(inputs["r"].astype(np.int64), rows, case.sizes["E"]), 0, case.sizes["E"] - 1
        )
        x, y = inputs["x"].astype(np.float64), np.zeros((case.sizes["M"], case.sizes["N"]))
        for e in np.unique(expert):
            y[expert == e] = x[expert == e] @ w[e].T
        return stored(y, case)

    return wrong


def owner(r: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Whose rows these are: experts without rows own none."""
    return np.searchsorted(r, rows, "right") - 1


def equal_shares(r: np.ndarray, rows: np.ndarray, experts: int) -> np.ndarray:
    return rows // -(-len(rows) // experts)


def without_the_empty(r: np.ndarray, rows: np.ndarray, experts: int) -> np.ndarray:
    return np.unique(owner(r, rows), return_inverse=True)[1]


def first_of_tile(tile: int) -> Callable:
    return lambda r, rows, experts: owner(r, rows // tile * tile)


CODES = (
    family(
        "planes turned round",
        "plane 0 holds the lowest bit of every code: shift what plane b gives by b",
        would(of_planes=lambda bits: range(bits)[::-1]),
    ),
    family(
        "first column on top",
        "the first of 32 columns stands in the lowest bit of its words: shift by the column, not by 31 less it",
        would(columns=COLUMNS[::-1]),
    ),
    family(
        "the top plane left out",
        "a code has BITS bits, one from each plane: here the last plane takes no part",
        would(of_planes=lambda bits: range(bits - 1)),
    ),
    family(
        "bare codes",
        "a code is a place in the codebook: load c[code], these are the codes themselves",
        would(level=lambda code, levels: code),
        would(level=centred),
    ),
    family(
        "levels evenly spread",
        "the levels of a codebook need not be evenly spread: look each code up",
        would(level=evenly),
    ),
    family(
        "no scale",
        "these are the bare levels: each is still to be multiplied by the scale of its block",
        would(scales=np.ones_like),
    ),
    family(
        "the first scale",
        "every 32 columns have a scale of their own: this takes the first of a row for all",
        would(scales=lambda s: np.broadcast_to(s[..., :1], s.shape)),
    ),
    family(
        "blocks of another size",
        "a scale serves 32 columns, as many as a word of a plane: column k has the scale k // 32",
        *map(blocks_of, (16, 64, 128)),
    ),
    family(
        "scaled after the sum",
        "the scales change along K: scale each block's part before it is added",
        scaled_after(-1),
        scaled_after(0),
    ),
)
OF_ANY_LAYOUT = (
    "bare codes",
    "levels evenly spread",
    "no scale",
    "the first scale",
    "blocks of another size",
    "scaled after the sum",
)
KBIT = (*CODES, *SUMS)
EXPERTS = (
    family(
        "the first expert for all",
        "every expert has a weight of its own: where does stride_we come in?",
        would(code=first_for_all),
        would(of_expert=first_for_all),
    ),
    family(
        "scales of the first expert",
        "every expert has scales of its own: where does stride_se come in?",
        would(scales=first_for_all),
    ),
    family(
        "equal shares",
        "experts do not share the rows evenly: rows r[e] to r[e + 1] - 1 are those of expert e",
        by_other_rows(equal_shares),
    ),
    family(
        "one expert on",
        "the rows before r[e + 1] still belong to expert e: this takes the weight of the next one",
        by_other_rows(lambda r, rows, experts: owner(r, rows) + 1),
    ),
    family(
        "experts without rows not counted",
        "an expert without rows still has its number: r[e] and r[e + 1] are equal there",
        by_other_rows(without_the_empty),
    ),
    family(
        "a tile for one expert",
        "a tile of rows ends where its expert's rows end: the rows behind r[e + 1] belong to another",
        *(by_other_rows(first_of_tile(tile)) for tile in TILES),
    ),
    *CODES,
    *SUMS,
)


def most_rows(most: int) -> Callable:
    """An answer that is right where no expert has more rows than that."""

    def shows(question: KernelQuestion, case: Case) -> bool:
        return max(int(n) for n in case.values.partition(ROWS)[2].split()) > most

    return shows


def limits(**of: tuple[int, ...]) -> dict:
    return {f"{axis} up to {n}": within_limit(axis, n) for axis, most in of.items() for n in most}


def strides(names: str, pairs: tuple[str, ...]) -> dict:
    """Strides taken for 1, tensors taken for dense, and one tensor's strides for another's."""
    return {
        **{
            f"stride {axis} of {name} taken for 1": one_stride(name, axis)
            for name in names
            for axis in (0, 1)
        },
        **{f"{name} taken for dense": dense(name) for name in names},
        **{f"the strides of {a} for {b}": same_strides(a, b) for a, b in pairs},
    }


KBIT_SHORTCUTS = {
    **limits(M=(4, 16, 64, 128), N=(64, 1024, 4096), K=(32, 1024, 4096, 8192), BITS=(2, 3, 4)),
    **strides("wsxy", ("xy",)),
    "stride 2 of w taken for 1": one_stride("w", 2),
    "the stride of c taken for 1": one_stride("c", 0),
}
EXPERTS_SHORTCUTS = {
    **limits(M=(16, 128), N=(64, 1024, 4096), K=(32, 1024, 4096, 8192), BITS=(2, 3, 4), E=(1, 4, 8, 32)),
    **{f"{n} rows an expert": most_rows(n) for n in (1, 16, 32, 64, 128)},
    **strides("wsxy", ("xy",)),
    **{
        f"stride {axis} of {name} taken for 1": one_stride(name, axis)
        for name, axis in (("w", 2), ("w", 3), ("s", 2))
    },
    "the stride of c taken for 1": one_stride("c", 0),
    "the stride of r taken for 1": one_stride("r", 0),
}
