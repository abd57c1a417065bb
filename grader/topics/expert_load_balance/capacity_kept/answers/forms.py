"""List right answers to *capacity kept* in other forms."""



FORMS = {
        "by rank in the queue": "def capacity_kept(chosen, experts, factor):\n    capacity = -int(-factor * chosen.size // experts)\n    queue = chosen.T.reshape(-1)\n    before = np.array([(queue[:i] == e).sum() for i, e in enumerate(queue)])\n    return capacity, (before < capacity).reshape(chosen.T.shape).T",
        "numbers for flags": "def capacity_kept(chosen, experts, factor):\n    left = [math.ceil(factor * chosen.size / experts)] * experts\n    capacity, kept = left[0], [[0] * chosen.shape[1] for _ in chosen]\n    for j in range(chosen.shape[1]):\n        for t, row in enumerate(chosen):\n            if left[row[j]]:\n                left[row[j]] -= 1\n                kept[t][j] = 1\n    return [capacity, kept]",
    }
