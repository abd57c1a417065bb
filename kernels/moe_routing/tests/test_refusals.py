"""Input that cannot be right is told what is wrong with it and what to do, and nothing is launched."""

import numpy as np
import pytest
import torch

from kernels.moe_routing import reference
from kernels.moe_routing.arguments import Experts
from kernels.moe_routing.layer import layer
from kernels.moe_routing.narrow import Narrow
from kernels.moe_routing.routed import route
from kernels.moe_routing.rules import MIXTRAL, Rule
from kernels.tests.figures import REFUSAL

X, ROUTER = torch.zeros(3, 16).bfloat16(), torch.zeros(4, 16).bfloat16()
GATE_UP, DOWN = torch.zeros(4, 16, 16).bfloat16(), torch.zeros(4, 16, 8).bfloat16()
EXPERTS = Experts(GATE_UP, DOWN)
SIGMOID = Rule(2, "sigmoid")


def refuses(refused, name):
    with pytest.raises(ValueError, match=REFUSAL) as error:
        refused()
    assert error.match(f"^{name}")


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"x": X[0]}, "x must be 2-d"),
        ({"x": X.float()}, "x must be bf16 or fp16"),
        ({"x": X.half()}, "router must be torch.float16"),
        ({"x": torch.zeros(16, 16).bfloat16().t()}, "x must be dense along a row"),
        ({"x": X[:, :8]}, r"router must be \(experts, 8\)"),
        ({"router": ROUTER.t()}, r"router must be \(experts, 16\)"),
        ({"router": torch.zeros(16, 16).bfloat16().t()}, "router must be contiguous"),
        ({"router": ROUTER.to("meta")}, "router must be on x's device cpu"),
        ({"router": torch.zeros(513, 16).bfloat16()}, "router must be of 512 experts at most"),
        ({"rule": 2}, "rule must be a Rule, got int"),
        ({"rule": Rule(5)}, "top_k must be at most 4"),
        ({"rule": Rule(2, groups=3)}, "groups must be a divisor of the 4 experts"),
        ({"rule": Rule(3, groups=2)}, "top_k must be at most 2"),
        ({"bias": torch.zeros(4)}, "bias must be left out for a softmax"),
        ({"rule": SIGMOID, "bias": torch.zeros(5)}, r"bias must be \(4,\)"),
        ({"rule": SIGMOID, "bias": torch.zeros(4, device="meta")}, "bias must be on x's device"),
        ({"router": ROUTER[:3]}, "experts must be 3 as the router has"),
        (
            {"experts": Experts(GATE_UP, DOWN, shared=1)},
            "experts must be 4 as the router has, and the shared",
        ),
        ({"experts": Experts(GATE_UP.half(), DOWN.half())}, "x must be torch.float16 as the experts are"),
        ({"experts": Experts(GATE_UP.to("meta"), DOWN.to("meta"))}, "experts must be on x's device"),
        ({"out": torch.zeros(3, 8).bfloat16()}, r"out must be \(3, 16\)"),
        ({"out": torch.zeros(16, 3).bfloat16().t()}, "out must be dense along a row"),
        ({"out": X.to("meta")}, "out must be on x's device"),
    ],
)
def test_the_layer_refuses(change, name):
    given = {"x": X, "router": ROUTER, "experts": EXPERTS, "rule": MIXTRAL} | change
    refuses(lambda: layer(**given), name)


@pytest.mark.parametrize(
    ("refused", "name"),
    [
        (lambda: Experts(GATE_UP[0], DOWN), "gate_up must be 3-d"),
        (lambda: Experts(GATE_UP.float(), DOWN), "gate_up must be bf16 or fp16"),
        (lambda: Experts(GATE_UP, DOWN.half()), "down must be torch.bfloat16 as gate_up is"),
        (lambda: Experts(GATE_UP, DOWN.to("meta")), "down must be cpu as gate_up is"),
        (lambda: Experts(GATE_UP.transpose(1, 2), DOWN), "gate_up must be contiguous"),
        (lambda: Experts(GATE_UP[:, :15].contiguous(), DOWN), "gate_up must be of an even number of rows"),
        (lambda: Experts(GATE_UP, GATE_UP), r"down must be \(4, 16, 8\)"),
        (
            lambda: Experts(GATE_UP[:, :8].contiguous(), DOWN[..., :4].contiguous()),
            "intermediate must be a mult",
        ),
        (lambda: Experts(GATE_UP, DOWN, shared=4), "shared must be from 0 to 3"),
        (lambda: route(X, ROUTER, MIXTRAL, tile=24), "tile must be one of 1, 16, 32, 64, 128, 192, got 24"),
        (lambda: route(X, ROUTER, MIXTRAL, shared=-1), "shared must be a whole number"),
        (lambda: Rule(0), "top_k must be a whole number of at least 1"),
        (lambda: Rule(2, "softmax"), "scores must be one of"),
        (lambda: Rule(2, scale=0), "scale must be a finite number above 0"),
        (lambda: Rule(2, groups=2, groups_kept=3), "groups_kept must be at most 2"),
        (lambda: narrow(gate_up=GATE_UP), "gate_up must be a call"),
        (lambda: narrow(dtype=torch.float32), "dtype must be bf16 or fp16"),
        (lambda: narrow(shared=4), "shared must be from 0 to 3"),
        (lambda: reference.top_k(np.array([[np.nan, 1]]), 1), "scores must be numbers"),
        (lambda: reference.top_k(np.zeros((2, 3)), 4), "k must be at most 3"),
        (lambda: reference.order(np.array([[4]]), 4), "topk_ids must be from 0 to 3"),
        (lambda: reference.order(np.array([[0]]), 4, tile=0), "tile must be a whole number of at least 1"),
    ],
)
def test_the_rest_refuses(refused, name):
    refuses(refused, name)


def narrow(**change):
    call = lambda rows, *, offsets, most: rows  # noqa: E731
    given = {"gate_up": call, "down": call, "count": 4, "hidden": 16, "dtype": X.dtype, "device": X.device}
    return Narrow(**given | change)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"gate_up": lambda rows, *, offsets, most: rows[:1]}, "gate_up's answer must be"),
        ({"gate_up": lambda rows, *, offsets, most: rows[:, :15]}, "gate_up's answer must be"),
        ({"down": lambda rows, *, offsets, most: rows}, r"down's answer must be \(6, 16\), got \(6, 8\)"),
    ],
)
def test_calls_that_answer_something_else_are_refused(change, name):
    refuses(lambda: layer(X, ROUTER, narrow(**change), MIXTRAL), name)
