"""List the mistakes of *chunked prompt*, a row each."""

from grader.questions.rows import in_cells

CHUNKS = """pieces = {pieces}
steps = [{step} for n in pieces]
return sum(steps), {longest}"""
RIGHT = {
    "pieces": "[min(chunk, prompt - done) for done in range(0, prompt, chunk)]",
    "step": "max(weights_s, (running + n) * token_s)",
    "longest": "max(steps)",
}


MISTAKES = in_cells(
    "chunked_prompt",
    "prompt, chunk, running, weights_s, token_s",
    {
        "added": (
            "reading the weights and computing overlap: the longer one counts, not the sum",
            CHUNKS.format(**RIGHT | {"step": "weights_s + (running + n) * token_s"}),
        ),
        "users forgotten": (
            "each step also computes a token for every running request",
            CHUNKS.format(**RIGHT | {"step": "max(weights_s, n * token_s)"}),
        ),
        "a full last chunk": (
            "the last chunk holds only the rest of the prompt",
            CHUNKS.format(**RIGHT | {"pieces": "[chunk] * -(-prompt // chunk)"}),
        ),
        "the last chunk lost": (
            "the tokens after the last full chunk need a step, too",
            CHUNKS.format(**RIGHT | {"pieces": "[chunk] * (prompt // chunk) or [prompt]"}),
        ),
        "all arithmetic": (
            "a step can't be shorter than reading the weights",
            CHUNKS.format(**RIGHT | {"step": "(running + n) * token_s"}),
        ),
        "the whole prompt": (
            "the running requests get a token after each step: they wait one step, not all",
            CHUNKS.format(**RIGHT | {"longest": "sum(steps)"}),
        ),
        "the last step": (
            "this is the last step, which is the shortest: return the longest",
            CHUNKS.format(**RIGHT | {"longest": "steps[-1]"}),
        ),
        "the mean step": (
            "this is the mean step: return the longest",
            CHUNKS.format(**RIGHT | {"longest": "sum(steps) / len(steps)"}),
        ),
    },
)
