"""List right answers to *count* in other forms."""



FORMS = {
        "a loop": "def count(topk_ids, experts, tile):\n    loads, expert_offsets = [0] * experts, [0]\n    for e in topk_ids.ravel().tolist():\n        loads[e] += 1\n    for n in loads:\n        expert_offsets.append(expert_offsets[-1] + math.ceil(n / tile) * tile)\n    return loads, expert_offsets",
        "one-hot": "def count(topk_ids, experts, tile):\n    n = (topk_ids.reshape(-1, 1) == np.arange(experts)).sum(0)\n    return n, np.pad(np.cumsum((n + tile - 1) // tile * tile), (1, 0))",
    }
