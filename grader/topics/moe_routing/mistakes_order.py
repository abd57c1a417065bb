"""What goes wrong where picks find their rows: all tables as each mistake gives them, and the sentence that tells of it."""

from collections.abc import Callable

import numpy as np

from grader.questions import Case
from grader.questions.families import computing, dense, family, one_stride, same_strides, within_limit
from grader.topics.moe_routing.cases import filled, rooms, rows
from kernels.moe_routing import reference

BLOCKS = (16, 32, 64, 128)  # tokens that one program orders
BLOCK, CLEARED = 64, 256  # tokens of a program, and entries of a table that it clears at a time


def with_room(values: np.ndarray, length: int) -> np.ndarray:
    """Cut off, or filled with EMPTY, to the length that a table has."""
    return filled(values[:length], length)


def would(
    padded: Callable = lambda loads, tile: -(-loads // tile) * tile,
    order: Callable = lambda chosen: np.argsort(chosen.ravel(), kind="stable"),
    stands: Callable = lambda pick, k: pick,
    row: Callable = lambda first, rank: first + rank,
    empty: int = reference.EMPTY,
    offsets: Callable = lambda first, tile: first,
    counted: Callable = lambda chosen: chosen,
) -> Callable:
    """The right tables with one step exchanged."""

    def wrong(inputs: dict, case: Case) -> dict:
        chosen, (k, e, tile) = inputs["chosen"], (case.sizes[n] for n in ("K", "E", "TILE"))
        flat, loads = chosen.ravel(), np.bincount(counted(chosen).ravel(), minlength=e)
        whole = padded(loads, tile)
        first = np.concatenate([[0], np.cumsum(whole)])
        by = order(chosen)
        before = np.concatenate([[0], np.cumsum(np.bincount(flat, minlength=e))])
        at = row(first[flat[by]], np.arange(flat.size) - before[flat[by]])
        picks = np.full(max(rows(case.sizes), int(at.max(initial=-1)) + 1), empty)
        picks[at] = stands(by, k)
        place = np.empty(flat.size)
        place[by] = at
        owner = np.repeat(np.arange(e), -(-whole // tile))
        found = {
            "offsets": offsets(first, tile),
            "picks": picks[: rows(case.sizes)],
            "place": place.reshape(chosen.shape),
            "owner": with_room(owner, rooms(case.sizes)),
        }
        return {name: np.asarray(value, np.float64) for name, value in found.items()}

    return wrong


def backwards(chosen: np.ndarray) -> np.ndarray:
    """Experts in order, and within each the last pick first."""
    return np.lexsort((-np.arange(chosen.size), chosen.ravel()))


def slot_by_slot(chosen: np.ndarray) -> np.ndarray:
    """Experts in order, and within each all first choices before all second ones."""
    slot = np.broadcast_to(np.arange(chosen.shape[1]), chosen.shape).ravel()
    return np.lexsort((slot, chosen.ravel()))


def by_blocks(size: int, before: Callable) -> Callable:
    """Rows as blocks of tokens make them, where `before`(counts of all blocks, block) stands for the picks of earlier ones."""

    def wrong(inputs: dict, case: Case) -> dict:
        right, (e, length) = would()(inputs, case), (case.sizes["E"], rows(case.sizes))
        chosen, place = inputs["chosen"], right["place"].copy()
        blocks = [slice(start, start + size) for start in range(0, len(chosen), size)]
        counts = np.array([np.bincount(chosen[some].ravel(), minlength=e) for some in blocks])
        for number, some in enumerate(blocks):
            first = right["offsets"][:e] + before(counts, number)
            for expert in np.flatnonzero(counts[number]):
                mine = chosen[some] == expert
                place[some][mine] = first[expert] + np.arange(mine.sum())
        picks, inside = np.full(length, float(reference.EMPTY)), place.ravel() < length
        picks[place.ravel()[inside].astype(int)] = np.flatnonzero(inside)
        return right | {"place": place, "picks": picks}

    return wrong


def nothing_before(counts: np.ndarray, block: int) -> int:
    return 0


def own_block_too(counts: np.ndarray, block: int) -> np.ndarray:
    return counts[: block + 1].sum(0)


def cleared(start: Callable, step: Callable) -> Callable:
    """Owners of which each program clears some, from start(program) on in steps of step(programs): others hold anything."""

    def wrong(inputs: dict, case: Case) -> dict:
        right = would()(inputs, case)
        owner, programs = right["owner"].copy(), max(1, -(-case.sizes["T"] // BLOCK))
        reached = np.zeros(len(owner), bool)
        for program in range(programs):
            for at in range(start(program), len(owner), step(programs)):
                reached[at : at + CLEARED] = True
        owner[~reached & (owner == reference.EMPTY)] = np.nan
        return right | {"owner": owner}

    return wrong


ORDER = (
    family(
        "not padded",
        "each expert's rows are padded to whole tiles before the next one begins: round its load up to a multiple of TILE",
        would(padded=lambda loads, tile: loads),
    ),
    family(
        "always one tile more",
        "a load of whole tiles opens no further one: round up, (load + TILE - 1) // TILE",
        would(padded=lambda loads, tile: (loads // tile + (loads > 0)) * tile),
    ),
    family(
        "a tile for nobody",
        "an expert without a pick has no tile: 0 rounded up is 0",
        would(padded=lambda loads, tile: np.maximum(1, -(-loads // tile)) * tile),
    ),
    family(
        "last first",
        "within an expert picks keep their order: the rank counts the tokens before, not those behind",
        would(order=backwards),
    ),
    family(
        "tokens for picks",
        "a row holds the number of its pick, token * K + slot: this is the token alone",
        would(stands=lambda pick, k: pick // k),
    ),
    family(
        "padding of 0",
        "a row that only pads a tile holds -1: 0 is a pick, the first of token 0",
        would(empty=0),
    ),
    family(
        "rank from 1",
        "the first pick of an expert stands in its first row: the scan counts a pick itself, so subtract it",
        would(row=lambda first, rank: first + rank + 1),
    ),
    family(
        "offsets in tiles",
        "offsets count rows, not tiles",
        would(offsets=lambda first, tile: first // tile),
    ),
    family(
        "each block for itself",
        "every block of tokens begins at an expert's first row, so that two picks get the same one: a row also counts the picks of that expert in all earlier blocks, first + before + rank",
        *(by_blocks(size, nothing_before) for size in BLOCKS),
    ),
    family(
        "earlier blocks and its own",
        "a block leaves room for its own picks before it places them: of the counts those of earlier blocks come before, b < block",
        *(by_blocks(size, own_block_too) for size in BLOCKS),
    ),
)

SHORTCUTS = {
    "slot by slot": computing(would(order=slot_by_slot)),
    "owners cleared with a gap between programs": computing(
        cleared(lambda program: program * (CLEARED + 1), lambda programs: programs * CLEARED)
    ),
    "owners cleared with a gap between turns": computing(
        cleared(lambda program: program * CLEARED, lambda programs: programs + CLEARED)
    ),
    **{
        f"{name} up to {most}": within_limit(name, most)
        for name, most in (
            *(("T", most) for most in (1, 16, 64, 128, 256, 512, 1024)),
            *(("E", most) for most in (8, 16, 32, 64, 128)),
            *(("K", most) for most in (1, 2, 4)),
            *(("TILE", most) for most in (16, 32)),
        )
    },
    "at least one token": lambda question, case: case.sizes["T"] == 0,
    "at least sixteen rows a tile": lambda question, case: case.sizes["TILE"] < 16,
    "fewer picks than experts": lambda question, case: case.sizes["K"] == case.sizes["E"],
    **{
        f"stride {axis} of {name} taken for 1": one_stride(name, axis)
        for name in ("chosen", "place")
        for axis in (0, 1)
    },
    **{f"the stride of {name} taken for 1": one_stride(name, 0) for name in ("offsets", "picks", "owner")},
    **{f"{name} taken for dense": dense(name) for name in ("chosen", "place")},
    "the strides of the choices for the places": same_strides("chosen", "place"),
}
