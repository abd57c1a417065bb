"""Routing, right in other ways."""

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
