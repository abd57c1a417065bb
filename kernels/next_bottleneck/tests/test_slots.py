"""Contracts refuse what does not fit with a sentence, and every slot says who fills it."""

import re

import pytest
import torch

from kernels.next_bottleneck import learner, plain
from kernels.next_bottleneck.shapes import Shape
from kernels.next_bottleneck.slots import BY_NAME, FUSIONS, SLOTS, Filling, filled, guarded
from kernels.tests.figures import REFUSAL

SMALL = Shape(64, 2, 4, 2, 16, experts=4, top_k=2, intermediate=32, vocabulary=40, page=4)


def test_every_slot_has_a_plain_filling_and_says_where_its_kernel_comes_from():
    assert set(plain.FILLINGS) == {slot.name for slot in SLOTS}
    assert len(BY_NAME) == len(SLOTS) + len(FUSIONS)
    for slot in SLOTS:
        assert (slot.question is None) == (slot.origin == "course"), slot.name
        assert slot.origin == "lab" or slot.why, slot.name
        assert (slot.question is not None) == (slot.name in learner.ADAPTERS), slot.name
        letters = {axis for arg in (*slot.takes, *slot.gives) for axis in arg.axes}
        assert letters <= set("THVWODAGKRPSLBX"), slot.name


def norm(call):
    return guarded(BY_NAME["norm"], call, SMALL)


def rows(count=3, width=64, dtype=torch.float16):
    return torch.ones(count, width, dtype=dtype)


def test_a_call_that_keeps_its_contract_goes_through():
    call = norm(plain.norm(torch.ones(64), SMALL))
    residual = rows()
    assert call(rows(), residual).dtype == torch.float16
    assert (residual == 2).all()


def test_numbers_that_are_not_numbers_are_left_as_they_were_too():
    nan = rows() * float("nan")
    assert norm(lambda x, r: r.clone())(nan, rows()).shape == (3, 64)
    with pytest.raises(ValueError, match="norm: x must be left as it was"):
        norm(lambda x, r: x.zero_())(nan, rows())


@pytest.mark.parametrize(
    "call, given, says",
    [
        (lambda x, r: r, (rows(), rows(2)), r"norm: residual must be \(3, 64\), axes T H"),
        (lambda x, r: r, (rows(width=60), rows()), r"norm: x must be \(3, 64\)"),
        (
            lambda x, r: r,
            (rows(), rows(dtype=torch.float64)),
            "norm: residual must be torch.float16, got torch.float64",
        ),
        (lambda x, r: r, (rows(), None), "norm: residual must be a tensor, got NoneType"),
        (lambda x, r: r, (rows(),), "norm: arguments must be 2 in number, got 1"),
        (lambda x, r: r.float(), (rows(), rows()), "norm: y must be torch.float16, got torch.float32"),
        (lambda x, r: r[:2], (rows(), rows()), r"norm: y must be \(3, 64\)"),
        (lambda x, r: (r, r), (rows(), rows()), "norm: answers must be 1 in number, got 2"),
        (lambda x, r: x.mul_(3), (rows(), rows()), "norm: x must be left as it was"),
    ],
)
def test_what_breaks_the_contract_is_refused(call, given, says):
    with pytest.raises(ValueError, match=REFUSAL) as refused:
        norm(call)(*given)
    assert re.search(says, str(refused.value))


def test_own_fillings_stand_before_those_of_the_base():
    mine = Filling(plain.norm, "learner")
    found = filled(plain.FILLINGS, norm=mine)
    assert found["norm"] is mine and found["qkv"].source == "plain"
    fused = {**plain.FILLINGS, "routed": Filling(plain.router, "course")}
    assert "routed" in filled(fused) and "routed" not in filled(fused, order=plain.FILLINGS["order"])


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: filled(plain.FILLINGS, qvk=plain.FILLINGS["qkv"]),
        lambda: filled(plain.FILLINGS, qkv=plain.linear),
        lambda: filled({}),
        lambda: Filling(plain.norm, "a friend"),
        lambda: Filling(3, "plain"),
        lambda: learner.fill({"gemm_tiling.product": print}),
        lambda: learner.fill({"gemm_tiling.tiled_gemm": 3}),
        lambda: learner.run(lambda p: [], {"x": (torch.ones(2), "n")}),
        lambda: Shape(64, 2, 5, 2, 16, 4, 2, 32, 40),
        lambda: Shape(64, 2, 4, 2, 16, 4, 6, 32, 40),
    ],
)
def test_nonsense_is_refused(wrong):
    with pytest.raises(ValueError, match=REFUSAL):
        wrong()
