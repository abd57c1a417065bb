"""The decode step on the course's kernels is the one in plain PyTorch: logits within a bound, and the same tokens."""

import pytest
import torch

from kernels import decode_step
from kernels.next_bottleneck.cache import PagedCache
from kernels.next_bottleneck.shapes import Shape
from kernels.next_bottleneck.slots import Filling
from kernels.next_bottleneck.step import Sampling, Step, generate
from kernels.next_bottleneck.weights import drawn
from kernels.tests.figures import REFUSAL

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SMALL = Shape(64, 2, 4, 2, 32, experts=4, top_k=2, intermediate=32, vocabulary=96, page=4)
BOUND = 0.02  # of the logits' spread: some hundred roundings to 16 bits lie between tokens and logits


@pytest.fixture(scope="module")
def weights():
    return drawn(SMALL, dtype=torch.float16, device=DEVICE, seed=1)


def step(weights, by="course", sequences=4, most=24, sampling=Sampling(), guard=True, **own):
    cache = PagedCache(
        weights.shape, sequences=sequences, most=most, dtype=weights.dtype, device=weights.device
    )
    return Step(weights, cache, decode_step.fillings(by, **own), sampling, guard=guard)


def apart(a, b) -> float:
    return ((a - b).abs().max() / b.std()).item()


def test_logits_of_prompts_and_of_a_ragged_batch(weights):
    """Three sequences of 1, 5 and 9 tokens, two of which cross a page, and then one more token each."""
    course, plain = step(weights), step(weights, "plain")
    for sequence, length in enumerate((1, 5, 9)):
        given = list(range(sequence, sequence + length))
        assert apart(course.read(sequence, given), plain.read(sequence, given)) < BOUND
    for tokens in ([3, 4, 5], [95, 0, 1]):
        got, want = (one.decode([0, 1, 2], tokens) for one in (course, plain))
        assert apart(got, want) < BOUND


def test_a_prompt_read_in_pieces_or_token_by_token_is_the_prompt(weights):
    for by in decode_step.BY:
        one = step(weights, by)
        whole = one.read(0, [7, 8, 9, 10, 11, 12])
        one.read(1, [7, 8])
        pieces = one.read(1, [9, 10, 11, 12])
        one.read(2, [7])
        for token in (8, 9, 10, 11, 12):
            single = one.decode([2], [token])
        assert apart(pieces, whole) < BOUND and apart(single, whole) < BOUND


def test_a_row_does_not_depend_on_its_batch(weights):
    course = step(weights)
    for sequence in range(4):
        course.read(sequence, [sequence, 5])
    alone = step(weights)
    alone.read(0, [2, 5])
    assert apart(course.decode([3, 2, 0], [9, 9, 9])[1:2], alone.decode([0], [9])) < BOUND


def test_generated_tokens_are_the_same_for_each_slot_taken_alone(weights):
    """So a slot that is wrong is named."""
    prompts = [[1, 2, 3], [50]]
    want = generate(step(weights, "plain"), prompts, 4)
    assert generate(step(weights), prompts, 4) == want
    for name, one in decode_step.COURSE.items():
        assert generate(step(weights, "plain", **{name: one}), prompts, 3) == [said[:3] for said in want], (
            name
        )


def test_pages_come_back_and_sequences_end(weights):
    one = step(weights, "plain", sequences=2, guard=False)
    free = len(one.cache.free)
    said = generate(one, [[1, 2, 3], [4]], 6)
    ended = generate(one, [[1, 2, 3], [4]], 6, end=said[0][2])
    assert ended[0] == said[0][:3] and len(one.cache.free) == free
    assert ended[1][: len(said[1])] == (said[1] if said[0][2] not in said[1] else ended[1])


def test_draws_depend_on_the_seed_alone(weights):
    for by in decode_step.BY:
        drawn = [
            generate(step(weights, by, sampling=Sampling(2.0, seed), guard=False), [[1]], 6)
            for seed in (1, 1, 2)
        ]
        assert drawn[0] == drawn[1] != drawn[2], by


def test_a_slot_that_breaks_its_contract_is_named(weights):
    broken = Filling(
        lambda weight, shape: lambda rows, place, weights: rows[place[:, 0].long()].float(), "learner"
    )
    with pytest.raises(ValueError, match="^combine: y must be torch.float16, got torch.float32; "):
        step(weights, "plain", combine=broken).read(0, [1, 2])


@pytest.mark.parametrize(
    "wrong",
    [
        lambda w: decode_step.fillings("magic"),
        lambda w: step(w, "plain").read(0, []),
        lambda w: step(w, "plain").read(9, [1]),
        lambda w: step(w, "plain").read(0, [96]),
        lambda w: step(w, "plain").read(0, [1] * 25),
        lambda w: step(w, "plain").decode([0, 0], [1, 1]),
        lambda w: step(w, "plain").decode([0], [1, 1]),
        lambda w: generate(step(w, "plain"), [], 3),
        lambda w: generate(step(w, "plain"), [[1]] * 5, 3),
        lambda w: generate(step(w, "plain"), [[1]], 0),
        lambda w: Sampling(-1.0),
        lambda w: Step(w, PagedCache(w.shape, sequences=1, most=4, dtype=w.dtype, device=w.device), {}),
        lambda w: PagedCache(w.shape, sequences=2, most=8, pages=1, dtype=w.dtype).grow(0, 8),
    ],
)
def test_nonsense_is_refused(weights, wrong):
    with pytest.raises(ValueError, match=REFUSAL):
        wrong(weights)
