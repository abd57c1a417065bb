"""List right answers to *permute* in other forms."""



FORMS = {
        "expert by expert": "def permute(chosen, experts, tile):\n    picks, place, flat = [], np.zeros(chosen.size, int), chosen.ravel()\n    for e in range(experts):\n        for p in np.flatnonzero(flat == e):\n            place[p] = len(picks)\n            picks.append(int(p))\n        picks += [-1] * (-len(picks) % tile)\n    return np.array(picks, int), place.reshape(chosen.shape)",
        "ranks by a running sum": "def permute(chosen, experts, tile):\n    flat = chosen.ravel()\n    hot = flat[:, None] == np.arange(experts)\n    n = hot.sum(0)\n    end = np.cumsum(-(-n // tile) * tile)\n    start = end + n // -tile * tile\n    row = start[flat] + (np.cumsum(hot, 0) - 1)[np.arange(len(flat)), flat]\n    picks = np.full(end[-1], -1)\n    picks[row] = np.arange(len(flat))\n    return picks, row.reshape(chosen.shape)",
    }
