"""List right answers to *permute* in other forms."""



FORMS = {
        "expert by expert": "def permute(topk_ids, experts, tile):\n    sorted_token_ids, inv_permuted_idx, flat = [], np.zeros(topk_ids.size, int), topk_ids.ravel()\n    for e in range(experts):\n        for p in np.flatnonzero(flat == e):\n            inv_permuted_idx[p] = len(sorted_token_ids)\n            sorted_token_ids.append(int(p))\n        sorted_token_ids += [-1] * (-len(sorted_token_ids) % tile)\n    return np.array(sorted_token_ids, int), inv_permuted_idx.reshape(topk_ids.shape)",
        "ranks by a running sum": "def permute(topk_ids, experts, tile):\n    flat = topk_ids.ravel()\n    hot = flat[:, None] == np.arange(experts)\n    n = hot.sum(0)\n    end = np.cumsum(-(-n // tile) * tile)\n    start = end + n // -tile * tile\n    row = start[flat] + (np.cumsum(hot, 0) - 1)[np.arange(len(flat)), flat]\n    sorted_token_ids = np.full(end[-1], -1)\n    sorted_token_ids[row] = np.arange(len(flat))\n    return sorted_token_ids, row.reshape(topk_ids.shape)",
    }
