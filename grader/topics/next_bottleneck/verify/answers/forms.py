"""List right answers to *verify* in other forms."""

FORMS = {
    "all at once": "def verify(drafts, p, q, u, last):\n    n = len(drafts)\n    at = np.arange(n)\n    kept = u * q[at, drafts] < p[at, drafts]\n    first = n if kept.all() else int(np.argmin(kept))\n    w = p[n] if first == n else np.clip(p[first] - q[first], 0, None)\n    c = np.cumsum(w)\n    return list(drafts[:first]) + [np.searchsorted(c, last * c[-1], side='right')]",
}
