"""Routing, right in other ways."""

from grader.topics.moe_routing.wrong_combine import ADD, BLOCK, COMBINE, SLOTS
from grader.topics.moe_routing.wrong_gemm import DOTS, GEMM, LOOP, SILU, STEP, WIDTH
from grader.topics.moe_routing.wrong_order import ORDER, RANK, WHOLE
from grader.topics.moe_routing.wrong_order import BLOCK as TOKENS

FORMS = {
    ORDER: {
        "three launches, with a scan of its own": ((), "order_scanned"),
        "rounded up by cdiv": ((), [(WHOLE, "whole = tl.cdiv(total, TILE) * TILE")]),
        "ranks from the end": ((), [(RANK, "rank = tl.sum(picked.to(tl.int32), 0)[None, :] - tl.cumsum(picked.to(tl.int32), 0, reverse=True)")]),
        "the last program stores the offsets": ((), [("if block == 0:", "if block == blocks - 1:")]),
        "a while loop over blocks": ((), [("    for b in range(0, blocks):", "    b = block * 0 - 1\n    while b < blocks - 1:\n        b += 1")]),
        "sixteen warps": ((), [('"num_warps": 8', '"num_warps": 16')]),
        "64 lanes of experts at least": ((), [("max(16, triton", "max(64, triton")]),
        "blocks of 32 tokens": (("traffic",), [(TOKENS, "    block = 32\n")]),
    },
    GEMM: {
        "persistent programs": ((), "gemm_persistent"),
        "added, not accumulated": ((), [(DOTS[0], "gate += tl.dot(x, w_gate)"), (DOTS[1], "up += tl.dot(x, w_up)")]),
        "weights on the left": ((), [("gate = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)", "gate = tl.zeros((BLOCK_N, BLOCK_M), tl.float32)"), ("up = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)", "up = tl.zeros((BLOCK_N, BLOCK_M), tl.float32)"), (DOTS[0], "gate = tl.dot(tl.trans(w_gate), tl.trans(x), gate)"), (DOTS[1], "up = tl.dot(tl.trans(w_up), tl.trans(x), up)"), ("        at_h", "        h = tl.trans(h)\n        at_h")]),
        "a while loop": ((), [(f"        for start in {LOOP}:", "        start = H * 0 - BLOCK_K\n        while start < H - BLOCK_K:\n            start += BLOCK_K")]),
        "SiLU by its sigmoid": ((), [(SILU, "h = gate * tl.sigmoid(gate) * up")]),
        "steps of 32": ((), [(STEP, '"BLOCK_K": 32')]),
        "64 columns, eight warps": ((), [(WIDTH, "    width = 64\n"), ('"num_warps": 4', '"num_warps": 8')]),
        "strips first": ((), [("tl.program_id(1)", "tl.program_id(2)"), ("tl.program_id(0)", "tl.program_id(1)"), ("tl.program_id(2)", "tl.program_id(0)"), ("(max(1, most_tiles(p)), triton.cdiv(p.N, width))", "(triton.cdiv(p.N, width), max(1, most_tiles(p)))")]),
    },
    COMBINE: {
        "all picks in one block": ((), "combine_all_picks"),
        "strips of 256": ((), [(BLOCK, "min(256, triton.next_power_of_2(p.H))")]),
        "eight warps": ((), [('"num_warps": 4', '"num_warps": 8')]),
        "from the last slot": ((), [(f"for slot in {SLOTS}:", f"for back in {SLOTS}:\n            slot = PICKS - 1 - back")]),
        "a loop at run time": ((), [(SLOTS, "range(0, K)"), ("out_ptr, T, H,", "out_ptr, T, K, H,")]),
        "a fused multiply-add": ((), [(ADD, "acc = tl.fma(y.to(tl.float32), tl.zeros_like(acc) + weight, acc)")]),
        "four tokens a program": ((), [("    token = tl.program_id(0)\n", ""), ("    if token < T:\n", "    for token in range(4 * tl.program_id(0), tl.minimum(4 * tl.program_id(0) + 4, T)):\n"), ("max(1, p.T)", "max(1, triton.cdiv(p.T, 4))")]),
    },
}

