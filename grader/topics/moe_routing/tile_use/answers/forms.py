"""List right answers to *tile use* in other forms."""



FORMS = {
        "in numpy": "def tile_use(loads, tile, factor):\n    n = np.array(loads)\n    kept = n if factor is None else np.minimum(n, np.ceil(factor * n.mean()))\n    rows = (np.ceil(kept / tile) * tile).sum()\n    return rows - kept.sum(), kept.sum() / rows, (n - kept).sum()",
    }
