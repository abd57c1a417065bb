"""Right answers in other forms: other containers, other ways to the same numbers."""

FORMS = {}

NUMPY_FORMS = {
    "expert_load_balance.count_loads": {
        "lists": "def count_loads(chosen, device_of, devices):\n    picks = [int(e) for row in chosen for e in row]\n    loads = [picks.count(e) for e in range(len(device_of))]\n    return loads, [sum(l for l, d in zip(loads, device_of) if d == one) for one in range(devices)]",
        "by comparison": "def count_loads(chosen, device_of, devices):\n    loads = (chosen[..., None] == np.arange(len(device_of))).sum((0, 1))\n    return loads, (device_of == np.arange(devices)[:, None]) @ loads",
    },
    "expert_load_balance.layer_time": {
        "an array": "def layer_time(loads, device_of, devices, row_s, exchange_s):\n    held = np.zeros(devices)\n    np.add.at(held, device_of, loads)\n    m = held.max() / held.mean()\n    return np.array([m, held.max() * row_s + exchange_s, (m - 1) / m])",
    },
    "expert_load_balance.hot_slowdown": {
        "device by device": "def hot_slowdown(top_k, experts, devices, hot_share):\n    loads = np.full(experts, (top_k - hot_share) / (experts - 1))\n    loads[0] = hot_share\n    held = loads.reshape(devices, -1).sum(1)\n    return held.max() / held.mean()",
    },
    "expert_load_balance.least_hot_share": {
        "halved again and again": "def least_hot_share(top_k, experts, devices, slowdown):\n    per = experts // devices\n    def slow(h):\n        return (h + (per - 1) * (top_k - h) / (experts - 1)) * devices / top_k\n    if slow(1.0) < slowdown - 1e-12:\n        return float('inf')\n    low, high = 0.0, 1.0\n    for _ in range(200):\n        mid = (low + high) / 2\n        low, high = (mid, high) if slow(mid) < slowdown else (low, mid)\n    return high",
    },
    "expert_load_balance.capacity_kept": {
        "by rank in the queue": "def capacity_kept(chosen, experts, factor):\n    capacity = -int(-factor * chosen.size // experts)\n    queue = chosen.T.reshape(-1)\n    before = np.array([(queue[:i] == e).sum() for i, e in enumerate(queue)])\n    return capacity, (before < capacity).reshape(chosen.T.shape).T",
        "numbers for flags": "def capacity_kept(chosen, experts, factor):\n    left = [math.ceil(factor * chosen.size / experts)] * experts\n    capacity, kept = left[0], [[0] * chosen.shape[1] for _ in chosen]\n    for j in range(chosen.shape[1]):\n        for t, row in enumerate(chosen):\n            if left[row[j]]:\n                left[row[j]] -= 1\n                kept[t][j] = 1\n    return [capacity, kept]",
    },
    "expert_load_balance.balance_gradient": {
        "by differences of probabilities": "def balance_gradient(x, router, chosen):\n    n, e = len(x), router.shape[1]\n    l = x @ router\n    p = np.exp(l - l.max(1, keepdims=True))\n    p /= p.sum(1, keepdims=True)\n    f = np.array([(chosen == i).mean() for i in range(e)])\n    g = sum(np.outer(row, (np.diag(q) - np.outer(q, q)) @ f) for row, q in zip(x, p))\n    return (p * f).sum() * e / n, g * e / n",
    },
    "expert_load_balance.bias_rounds": {
        "sorted lists": "def bias_rounds(scores, top_k, rate, rounds):\n    bias, seen = [0.0] * scores.shape[1], []\n    for _ in range(rounds):\n        loads = [0] * len(bias)\n        for row in scores:\n            for e in sorted(range(len(bias)), key=lambda e: (-(row[e] + bias[e]), e))[:top_k]:\n                loads[e] += 1\n        mean = sum(loads) / len(loads)\n        bias = [b + rate * ((l < mean) - (l > mean)) for b, l in zip(bias, loads)]\n        seen.append(loads)\n    return bias, seen",
    },
    "expert_load_balance.place_experts": {
        "a list": "def place_experts(loads, devices):\n    held, slots = [0.0] * devices, [len(loads) // devices] * devices\n    out = [0] * len(loads)\n    for e in sorted(range(len(loads)), key=lambda e: -loads[e]):\n        d = min((d for d in range(devices) if slots[d]), key=lambda d: held[d])\n        held[d] += loads[e]\n        slots[d] -= 1\n        out[e] = d\n    return out",
        "the last of equals, and floats": "def place_experts(loads, devices):\n    held, count, out = np.zeros(devices), np.zeros(devices), np.zeros(len(loads))\n    for e in np.argsort(loads)[::-1]:\n        free = np.where(count < len(loads) // devices, held, np.inf)\n        d = devices - 1 - free[::-1].argmin()\n        held[d] += loads[e]\n        count[d] += 1\n        out[e] = d\n    return out",
        "greedy, then swaps": "def place_experts(loads, devices):\n    per, n = len(loads) // devices, len(loads)\n    held, count, at = np.zeros(devices), np.zeros(devices, int), np.zeros(n, int)\n    for e in np.argsort(-loads):\n        d = min((d for d in range(devices) if count[d] < per), key=lambda d: held[d])\n        held[d], count[d], at[e] = held[d] + loads[e], count[d] + 1, d\n    for _ in range(50):\n        top = held.argmax()\n        tries = [(max(held[top] - loads[a] + loads[b], held[at[b]] - loads[b] + loads[a]), a, b) for a in np.flatnonzero(at == top) for b in np.flatnonzero(at != top)]\n        best, a, b = min(tries)\n        if best >= held.max():\n            break\n        held[at[a]] += loads[b] - loads[a]\n        held[at[b]] += loads[a] - loads[b]\n        at[a], at[b] = at[b], at[a]\n    return at",
    },
    "expert_load_balance.copies_of": {
        "a heap": "import heapq\n\n\ndef copies_of(loads, devices, spare):\n    heap = [(-v, e, 1) for e, v in enumerate(loads)]\n    heapq.heapify(heap)\n    copies = [1] * len(loads)\n    while spare and heap:\n        _, e, n = heapq.heappop(heap)\n        if n < devices:\n            copies[e], spare = n + 1, spare - 1\n            heapq.heappush(heap, (-loads[e] / (n + 1), e, n + 1))\n    return tuple(copies), max(v / n for v, n in zip(loads, copies))",
    },
}

