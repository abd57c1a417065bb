"""Rows that a cluster of programs shares: the choice and the compiled kernel everywhere, the answers on a GPU."""

import numpy as np
import pytest
import torch

from kernels.compare import relative_error
from kernels.roofline import cases, reference, spread_rows
from kernels.roofline.layernorm_gelu import LONGEST_HELD, layernorm_gelu
from kernels.roofline.spread_rows import SPREADS, spread_for
from kernels.tensors import to_numpy, to_torch
from kernels.tests.compiled import report

NAMED = ("spread 16384 90", "spread 65536 90", "spread 131072 90")


def test_rows_are_spread_where_it_was_measured_to_be_faster():
    assert spread_for(12288, 2) is None and spread_for(16385, 2) is None and spread_for(28672, 2) is None
    assert spread_for(12304, 2) == SPREADS[16384] and spread_for(28688, 2) == SPREADS[32768]
    assert spread_for(131088, 2) is None and spread_for(32768, 4) is None
    assert spread_for(50257, 2) is None, "rows of odd lengths are loaded element by element"
    assert max(spread_rows.WHOLE) == LONGEST_HELD[2]


@pytest.mark.parametrize("cols", SPREADS)
def test_a_part_fits_the_threads_that_hold_it(cols):
    c = SPREADS[cols]
    assert c.piece * c.parts * -(-cols // (c.piece * c.parts)) >= cols
    assert c.parts in (2, 4, 8, 16), "a cluster has at most 16 programs"
    assert c.registers * 32 * c.warps * -(-c.clusters * c.parts // 132) <= 65536, "all clusters run at once"


@pytest.mark.parametrize("everything", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_no_spread_kernel_spills(everything):
    compiled = report("kernels.roofline.tests.compile_all", *NAMED, everything=everything)
    spread = {name: facts for name, facts in compiled.items() if name.startswith("spread")}
    assert set(NAMED) <= set(spread)
    for name, facts in spread.items():
        cols, target = map(int, name.split()[1:])
        assert facts["spilled"] == 0 or target != 90, "the numbers of registers are an H200's"
        assert facts["registers"] <= SPREADS[cols].registers, name


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ("bf16", "fp16"))
@pytest.mark.parametrize("values", ("normal", "offset"))
@pytest.mark.parametrize(
    "cols", (*SPREADS, 12304, 13008, 28688, 30000, 33024, 40016, 50256, 65552, 99984, 100000)
)
def test_parts_give_the_reference(cols, values, dtype):
    case = cases.Case(5 if cols > 16384 else 500, cols, dtype, values)
    want = reference.layernorm_gelu(*cases.draw(case))
    x, weight, bias = (to_torch(v, "cuda") for v in cases.draw(case))
    out = torch.full((case.rows, cols), float("nan"), dtype=x.dtype, device="cuda")
    if not spread_rows.can_spread(x, out):
        pytest.skip("this GPU has no clusters of 16")
    for _ in range(3):  # launched, recorded, replayed
        got = to_numpy(layernorm_gelu(x, weight, bias, out=out.fill_(float("nan"))))
        assert np.isfinite(got).all() and relative_error(got, want) < 4e-3


@pytest.mark.gpu
def test_a_nan_stays_in_its_row_of_parts():
    x = torch.ones(700, 32768, device="cuda", dtype=torch.bfloat16)
    x[351, 32767] = float("nan")
    ones = torch.ones(32768, device="cuda", dtype=torch.bfloat16)
    found = layernorm_gelu(x, ones, ones).isfinite().all(1).tolist()
    assert [row for row, finite in enumerate(found) if not finite] == [351]
