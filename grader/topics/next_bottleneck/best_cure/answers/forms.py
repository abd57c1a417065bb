"""List right answers to *best cure* in other forms."""

FORMS = {
    "a loop and a list": "def best_cure(times, removable):\n    steps = []\n    for i in range(len(times)):\n        left = [t * (1 - r) if i == j else t for j, (t, r) in enumerate(zip(times, removable))]\n        steps.append(sum(left))\n    # rounding must not decide between equal savings\n    best = max(range(len(times)), key=lambda i: (times[i] * removable[i], -i))\n    return [best, steps[best], sum(times) / steps[best]]",
    "an array": "def best_cure(times, removable):\n    s = times * removable\n    i = np.argmax(s)\n    a = np.delete(times, i).sum() + times[i] * (1 - removable[i])\n    return np.array([i, a, times.sum() / a])",
}
