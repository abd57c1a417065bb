"""List right answers to *count* in other forms."""



FORMS = {
        "a loop": "def count(chosen, experts, tile):\n    loads, offsets = [0] * experts, [0]\n    for e in chosen.ravel().tolist():\n        loads[e] += 1\n    for n in loads:\n        offsets.append(offsets[-1] + math.ceil(n / tile) * tile)\n    return loads, offsets",
        "one-hot": "def count(chosen, experts, tile):\n    n = (chosen.reshape(-1, 1) == np.arange(experts)).sum(0)\n    return n, np.pad(np.cumsum((n + tile - 1) // tile * tile), (1, 0))",
    }
