"""What an answer spends is counted on numbers such as a model has."""

import numpy as np

from grader import questions


def test_each_row_of_the_residual_stream_has_a_number_that_outweighs_the_others():
    question = questions.find("next_bottleneck.residual_norm")
    rng = np.random.default_rng(5)
    for row in question.inputs(question.metered(rng), rng)["r"].astype(np.float64):
        largest = np.sort(np.abs(row))
        assert largest[-1] ** 2 > 4 * (largest[:-1] ** 2).mean()
