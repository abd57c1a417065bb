"""What answers are timed against can be captured as a graph: nothing in it waits for a number from the GPU."""

import importlib

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from grader.bench.inside.buffers import TORCH
from grader.proofs.right import kernel_questions
from grader.questions.memory import Placed, place, shape_only

TIMED = {q.id: q for q in kernel_questions() if q.speed}


def tensors(question) -> dict[str, torch.Tensor]:
    """What the timed case hands to its bar, by shape and dtype alone."""
    told = [shape_only(spec, question.speed.case).as_task() for spec in question.tensors]
    return {t["name"]: torch.empty(tuple(t["shape"]), dtype=TORCH[t["dtype"]]) for t in told}


@pytest.mark.parametrize("question", TIMED)
def test_a_bar_asks_for_no_value(question):
    speed = TIMED[question].speed
    bar = importlib.import_module(f"grader.topics.{TIMED[question].slug}.bar")
    with FakeTensorMode():  # a look at a value, or a shape that depends on one, raises
        bar.BARS[speed.bar](tensors(TIMED[question]))
    getattr(bar, "DENSE", {}).clear()


def tensor(placed: Placed) -> torch.Tensor:
    held = torch.from_numpy(placed.storage.view(np.uint8).copy()).view(TORCH[placed.dtype])
    return torch.as_strided(held, placed.shape, placed.strides)


ASKED = [f"moe_routing.{name}" for name in ("order", "grouped_gemm", "fused_combine")]
ASKED += [f"next_bottleneck.{name}" for name in ("residual_norm", "rotary_cache")]


@pytest.mark.parametrize("name", ASKED)
def test_a_bar_computes_what_is_asked(name):
    question = TIMED[name]
    bar = importlib.import_module(f"grader.topics.{question.slug}.bar").BARS[question.speed.bar]
    case = question.public[0]
    inputs = question.inputs(case, np.random.default_rng(1))
    there = {p.spec.name: tensor(p) for p in place(question, case, inputs)}
    made = bar(there)
    there |= {"h": made} if made is not None else {}
    for output, want in question.reference(inputs, case).items():
        real = (
            inputs["sorted_token_ids"] >= 0 if output == "h" else ...
        )  # the rows that fill a tile up may hold anything
        assert np.allclose(there[output].double().numpy()[real], want[real], atol=0.02, rtol=0.02), output
