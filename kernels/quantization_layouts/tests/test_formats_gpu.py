"""The other formats on a GPU: each tile that is chosen, ragged and at real shapes, and torch on the same numbers."""

import pytest
import torch

from kernels.quantization_layouts import bench_formats as bench
from kernels.quantization_layouts.formats import FORMS, linear
from kernels.quantization_layouts.quantize_rows import NUMBERS

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize(("n", "k"), [(5120, 2048), (1030, 2080), (70, 288)])
@pytest.mark.parametrize("m", (1, 3, 17, 64, 65, 300))
@pytest.mark.parametrize("form", FORMS)
def test_every_tile_is_right(form, m, n, k):
    x = bench.draw(bench.Timed(form, m, n, k), 0, torch.device("cuda", 0))
    assert bench.check(x, bench.ours(x)()) < bench.BF16_RESULT
    twice = [bench.ours(x)() for _ in range(2)]
    assert torch.equal(*twice)


@pytest.mark.parametrize("form", NUMBERS)
def test_a_layer_quantizes_and_multiplies(form):
    x = bench.draw(bench.Timed(form, 5, 512, 992), 0, torch.device("cuda", 0))
    assert bench.check(x, linear(x["x"], x["w"])) < bench.BF16_RESULT


@pytest.mark.parametrize("form", FORMS)
def test_others_multiply_the_same_numbers(form):
    case = bench.Timed(form, 18, 256, 512)
    x = bench.draw(case, 0, torch.device("cuda", 0))
    for peer in bench.peers_of(case).values():
        assert bench.check(x, peer(x)()) < bench.BF16_RESULT
