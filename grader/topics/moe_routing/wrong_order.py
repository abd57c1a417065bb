"""Kernels that order picks, wrong."""

from grader.questions.tables import because, changed

ORDER = "moe_routing.order"

WHOLE = "whole = (total + TILE - 1) // TILE * TILE"
TILES = "tl.cdiv(T, TILE), blocks"
OWNER, OF_LOAD = "(first // TILE + j)", "mask=j * TILE < total"
RANK = "rank = tl.cumsum(picked.to(tl.int32), 0) - picked.to(tl.int32)"
CEILED = "((total + TILE - 1) // TILE)"
EMPTY = "empty = tl.full((256,), -1, tl.int32)"
PICK = "t[:, None] * PICKS + slots"
FIRST, END = "first, mask=offs_e < E", "stride_offsetse, tl.sum(whole, 0)"
BLOCK = "    block = 64\n"
AGAIN = "tl.load(chosen_ptr + t * stride_chosent + slot * stride_chosenk, mask=t < T, other=-1)"

WRONG = {
    ORDER: {
        "not padded": changed(
            (WHOLE, "whole = total"),
            (OWNER, f"(tl.cumsum({CEILED}, 0) - {CEILED} + j)"),
            mistake="not padded",
        ),
        "always one tile more": changed(
            (WHOLE, "whole = (total // TILE + (total > 0).to(tl.int32)) * TILE"),
            (TILES, "tl.cdiv(T, TILE) + 1, blocks"),
            (OF_LOAD, "mask=j * TILE < whole"),
            mistake="always one tile more",
        ),
        "a tile for nobody": changed(
            (WHOLE, "whole = tl.where(offs_e < E, tl.maximum(1, (total + TILE - 1) // TILE), 0) * TILE"),
            (OF_LOAD, "mask=j * TILE < whole"),
            mistake="a tile for nobody",
        ),
        "last first": changed(
            (RANK, "rank = tl.sum(picked.to(tl.int32), 0)[None, :] - tl.cumsum(picked.to(tl.int32), 0)"),
            ("tl.where(b < block, counts, 0)", "tl.where(b > block, counts, 0)"),
            mistake="last first",
        ),
        "tokens for picks": changed((PICK, "t[:, None] + 0 * slots"), mistake="tokens for picks"),
        "padding of 0": changed(
            (EMPTY, "empty = tl.zeros((256,), tl.int32)"),
            ("stride_owneri, empty,", "stride_owneri, empty - 1,"),
            mistake="padding of 0",
        ),
        "rank from 1": changed((RANK, "rank = tl.cumsum(picked.to(tl.int32), 0)"), mistake="rank from 1"),
        "offsets in tiles": changed(
            (FIRST, "first // TILE, mask=offs_e < E"),
            (END, "stride_offsetse, tl.sum(whole, 0) // TILE"),
            mistake="offsets in tiles",
        ),
        "each block for itself": changed(
            ("(first + before)[None, :]", "first[None, :]"), mistake="each block for itself"
        ),
        "earlier blocks and its own": changed(
            ("tl.where(b < block,", "tl.where(b <= block,"), mistake="earlier blocks and its own"
        ),
        "the first choice alone is counted": changed(
            (
                "for slot in tl.static_range(PICKS):\n        chosen = tl.load(chosen_ptr + t * stride_chosent + slot * stride_chosenk, mask=t < T, other=-1)\n        counts",
                "for slot in tl.static_range(1):\n        chosen = tl.load(chosen_ptr + t * stride_chosent + slot * stride_chosenk, mask=t < T, other=-1)\n        counts",
            )
        ),
        "masked tokens pick expert 0": changed(("mask=t < T, other=-1", "mask=t < T, other=0")),
        "no program where there is no token": changed(
            ("max(1, triton.cdiv(p.T, block))", "triton.cdiv(p.T, block)")
        ),
        "no end": changed(("        tl.store(offsets_ptr + E * stride_offsetse, tl.sum(whole, 0))\n", "")),
        "owner not cleared": changed(
            ("for at in range(block * 256, TILES,", "for at in range(block * 256, 0 * TILES,")
        ),
        "owners cleared with a gap between programs": changed(
            ("for at in range(block * 256, TILES,", "for at in range(block * 257, TILES,")
        ),
        "owners cleared with a gap between turns": changed(
            ("TILES, blocks * 256)", "TILES, blocks + 256)"),
        ),
        "one tile an expert": changed(
            (f"for j in range(block, {TILES}):", "for j in range(block, 1, blocks):")
        ),
        "sixteen rows a tile": changed((WHOLE, "whole = (total + 15) // 16 * 16")),
        "the strides of the choices for the places": changed(
            (
                "t[:, None] * stride_placet + slots * stride_placek",
                "t[:, None] * stride_chosent + slots * stride_chosenk",
            )
        ),
        "picks taken for dense": changed(("row * stride_picksr", "row")),
        "owner taken for dense": changed(
            (f"{OWNER} * stride_owneri", OWNER), ("tile * stride_owneri", "tile")
        ),
        "offsets taken for dense": changed(
            ("offs_e * stride_offsetse", "offs_e"), ("E * stride_offsetse", "E")
        ),
        "T up to 1024": changed(("mask=t < T,", "mask=t < tl.minimum(T, 1024),")),
        "ranks by whoever comes first": changed(
            ("before += tl.where(b < block, counts, 0)", "before += 0"),
            (
                RANK,
                f"{RANK}\n    before = tl.atomic_add(counts_ptr + blocks * EP + offs_e, tl.sum(picked.to(tl.int32), 0))",
            ),
            ('((blocks, experts), "i32", 0)', '((blocks + 1, experts), "i32", 0)'),
            part="traffic",
        ),
        "nonsense at the size that is compiled": changed(
            ("    picked = slots >= 0", "    picked = (slots >= 0) & ((T != 512) | (t < 500)[:, None])")
        ),
        "choices once more": changed(
            (
                "        slots = tl.where",
                f"        chosen = tl.maximum(chosen, {AGAIN})\n        slots = tl.where",
            ),
            part="traffic",
        ),
        "counts of blocks of sixteen": changed((BLOCK, "    block = 16\n"), part="traffic"),
        "cleared twice": changed(
            (
                "        tl.store(picks_ptr + row * stride_picksr, empty, mask=row < ROWS)\n",
                "        tl.store(picks_ptr + row * stride_picksr, empty, mask=row < ROWS)\n        tl.store(picks_ptr + row * stride_picksr, empty + 0 * at, mask=row < ROWS)\n",
            ),
            part="traffic",
        ),
        "few programs": changed((BLOCK, "    block = 256\n"), part="speed"),
        "each pick thirty times": changed(
            (
                "    picked = slots >= 0",
                "    for _ in range(30):\n        slots = tl.maximum(slots, slots - 1)\n    picked = slots >= 0",
            ),
            part="speed",
        ),
        "more than registers hold": changed(('"num_warps": 8', '"num_warps": 1'), part="compiled"),
    },
}

EQUIVALENT = {
    ORDER: because(
        {
            "a second program beyond the tokens counts none and places none": ["plus one: 1 -> 2"],
            "fewer spare lanes, and still one for each expert": ["halved: 16 -> 8"],
            "every count is stored before one is loaded": ["plus one: 0 -> 1 (19)"],
            "no expert is numbered below 0": ["plus one: 1 -> 2 (5)", "plus one: 1 -> 2 (6)"],
            "a slot below 0 is no pick, however far below": ["plus one: 1 -> 2 (3)"],
            "an expert beyond the last would begin at the end, which stands there next": [
                "comparison: offs_e < E -> offs_e <= E"
            ],
            "where few tokens have many experts some owners are cleared twice, to the same": [
                "halved: 256 -> 128 (5)"
            ],
        }
    ),
}
