"""Compute the reference of *chunked prompt* and draw its inputs."""


def chunked_prompt(prompt, chunk, running, weights_s, token_s):
    """Return the prompt's seconds and the longest step."""
    pieces = [min(chunk, prompt - done) for done in range(0, prompt, chunk)]
    steps = [max(weights_s, (running + piece) * token_s) for piece in pieces]
    return sum(steps), max(steps)


def case(rng, large):
    """Draw a replica, and a chunk well above or below what is free, with a last piece that is small."""
    token = float(rng.uniform(1, 4)) * 1e-5
    free = int(rng.integers(200, 400))
    running = int(rng.integers(20, 80))
    chunk = int(free * (rng.uniform(1.5, 4) if large else rng.uniform(0.2, 0.5)))
    prompt = chunk * int(rng.integers(2, 6)) + int(rng.integers(1, chunk // 3))
    return prompt, chunk, running, free * token, token