# Of the questions with several ranks: the right answer edited.
RANKS_FORMS = {
    "expert_load_balance.dispatch_tokens": {
        "a token at a time": [
            (
                "token = np.concatenate([np.flatnonzero(g) for g in goes])",
                "token = [t for g in goes for t in range(len(x)) if g[t]]\n    token = np.array(token, int)",
            )
        ],
        "lists, also of no rows": [
            (
                "return comm.send_rows(x[token], send, receive), comm.send_rows(chosen[token], send, receive)",
                "rows, picks = comm.send_rows(x[token], send, receive), comm.send_rows(chosen[token], send, receive)\n    return list(rows), np.array(list(picks))",
            )
        ],
        "choices and rows in one": [
            (
                "return comm.send_rows(x[token], send, receive), comm.send_rows(chosen[token], send, receive)",
                "both = comm.send_rows(np.concatenate([x, chosen.astype(x.dtype)], axis=1)[token], send, receive)\n    return both[:, : x.shape[1]], both[:, x.shape[1] :].astype(int)",
            )
        ],
        "choices first, as small numbers": [
            (
                "return comm.send_rows(x[token], send, receive), comm.send_rows(chosen[token], send, receive)",
                "picks = comm.send_rows(chosen[token].astype(np.uint8), send, receive)\n    return [comm.send_rows(x[token], send, receive), picks]",
            )
        ],
        "counts for each expert": [
            (
                "receive = comm.exchange_counts(send)",
                "each = np.array([np.bincount(chosen[g].reshape(-1), minlength=experts)[r * per : (r + 1) * per] for r, g in enumerate(goes)])\n    each[:, 0] = send\n    receive = comm.exchange_counts(each)[:, 0]",
            )
        ],
        "lists for splits": [("send = np.array([g.sum() for g in goes])", "send = [int(g.sum()) for g in goes]")],
        "random ones with a seed": [
            (
                "receive = comm.exchange_counts(send)",
                "np.random.default_rng(7).random(3)\n    receive = comm.exchange_counts(send)",
            )
        ],
    },
    "expert_load_balance.expert_layer": {
        "row by row": [
            (
                "        r, j = np.nonzero(picks == e)\n        out[r] += shares[r, j, None] * expert(rows[r], gate[e], up[e], down[e])",
                "        for r, j in np.argwhere(picks == e):\n            out[r] += shares[r, j] * expert(rows[r : r + 1], gate[e], up[e], down[e])[0]",
            )
        ],
        "summed wide, sent narrow": [
            ("out = np.zeros_like(rows)", "out = np.zeros(rows.shape)"),
            ("comm.send_rows(out, receive, send)", "comm.send_rows(out.astype(x.dtype), receive, send)"),
        ],
        "rows, choices and weights in one": [
            (
                "rows = comm.send_rows(x[token], send, receive)",
                "k, h = chosen.shape[1], x.shape[1]\n    all_of_it = comm.send_rows(np.hstack([x, chosen.astype(x.dtype), weights])[token], send, receive)\n    rows = np.ascontiguousarray(all_of_it[:, :h])",
            ),
            ("comm.send_rows(chosen[token], send, receive)", "all_of_it[:, h : h + k].astype(int)"),
            ("comm.send_rows(weights[token], send, receive)", "all_of_it[:, h + k :]"),
        ],
        "own tokens without a detour": [
            (
                "    return y",
                "    mine = y\n    return mine.tolist() if comm.rank % 2 and len(mine) else mine",
            )
        ],
    },
    "expert_load_balance.replicated_layer": {
        "turns by the token alone": [("copies[(t + comm.rank) % len(copies)]", "copies[t % len(copies)]")],
        "turns by expert": [
            ("    place = np.full", "    seen = np.full(len(holders), comm.rank)\n    place = np.full"),
            (
                "        place[t, j] = copies[(t + comm.rank) % len(copies)]",
                "        place[t, j] = copies[seen[chosen[t, j]] % len(copies)]\n        seen[chosen[t, j]] += 1",
            ),
        ],
    },
}
