"""List right answers to *capacity kept* in other forms."""



FORMS = {
        "by rank in the queue": "def capacity_kept(topk_ids, experts, factor):\n    capacity = -int(-factor * topk_ids.size // experts)\n    queue = topk_ids.T.reshape(-1)\n    before = np.array([(queue[:i] == e).sum() for i, e in enumerate(queue)])\n    return capacity, (before < capacity).reshape(topk_ids.T.shape).T",
        "numbers for flags": "def capacity_kept(topk_ids, experts, factor):\n    left = [math.ceil(factor * topk_ids.size / experts)] * experts\n    capacity, kept = left[0], [[0] * topk_ids.shape[1] for _ in topk_ids]\n    for j in range(topk_ids.shape[1]):\n        for t, row in enumerate(topk_ids):\n            if left[row[j]]:\n                left[row[j]] -= 1\n                kept[t][j] = 1\n    return [capacity, kept]",
    }
