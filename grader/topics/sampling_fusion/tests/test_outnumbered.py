"""Hidden cases in which what is unlikely wins: far more than rounding separates it from what is likely."""

from dataclasses import replace

import numpy as np
import pytest

from grader import questions
from grader.topics.sampling_fusion.masked_draw.cases import LIFTED
from grader.topics.sampling_fusion.shared_rows import OUTNUMBERED, noise, rounding, row_scores


def drawn(name: str, values: str, **sizes: int):
    question = questions.find(f"sampling_fusion.{name}")
    case = next(c for c in question.hidden(np.random.default_rng(5)) if c.values == values)
    case = replace(case, sizes=case.sizes | sizes)
    return question.inputs(case, np.random.default_rng(6))


@pytest.mark.parametrize(
    "name, values, sizes",
    [
        ("draw", OUTNUMBERED, {"V": 40_000}),
        ("masked_draw", OUTNUMBERED, {}),
        ("masked_draw", LIFTED, {}),
    ],
)
def test_a_token_wins_that_a_bound_on_noise_or_on_penalties_would_skip(name, values, sizes):
    inputs = drawn(name, values, **sizes)
    for i, logits in enumerate(inputs["logits"]):
        scores = row_scores(inputs, i)
        first, likely = int(np.argmax(scores)), int(np.argmax(logits))
        assert first > likely and scores[first] - scores[likely] > rounding(inputs, i, scores, first, likely)
        if values == OUTNUMBERED:
            assert noise(int(inputs["seed"][i]), logits.size)[first] > 9
        else:
            assert set(inputs["history"][i]) == {first} and inputs["frequency"][i] < 0


@pytest.mark.parametrize("values", [OUTNUMBERED, LIFTED])
def test_rows_of_one_token_are_drawn_too(values):
    inputs = drawn("masked_draw", values, V=1)
    assert inputs["logits"].shape[1] == 1 and np.isfinite(inputs["logits"]).all()
