"""List right answers to *chunked prompt* in other forms."""

FORMS = {
    "a while loop": "def chunked_prompt(prompt, chunk, running, weights_s, token_s):\n    total, longest = 0.0, 0.0\n    while prompt > 0:\n        n = min(chunk, prompt)\n        step = max(weights_s, token_s * (n + running))\n        total, longest, prompt = total + step, max(longest, step), prompt - n\n    return total, longest",
    "full ones and the rest": "def chunked_prompt(prompt, chunk, running, weights_s, token_s):\n    full, rest = divmod(prompt, chunk)\n    n = np.array([chunk] * full + [rest] * (rest > 0))\n    s = np.maximum(weights_s, (running + n) * token_s)\n    return np.array([s.sum(), s.max()])",
}
