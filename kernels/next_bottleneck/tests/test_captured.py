"""A loop of a fixed batch says what generate says; what can't be captured is refused."""

import pytest
import torch

from kernels.next_bottleneck import plain
from kernels.next_bottleneck.cache import PagedCache
from kernels.next_bottleneck.captured import Loop
from kernels.next_bottleneck.shapes import Shape
from kernels.next_bottleneck.step import Step, generate
from kernels.next_bottleneck.weights import drawn
from kernels.tests.figures import REFUSAL

SMALL = Shape(64, 1, 4, 2, 32, experts=4, top_k=2, intermediate=32, vocabulary=96, page=4)


@pytest.fixture(scope="module")
def weights():
    return drawn(SMALL, dtype=torch.float16, seed=1)


def loop(weights, prompts):
    step = Step(weights, PagedCache(SMALL, sequences=2, most=16, dtype=torch.float16), plain.FILLINGS)
    first = [step.next_of(step.read(s, given), [s])[0] for s, given in enumerate(prompts)]
    return Loop(step, torch.tensor(first, dtype=torch.int32))


def test_a_loop_says_what_generate_says(weights):
    """Nine tokens after three cross two pages of four."""
    prompts = [[1, 2, 3], [50]]
    step = Step(weights, PagedCache(SMALL, sequences=2, most=16, dtype=torch.float16), plain.FILLINGS)
    want = generate(step, prompts, 10)
    one = loop(weights, prompts)
    first = one.tokens.clone()
    said = torch.cat([first[:, None], one.run(4), one.run(5)], dim=1)
    assert said.tolist() == want
    assert one.step.cache.lens == [3 + 9, 1 + 9]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda w: loop(w, [[1]]).capture(),
        lambda w: loop(w, [[1]]).run(0),
        lambda w: loop(w, [[1]]).run(16),
        lambda w: Loop(loop(w, [[1]]).step, torch.zeros(2, dtype=torch.int32)),
        lambda w: Loop(loop(w, [[1]]).step, torch.zeros(3, dtype=torch.int32)),
    ],
)
def test_nonsense_is_refused(weights, wrong):
    with pytest.raises(ValueError, match=REFUSAL):
        wrong(weights)
