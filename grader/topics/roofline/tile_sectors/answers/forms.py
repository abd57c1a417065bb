"""List right answers to *tile sectors* in other forms."""



FORMS = {
        "by unique addresses": "def tile_sectors(r, c, n, e):\n    return np.unique((np.arange(r)[:, None] * n + np.arange(c)) * e // 32).size",
        "row by row": "def tile_sectors(r, c, n, e):\n    last, found = -1, 0\n    for i in range(r):\n        a, b = i * n * e // 32, ((i * n + c) * e - 1) // 32\n        found += b - max(a, last + 1) + 1\n        last = max(last, b)\n    return found",
        "a float": "def tile_sectors(r, c, n, e):\n    return float(len({(i * n + j) * e // 32 for i in range(r) for j in range(c)}))",
    }
