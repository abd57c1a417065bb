"""On a GPU: the captured step is the eager one, and real shapes keep the bound."""

import pytest
import torch

from kernels import decode_step
from kernels.next_bottleneck import bench, plain
from kernels.next_bottleneck.cache import PagedCache
from kernels.next_bottleneck.captured import Loop
from kernels.next_bottleneck.step import Step, generate
from kernels.speaking_model import kept

pytestmark = pytest.mark.gpu
PROMPTS = ["The kernel", "Return the", "If the tensor is", "A graph"]


@pytest.fixture(scope="module")
def speaking():
    return kept.weights().to("cuda")


def step(weights, by, sequences=4, most=64):
    cache = PagedCache(weights.shape, sequences=sequences, most=most, dtype=weights.dtype, device="cuda")
    return Step(weights, cache, decode_step.fillings(by))


def test_the_model_says_the_same_on_both(speaking):
    prompts = [kept.tokenizer().encode(text) for text in PROMPTS]
    said = [generate(step(speaking, by), prompts, 24) for by in decode_step.BY]
    assert said[0] == said[1]


@pytest.mark.parametrize("by", decode_step.BY)
@pytest.mark.parametrize("batch", [1, 3, 64])
def test_a_captured_loop_says_what_the_eager_one_says(speaking, by, batch):
    """Twenty tokens cross a page of sixteen."""
    said = []
    for captured in (False, True):
        one = step(speaking, by, batch)
        first = [one.next_of(one.read(s, [s + 5, 40]), [s])[0] for s in range(batch)]
        loop = Loop(one, torch.tensor(first, dtype=torch.int32, device="cuda"))
        if captured:
            loop.capture()
        said.append(loop.run(20).tolist())
    assert said[0] == said[1]


@pytest.mark.parametrize("rows", [1, 16, 64])
def test_a_layer_of_real_shapes_keeps_the_bound(rows):
    inputs = bench.draw(bench.Case(rows, 300, 1), 0, torch.device("cuda"))
    assert bench.check(inputs, bench.step_of(inputs, decode_step.fillings())()) < bench.TOLERANCE
    for name, factory in bench.RIVALS.items():
        if name != "plain slots":
            assert bench.check(inputs, factory(inputs)()) < bench.TOLERANCE, name


def test_a_prompt_of_real_shapes_is_the_same_token_by_token():
    inputs = bench.draw(bench.Case(1, 300, 1), 0, torch.device("cuda"))
    logits = []
    for fillings in (decode_step.fillings(), plain.FILLINGS):
        cache = PagedCache(
            inputs["weights"].shape, sequences=1, most=200, dtype=torch.bfloat16, device="cuda"
        )
        logits.append(Step(inputs["weights"], cache, fillings).read(0, list(range(150))))
    assert (logits[0] - logits[1]).norm() < bench.TOLERANCE * logits[1].norm()
