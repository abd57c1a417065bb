"""List right answers to *goodput* in other forms."""

FORMS = {
    "inverted_cdf": "def goodput(first, between, first_goal, between_goal, seconds):\n    ordered, n = sorted(first), len(first)\n    p99 = next(t for i, t in enumerate(ordered, 1) if 100 * i >= 99 * n)\n    good = sum(a <= first_goal and b <= between_goal for a, b in zip(first, between))\n    return p99, good / seconds",
}
