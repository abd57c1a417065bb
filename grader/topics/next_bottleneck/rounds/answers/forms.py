"""List right answers to *rounds* in other forms."""

FORMS = {
    "cumprod": "def rounds(step_s, shares, cuts):\n    return step_s * (np.cumprod(1 - cuts, axis=0) @ shares)",
    "a list": "def rounds(step_s, shares, cuts):\n    left, out = list(shares), []\n    for cut in cuts:\n        left = [a * (1 - c) for a, c in zip(left, cut)]\n        out.append(step_s * sum(left))\n    return out",
}