NUMPY_FORMS = {
    "moe_routing.route": {
        "lists, by sorted": "def route(x, router, k, softmax_first):\n    chosen, weights = [], []\n    for row in (x @ router.T).tolist():\n        best = sorted(range(len(row)), key=lambda e: (-row[e], e))[:k]\n        top = max(row)\n        whole = sum(math.exp(row[e] - top) for e in (range(len(row)) if softmax_first else best))\n        chosen.append(best)\n        weights.append([math.exp(row[e] - top) / whole for e in best])\n    return np.array(chosen, int).reshape(-1, k), np.array(weights).reshape(-1, k)",
        "lexsort, a log-sum-exp": "def route(x, router, k, softmax_first):\n    z = x @ router.T\n    c = np.lexsort((np.broadcast_to(np.arange(z.shape[1]), z.shape), -z), axis=1)[:, :k]\n    best = np.take_along_axis(z, c, 1)\n    of = z if softmax_first else best\n    top = of.max(1, keepdims=True)\n    return c, np.exp(best - top - np.log(np.exp(of - top).sum(1, keepdims=True)))",
    },
    "moe_routing.count": {
        "a loop": "def count(chosen, experts, tile):\n    loads, offsets = [0] * experts, [0]\n    for e in chosen.ravel().tolist():\n        loads[e] += 1\n    for n in loads:\n        offsets.append(offsets[-1] + math.ceil(n / tile) * tile)\n    return loads, offsets",
        "one-hot": "def count(chosen, experts, tile):\n    n = (chosen.reshape(-1, 1) == np.arange(experts)).sum(0)\n    return n, np.pad(np.cumsum((n + tile - 1) // tile * tile), (1, 0))",
    },
    "moe_routing.permute": {
        "expert by expert": "def permute(chosen, experts, tile):\n    picks, place, flat = [], np.zeros(chosen.size, int), chosen.ravel()\n    for e in range(experts):\n        for p in np.flatnonzero(flat == e):\n            place[p] = len(picks)\n            picks.append(int(p))\n        picks += [-1] * (-len(picks) % tile)\n    return np.array(picks, int), place.reshape(chosen.shape)",
        "ranks by a running sum": "def permute(chosen, experts, tile):\n    flat = chosen.ravel()\n    hot = flat[:, None] == np.arange(experts)\n    n = hot.sum(0)\n    end = np.cumsum(-(-n // tile) * tile)\n    start = end + n // -tile * tile\n    row = start[flat] + (np.cumsum(hot, 0) - 1)[np.arange(len(flat)), flat]\n    picks = np.full(end[-1], -1)\n    picks[row] = np.arange(len(flat))\n    return picks, row.reshape(chosen.shape)",
    },
    "moe_routing.experts": {
        "row by row": "def experts(rows, offsets, gate_up, down):\n    half = down.shape[2]\n    out = np.zeros((len(rows), down.shape[1]))\n    for r in range(len(rows)):\n        e = int(np.searchsorted(offsets, r, 'right')) - 1\n        g, u = gate_up[e][:half] @ rows[r], gate_up[e][half:] @ rows[r]\n        out[r] = down[e] @ (g * u / (1 + np.exp(-g)))\n    return out",
        "joined, with tanh for the sigmoid": "def experts(rows, offsets, gate_up, down):\n    out = [np.zeros((0, down.shape[1]))]\n    for e, (a, b) in enumerate(zip(offsets[:-1], offsets[1:])):\n        g, u = np.split(rows[a:b] @ gate_up[e].T, 2, -1)\n        out.append((g * (1 + np.tanh(g / 2)) / 2 * u) @ down[e].T)\n    return np.concatenate(out)",
    },
    "moe_routing.combine": {
        "einsum": "def combine(rows, place, weights):\n    return np.einsum('tkh,tk->th', rows[place], weights)",
        "slot by slot": "def combine(rows, place, weights):\n    out = np.zeros((len(place), rows.shape[1]))\n    for j in range(place.shape[1]):\n        out += weights[:, j : j + 1] * rows[place[:, j]]\n    return out",
    },
    "moe_routing.tile_use": {
        "in numpy": "def tile_use(loads, tile, factor):\n    n = np.array(loads)\n    kept = n if factor is None else np.minimum(n, np.ceil(factor * n.mean()))\n    rows = (np.ceil(kept / tile) * tile).sum()\n    return rows - kept.sum(), kept.sum() / rows, (n - kept).sum()",
    },
    "moe_routing.layer_share": {
        "in numpy": "def layer_share(events):\n    names, starts, us = zip(*events)\n    names, starts, us = np.array(names), np.array(starts), np.array(us)\n    mine = np.char.startswith(names, 'moe.')\n    return us[mine].sum() / np.ptp(np.concatenate([starts, starts + us])), us[names == 'moe.experts'].sum() / us[mine].sum()",
    },
}
