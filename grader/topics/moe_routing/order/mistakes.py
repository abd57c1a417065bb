"""List the mistakes of *order*, a row each."""

from collections.abc import Callable

import numpy as np

from grader.questions import Case
from grader.questions.families import computing, dense, family, one_stride, same_strides, within_limit
from grader.questions.rows import edited
from grader.topics.moe_routing.shared import filled_up, rooms, rows
from kernels.moe_routing import reference

WHOLE = "whole = (total + TILE - 1) // TILE * TILE"
TILES = "tl.cdiv(T, TILE), blocks"
AT_TILE, OF_LOAD = "(first // TILE + j)", "mask=j * TILE < total"
RANK = "rank = tl.cumsum(picked.to(tl.int32), 0) - picked.to(tl.int32)"
CEILED = "((total + TILE - 1) // TILE)"
EMPTY = "empty = tl.full((256,), -1, tl.int32)"
PAIR = "t[:, None] * TOP_K + slots"
FIRST, END = "first, mask=offs_e < E", "stride_expert_offsetse, tl.sum(whole, 0)"
BLOCK_LINE = "    block = 64\n"
AGAIN = "tl.load(topk_ids_ptr + t * stride_topk_idst + slot * stride_topk_idsk, mask=t < T, other=-1)"
BLOCKS = (16, 32, 64, 128)  # tokens that one program orders
BLOCK, CLEARED = 64, 256  # tokens of a program, and entries of a table that it clears at a time


def with_room(values: np.ndarray, length: int) -> np.ndarray:
    """Cut off, or filled with EMPTY, to the length that a table has."""
    return filled_up(values[:length], length)


