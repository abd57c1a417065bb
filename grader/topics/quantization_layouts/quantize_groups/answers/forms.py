"""List right answers to *quantize groups* in other forms."""



FORMS = {
        "group by group": "def quantize_groups(w, group, zero_points):\n    n, k = w.shape\n    codes, scales, zeros = np.empty(w.shape, int), np.empty((n, k // group)), np.full((n, k // group), 8)\n    for i in range(n):\n        for g in range(k // group):\n            b = w[i, g * group : (g + 1) * group]\n            low, high = min(0.0, b.min()), max(0.0, b.max())\n            s = float(np.float16((high - low) / 15 if zero_points else np.abs(b).max() / 7))\n            if zero_points:\n                zeros[i, g] = min(15, round(-low / s)) if s else 0\n            q = np.rint(b / s) if s else 0 * b\n            codes[i, g * group : (g + 1) * group] = np.clip(q + zeros[i, g], 0 if zero_points else 1, 15)\n            scales[i, g] = s\n    return codes, scales, zeros",
        "a list of three": "def quantize_groups(w, group, zero_points):\n    b = w.reshape(len(w), -1, group)\n    high, low = b.max(-1).clip(0), b.min(-1).clip(None, 0)\n    s = ((high - low) / 15 if zero_points else np.maximum(high, -low) / 7).astype(np.float16)\n    t = np.where(s > 0, s, 1).astype(float)\n    z = np.where(s > 0, (np.rint(-low / t) if zero_points else 8), 0 if zero_points else 8).clip(0, 15)\n    q = np.where((s > 0)[..., None], np.rint(b / t[..., None]), 0) + z[..., None]\n    return [q.clip(0 if zero_points else 1, 15).reshape(w.shape), s, z]",
    }
