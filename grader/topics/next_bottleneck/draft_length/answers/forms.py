"""List right answers to *draft length* in other forms."""

FORMS = {
    "a loop": "def draft_length(p, draft_s, pass_s, most):\n    best, tokens = None, 0.0\n    for k in range(most + 1):\n        tokens += p**k\n        one = (k * draft_s + pass_s) / tokens\n        if best is None or one < best[1]:\n            best = (k, one, tokens)\n    return best",
}
