"""List right answers to *audit* in other forms."""

FORMS = {
    "an array": "def audit(before_s, after_s, share, tokens_s):\n    part = share * before_s\n    return np.array([(before_s - after_s) / part, before_s - part, tokens_s / (1 / after_s)])",
}
