"""List right answers to *exposed* in other forms."""

FORMS = {
    "from the end": "def exposed(ready, seconds, end_s):\n    rest = np.cumsum(seconds[::-1])[::-1]\n    done = (ready + rest).max()\n    return done, np.maximum(done - end_s, 0)",
}
