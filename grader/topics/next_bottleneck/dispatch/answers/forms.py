"""List right answers to *dispatch* in other forms."""

FORMS = {
    "in order of speed": "def dispatch(request, least, most, multiple, seconds):\n    for i in np.argsort(seconds, kind='stable'):\n        if all(lo <= r <= hi and r % m == 0 for r, lo, hi, m in zip(request, least[i], most[i], multiple[i])):\n            return i, (seconds < seconds[i]).sum()\n    return -1, len(seconds)",
    "an array of two": "def dispatch(request, least, most, multiple, seconds):\n    bad = ((request < least) | (request > most) | (request % multiple != 0)).any(axis=1)\n    if bad.all():\n        return np.array([-1, len(bad)])\n    best = seconds[~bad].min()\n    return np.array([np.flatnonzero(~bad & (seconds == best))[0], (seconds[bad] < best).sum()])",
}
