"""List right answers to *route* in other forms."""



FORMS = {
        "lists, by sorted": "def route(x, router, k, softmax_first):\n    topk_ids, topk_weights = [], []\n    for row in (x @ router.T).tolist():\n        best = sorted(range(len(row)), key=lambda e: (-row[e], e))[:k]\n        top = max(row)\n        whole = sum(math.exp(row[e] - top) for e in (range(len(row)) if softmax_first else best))\n        topk_ids.append(best)\n        topk_weights.append([math.exp(row[e] - top) / whole for e in best])\n    return np.array(topk_ids, int).reshape(-1, k), np.array(topk_weights).reshape(-1, k)",
        "lexsort, a log-sum-exp": "def route(x, router, k, softmax_first):\n    z = x @ router.T\n    c = np.lexsort((np.broadcast_to(np.arange(z.shape[1]), z.shape), -z), axis=1)[:, :k]\n    best = np.take_along_axis(z, c, 1)\n    of = z if softmax_first else best\n    top = of.max(1, keepdims=True)\n    return c, np.exp(best - top - np.log(np.exp(of - top).sum(1, keepdims=True)))",
    }
