"""One row alone and among others: the comparison counts elements, and each operation takes the first rows."""

import pytest
import torch

from kernels import batch_invariance
from kernels.next_bottleneck.shapes import Shape

SMALL = Shape(64, 1, 4, 2, 32, experts=4, top_k=2, intermediate=32, vocabulary=96, page=4)


def test_elements_that_differ_are_counted():
    among = torch.tensor([[1.0, -4.0, 2.0, 3.0]] * 5)

    def call(n):
        return among[:n] + (torch.tensor([0.0, 0.5, 0.0, 0.0]) if n == 1 else 0)

    assert batch_invariance.compared(call, 5) == {"differ": 0.25, "most": pytest.approx(0.125)}
    assert batch_invariance.compared(lambda n: among[:n], 5) == {"differ": 0.0, "most": 0.0}


@pytest.mark.skipif(torch.cuda.is_available(), reason="the machine's answer is for a CPU")
def test_every_operation_gives_row_0_alone_and_among_three():
    """A wrong row would be far off; a batch may only change roundings."""
    from tilescope import launcher

    launcher.install()
    met = set()
    for name, by, call in batch_invariance.operations(SMALL, 3, 8, "cpu"):
        assert call(1).shape == (1, *call(3).shape[1:])
        assert batch_invariance.compared(call, 3)["most"] < 0.02, name
        met.add((name, by))
    assert len(met) == 6 and ("16-bit linear layer", "torch.matmul") in met
