"""The labs' right answers, put into the decode step's slots, give the tokens that plain PyTorch gives."""

import sys
import types
from dataclasses import replace

import pytest
import torch
import triton
import triton.language as tl

from grader import questions
from grader.capstone.graph import Listening
from grader.proofs.right import right
from kernels import decode_step
from kernels.next_bottleneck import learner
from kernels.next_bottleneck.cache import PagedCache
from kernels.next_bottleneck.shapes import Shape
from kernels.next_bottleneck.slots import BY_NAME, SLOTS, guarded
from kernels.next_bottleneck.step import Step
from kernels.next_bottleneck.weights import drawn

SHAPE = Shape(64, 1, 4, 2, 32, experts=4, top_k=2, intermediate=32, vocabulary=96, page=4)
ANSWERED = sorted({slot.question for slot in SLOTS if slot.origin == "lab"})
QUICK = ("moe_routing.order", "sampling_fusion.draw")  # one with scratch, and one without
BOUND = 0.02  # of the logits' spread


@pytest.fixture(scope="module", autouse=True)
def on_the_machine():
    if not torch.cuda.is_available():
        from tilescope import launcher

        launcher.install()


def answer(question: str, tmp_path, names: dict[str, str] | None = None):
    """A right answer's launch function, out of a module, as Triton reads its kernels' source from a file. With `names`
    its tensors have other ones."""
    prelude, source = "import numpy as np\nimport triton\nimport triton.language as tl\n\n\n", right(question)
    for today, other in (names or {}).items():
        source = source.replace(f"{today}_ptr", f"{other}_ptr").replace(f"stride_{today}", f"stride_{other}")
    path = tmp_path / f"{question.replace('.', '_')}.py"
    path.write_text(prelude + source)
    module = types.ModuleType(path.stem)
    module.__file__ = str(path)
    sys.modules[path.stem] = module
    module.__dict__.update(triton=triton, tl=tl)
    exec(compile(path.read_text(), str(path), "exec"), module.__dict__)
    return getattr(module, questions.find(question).entry)


@pytest.mark.parametrize(
    "question", [q if q in QUICK else pytest.param(q, marks=pytest.mark.slow) for q in ANSWERED]
)
def test_a_lab_s_answer_fills_its_slots(question, tmp_path):
    agrees(question, answer(question, tmp_path))


@pytest.mark.parametrize("question", ("moe_routing.order", "moe_routing.fused_combine"))
def test_an_answer_with_the_names_of_an_earlier_edition_fills_its_slots(question, tmp_path):
    agrees(question, answer(question, tmp_path, learner.FORMERLY))


def agrees(question: str, launch) -> None:
    """Assert that the step says the same with this answer in its slots as in plain PyTorch."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    weights = drawn(SHAPE, dtype=torch.float16, device=device, seed=1)
    own = learner.fill({question: launch})
    assert own and all(one.source == "learner" for one in own.values())
    logits = []
    for given in (own, {}):
        cache = PagedCache(SHAPE, sequences=2, most=12, dtype=weights.dtype, device=device)
        step = Step(weights, cache, decode_step.fillings("plain", **given), guard=True)
        step.read(1, [5])
        first = step.read(0, [1, 2, 3, 4, 5])
        second = step.decode([1, 0], [6, 7])
        logits.append((first, second, step.next_of(second, [1, 0])))
    for got, want in zip(logits[0][:2], logits[1][:2], strict=True):
        assert (got - want).abs().max() < BOUND * want.std()
    assert logits[0][2] == logits[1][2]


def test_a_draw_of_the_lab_s_is_another_one_at_every_length(tmp_path):
    """All logits are alike, so the noise alone decides: of the seed and the length."""
    launch = answer("sampling_fusion.draw", tmp_path)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    logits = torch.zeros(6, 96, device=device)
    lens = torch.tensor([1, 1, 2, 3, 4, 5], dtype=torch.int32, device=device)
    one, other = (learner.sample(launch).make((1.0, seed), SHAPE)(logits, lens).tolist() for seed in (7, 8))
    assert one[0] == one[1] and len(set(one)) > 3
    assert one[2:] == other[1:-1], "seed 8 at length 1 is seed 7 at length 2"


def test_4_bit_projections_are_refused_by_the_lab_s_gemm(tmp_path):
    weights = drawn(SHAPE, dtype=torch.float16, seed=1)
    layer = replace(weights.layers[0], qkv=weights.layers[0].down)
    made = learner.fill({"gemm_tiling.tiled_gemm": print})["qkv"].make
    with pytest.raises(ValueError, match="^w must be in 16 bits, got codes; "):
        made(layer.qkv, SHAPE)


def test_attention_in_a_graph_asks_for_no_length(tmp_path):
    """One call serves two lengths of its own tensors, as a replay does, and no tensor is asked for its numbers."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    launch = answer("flash_attention.split_decode", tmp_path)
    mine = learner.fill({"flash_attention.split_decode": launch}, in_a_graph=True)["attention"]
    want = decode_step.fillings("plain")["attention"]
    call, plain = (guarded(BY_NAME["attention"], one.make(None, SHAPE), SHAPE) for one in (mine, want))
    rng = torch.Generator().manual_seed(3)
    q, *caches = (
        torch.randn(size, generator=rng).half().to(device) for size in ((2, 4, 32), *[(7, 2, 4, 32)] * 2)
    )
    table = torch.tensor([[3, 5, 1], [2, 6, 4]], dtype=torch.int32, device=device)
    lens = torch.tensor([1, 12], dtype=torch.int32, device=device)
    for more in (0, 4):
        lens[0] += more  # at the same address
        ear = Listening()
        ear.here = "attention"
        with ear:
            got = call(q, *caches, lens, table)
        assert ear.heard == {}
        torch.testing.assert_close(got, plain(q, *caches, lens, table), atol=4e-3, rtol=4e-3)