def would(
    padded: Callable = lambda loads, tile: -(-loads // tile) * tile,
    order: Callable = lambda topk_ids: np.argsort(topk_ids.ravel(), kind="stable"),
    stands: Callable = lambda pair, k: pair,
    row: Callable = lambda first, rank: first + rank,
    empty: int = reference.EMPTY,
    expert_offsets: Callable = lambda first, tile: first,
    counted: Callable = lambda topk_ids: topk_ids,
) -> Callable:
    """The right tables with one step exchanged."""

    def wrong(inputs: dict, case: Case) -> dict:
        topk_ids, (k, e, tile) = inputs["topk_ids"], (case.sizes[n] for n in ("K", "E", "TILE"))
        flat, loads = topk_ids.ravel(), np.bincount(counted(topk_ids).ravel(), minlength=e)
        whole = padded(loads, tile)
        first = np.concatenate([[0], np.cumsum(whole)])
        by = order(topk_ids)
        before = np.concatenate([[0], np.cumsum(np.bincount(flat, minlength=e))])
        at = row(first[flat[by]], np.arange(flat.size) - before[flat[by]])
        sorted_token_ids = np.full(max(rows(case.sizes), int(at.max(initial=-1)) + 1), empty)
        sorted_token_ids[at] = stands(by, k)
        inv_permuted_idx = np.empty(flat.size)
        inv_permuted_idx[by] = at
        expert_ids = np.repeat(np.arange(e), -(-whole // tile))
        found = {
            "expert_offsets": expert_offsets(first, tile),
            "sorted_token_ids": sorted_token_ids[: rows(case.sizes)],
            "inv_permuted_idx": inv_permuted_idx.reshape(topk_ids.shape),
            "expert_ids": with_room(expert_ids, rooms(case.sizes)),
        }
        return {name: np.asarray(value, np.float64) for name, value in found.items()}

    return wrong


def backwards(topk_ids: np.ndarray) -> np.ndarray:
    """Experts in order, and within each the last pair first."""
    return np.lexsort((-np.arange(topk_ids.size), topk_ids.ravel()))


def slot_by_slot(topk_ids: np.ndarray) -> np.ndarray:
    """Experts in order, and within each all first choices before all second ones."""
    slot = np.broadcast_to(np.arange(topk_ids.shape[1]), topk_ids.shape).ravel()
    return np.lexsort((slot, topk_ids.ravel()))


def by_blocks(size: int, before: Callable) -> Callable:
    """Compute rows as blocks of tokens do, where `before`(counts of all blocks, block) gives the pairs of earlier
    blocks."""

    def wrong(inputs: dict, case: Case) -> dict:
        right, (e, length) = would()(inputs, case), (case.sizes["E"], rows(case.sizes))
        topk_ids, inv_permuted_idx = inputs["topk_ids"], right["inv_permuted_idx"].copy()
        blocks = [slice(start, start + size) for start in range(0, len(topk_ids), size)]
        counts = np.array([np.bincount(topk_ids[some].ravel(), minlength=e) for some in blocks])
        for number, some in enumerate(blocks):
            first = right["expert_offsets"][:e] + before(counts, number)
            for expert in np.flatnonzero(counts[number]):
                mine = topk_ids[some] == expert
                inv_permuted_idx[some][mine] = first[expert] + np.arange(mine.sum())
        sorted_token_ids, inside = np.full(length, float(reference.EMPTY)), inv_permuted_idx.ravel() < length
        sorted_token_ids[inv_permuted_idx.ravel()[inside].astype(int)] = np.flatnonzero(inside)
        return right | {"inv_permuted_idx": inv_permuted_idx, "sorted_token_ids": sorted_token_ids}

    return wrong


def nothing_before(counts: np.ndarray, block: int) -> int:
    return 0


def own_block_too(counts: np.ndarray, block: int) -> np.ndarray:
    return counts[: block + 1].sum(0)


def cleared(start: Callable, step: Callable) -> Callable:
    """Clear expert_ids in parts: each program clears from start(program) on in steps of step(programs), and the others
    hold anything."""

    def wrong(inputs: dict, case: Case) -> dict:
        right = would()(inputs, case)
        expert_ids, programs = right["expert_ids"].copy(), max(1, -(-case.sizes["T"] // BLOCK))
        reached = np.zeros(len(expert_ids), bool)
        for program in range(programs):
            for at in range(start(program), len(expert_ids), step(programs)):
                reached[at : at + CLEARED] = True
        expert_ids[~reached & (expert_ids == reference.EMPTY)] = np.nan
        return right | {"expert_ids": expert_ids}

    return wrong


MISTAKES = (
    family(
        "not padded",
        "each expert's rows are padded to whole tiles before the next one begins: round its load up to a multiple of TILE",
        would(padded=lambda loads, tile: loads),
        edits=(
            (WHOLE, "whole = total"),
            (AT_TILE, f"(tl.cumsum({CEILED}, 0) - {CEILED} + j)"),
        ),
    ),
    family(
        "always one tile more",
        "a load that fills its tiles needs no further one: round up, (load + TILE - 1) // TILE",
        would(padded=lambda loads, tile: (loads // tile + (loads > 0)) * tile),
        edits=(
            (WHOLE, "whole = (total // TILE + (total > 0).to(tl.int32)) * TILE"),
            (TILES, "tl.cdiv(T, TILE) + 1, blocks"),
            (OF_LOAD, "mask=j * TILE < whole"),
        ),
    ),
    family(
        "a tile for nobody",
        "an expert without a pair has no tile: 0 rounded up is 0",
        would(padded=lambda loads, tile: np.maximum(1, -(-loads // tile)) * tile),
        edits=(
            (WHOLE, "whole = tl.where(offs_e < E, tl.maximum(1, (total + TILE - 1) // TILE), 0) * TILE"),
            (OF_LOAD, "mask=j * TILE < whole"),
        ),
    ),
    family(
        "last first",
        "within an expert pairs keep their order: the rank counts the tokens before this one, not those after it",
        would(order=backwards),
        edits=(
            (RANK, "rank = tl.sum(picked.to(tl.int32), 0)[None, :] - tl.cumsum(picked.to(tl.int32), 0)"),
            ("tl.where(b < block, counts, 0)", "tl.where(b > block, counts, 0)"),
        ),
    ),
    family(
        "tokens for pairs",
        "this is only the token: a row holds the number of its pair, token * K + slot",
        would(stands=lambda pair, k: pair // k),
        edits=((PAIR, "t[:, None] + 0 * slots"),),
    ),
    family(
        "padding of 0",
        "a row that only pads a tile holds -1: 0 is a pair, the first of token 0",
        would(empty=0),
        edits=(
            (EMPTY, "empty = tl.zeros((256,), tl.int32)"),
            ("stride_expert_idsi, empty,", "stride_expert_idsi, empty - 1,"),
        ),
    ),
    family(
        "rank from 1",
        "an expert's first pair belongs in its first row: the scan counts the pair itself, so subtract it",
        would(row=lambda first, rank: first + rank + 1),
        edits=((RANK, "rank = tl.cumsum(picked.to(tl.int32), 0)"),),
    ),
    family(
        "offsets in tiles",
        "expert_offsets count rows, not tiles",
        would(expert_offsets=lambda first, tile: first // tile),
        edits=(
            (FIRST, "first // TILE, mask=offs_e < E"),
            (END, "stride_expert_offsetse, tl.sum(whole, 0) // TILE"),
        ),
    ),
    family(
        "each block for itself",
        "every block of tokens begins at an expert's first row, so two pairs get the same row: add the expert's pairs in all earlier blocks, first + before + rank",
        *(by_blocks(size, nothing_before) for size in BLOCKS),
        edits=(("(first + before)[None, :]", "first[None, :]"),),
    ),
    family(
        "earlier blocks and its own",
        "a block's own pairs are counted as if they came before it: add up only earlier blocks, b < block",
        *(by_blocks(size, own_block_too) for size in BLOCKS),
        edits=(("tl.where(b < block,", "tl.where(b <= block,"),),
    ),
    edited(
        "the first choice alone is counted",
        (
            "for slot in tl.static_range(TOP_K):\n        ids = tl.load(topk_ids_ptr + t * stride_topk_idst + slot * stride_topk_idsk, mask=t < T, other=-1)\n        counts",
            "for slot in tl.static_range(1):\n        ids = tl.load(topk_ids_ptr + t * stride_topk_idst + slot * stride_topk_idsk, mask=t < T, other=-1)\n        counts",
        ),
    ),
    edited(
        "totals of 16 bits",
        ("    whole = (total +", "    total = total.to(tl.int16).to(tl.int32)\n    whole = (total +"),
    ),
    edited("masked tokens pick expert 0", ("mask=t < T, other=-1", "mask=t < T, other=0")),
    edited(
        "no program where there is no token", ("max(1, triton.cdiv(p.T, block))", "triton.cdiv(p.T, block)")
    ),
    edited(
        "no end",
        ("        tl.store(expert_offsets_ptr + E * stride_expert_offsetse, tl.sum(whole, 0))\n", ""),
    ),
    edited(
        "expert_ids not cleared",
        ("for at in range(block * 256, TILES,", "for at in range(block * 256, 0 * TILES,"),
    ),
    edited(
        "expert_ids cleared with a gap between programs",
        ("for at in range(block * 256, TILES,", "for at in range(block * 257, TILES,"),
    ),
    edited("expert_ids cleared with a gap between turns", ("TILES, blocks * 256)", "TILES, blocks + 256)")),
    edited("one tile an expert", (f"for j in range(block, {TILES}):", "for j in range(block, 1, blocks):")),
    edited("sixteen rows a tile", (WHOLE, "whole = (total + 15) // 16 * 16")),
    edited(
        "the strides of topk_ids for inv_permuted_idx",
        (
            "t[:, None] * stride_inv_permuted_idxt + slots * stride_inv_permuted_idxk",
            "t[:, None] * stride_topk_idst + slots * stride_topk_idsk",
        ),
    ),
    edited("sorted_token_ids taken for dense", ("row * stride_sorted_token_idsr", "row")),
    edited(
        "expert_ids taken for dense",
        (f"{AT_TILE} * stride_expert_idsi", AT_TILE),
        ("tile * stride_expert_idsi", "tile"),
    ),
    edited(
        "expert_offsets taken for dense",
        ("offs_e * stride_expert_offsetse", "offs_e"),
        ("E * stride_expert_offsetse", "E"),
    ),
    edited("T up to 1024", ("mask=t < T,", "mask=t < tl.minimum(T, 1024),")),
    edited(
        "ranks by whoever comes first",
        ("before += tl.where(b < block, counts, 0)", "before += 0"),
        (
            RANK,
            f"{RANK}\n    before = tl.atomic_add(counts_ptr + blocks * EP + offs_e, tl.sum(picked.to(tl.int32), 0))",
        ),
        ('((blocks, experts), "i32", 0)', '((blocks + 1, experts), "i32", 0)'),
        part="traffic",
    ),
    edited(
        "nonsense at the size that is compiled",
        ("    picked = slots >= 0", "    picked = (slots >= 0) & ((T != 512) | (t < 500)[:, None])"),
    ),
    edited(
        "choices once more",
        (
            "        slots = tl.where",
            f"        ids = tl.maximum(ids, {AGAIN})\n        slots = tl.where",
        ),
        part="traffic",
    ),
    edited("counts of blocks of sixteen", (BLOCK_LINE, "    block = 16\n"), part="traffic"),
    edited(
        "cleared twice",
        (
            "        tl.store(sorted_token_ids_ptr + row * stride_sorted_token_idsr, empty, mask=row < ROWS)\n",
            "        tl.store(sorted_token_ids_ptr + row * stride_sorted_token_idsr, empty, mask=row < ROWS)\n        tl.store(sorted_token_ids_ptr + row * stride_sorted_token_idsr, empty + 0 * at, mask=row < ROWS)\n",
        ),
        part="traffic",
    ),
    edited("few programs", (BLOCK_LINE, "    block = 256\n"), part="speed"),
    edited(
        "each pair thirty times",
        (
            "    picked = slots >= 0",
            "    for _ in range(30):\n        slots = tl.maximum(slots, slots - 1)\n    picked = slots >= 0",
        ),
        part="speed",
    ),
    edited("more than registers hold", ('"num_warps": 8', '"num_warps": 1'), part="compiled"),
)


SHORTCUTS = {
    "slot by slot": computing(would(order=slot_by_slot)),
    "expert_ids cleared with a gap between programs": computing(
        cleared(lambda program: program * (CLEARED + 1), lambda programs: programs * CLEARED)
    ),
    "expert_ids cleared with a gap between turns": computing(
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
    "fewer pairs than experts": lambda question, case: case.sizes["K"] == case.sizes["E"],
    **{
        f"stride {axis} of {name} taken for 1": one_stride(name, axis)
        for name in ("topk_ids", "inv_permuted_idx")
        for axis in (0, 1)
    },
    **{
        f"the stride of {name} taken for 1": one_stride(name, 0)
        for name in ("expert_offsets", "sorted_token_ids", "expert_ids")
    },
    **{f"{name} taken for dense": dense(name) for name in ("topk_ids", "inv_permuted_idx")},
    "the strides of topk_ids for inv_permuted_idx": same_strides("topk_ids", "inv_permuted_idx"),
}
