"""Share mistakes among questions of expert load balance."""

import numpy as np

from grader.questions import Mistake


def without_weights(layer) -> Mistake:
    """Of any layer that takes what it does with the weights."""
    return Mistake(
        "no weights",
        "the weights are missing: multiply each expert's result by the token's weight for this expert",
        wrong=lambda each: layer(each, weights=np.ones_like),
    )


def made_to_add_up(layer) -> Mistake:
    return Mistake(
        "weights made to add up to 1",
        "use the weights as they are: those of a softmax over all experts add up to less than 1",
        wrong=lambda each: layer(each, weights=lambda w: w / w.sum(axis=1, keepdims=True)),
    )


NEEDED = "(topk_ids // per == rank).any(axis=1)"
ADD = "out[r] += shares[r, j, None] * expert"
ROWS = "comm.send_rows(x[token], send, receive)"
IDS = "comm.send_rows(topk_ids[token], send, receive)"
EVERYBODY = "np.ones(len(x), bool)"
