"""Experts of 4 bits in two launches are the experts that their codes stand for; idle ones may hold anything."""

import numpy as np
import pytest
import torch

from kernels.compare import relative_error
from kernels.quantization_layouts import bench, cases, reference
from kernels.quantization_layouts.experts import Experts, experts
from kernels.quantization_layouts.packed import assemble, gated_rows
from kernels.quantization_layouts.stream import pick_experts, stream
from kernels.tensors import DTYPES, to_numpy, to_torch
from kernels.tests.figures import REFUSAL

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def weight(count: int, n: int, k: int, group: int, dtype: str, gated: bool):
    """(packed, what it stands for), an expert after the other."""
    q = list(cases.quantized(cases.Case(1, n, k, group=group, dtype=dtype, experts=count)))
    codes = torch.from_numpy(np.stack([one.codes for one in q])).to(DEVICE)
    scales = to_torch(np.stack([one.scales for one in q]), DEVICE)
    zeros = None if q[0].zeros is None else torch.from_numpy(np.stack([one.zeros for one in q])).to(DEVICE)
    parts = [part if part is None or not gated else gated_rows(part) for part in (codes, scales, zeros)]
    return assemble(*parts, None, 4, group), np.stack([reference.values(one) for one in q])


def dense(rows, offsets, gate_up, down):
    """In float64, the rows between the two products rounded as the kernels round them."""
    out = np.zeros((len(rows), down.shape[1]))
    for e, (first, last) in enumerate(zip(offsets, offsets[1:], strict=False)):
        gate, up = np.split(rows[first:last].astype(float) @ gate_up[e].T, 2, axis=1)
        h = (gate / (1 + np.exp(-gate)) * up).astype(rows.dtype)
        out[first:last] = h.astype(float) @ down[e].T
    return out


@pytest.mark.parametrize(
    "loads, hidden, wide, group, dtype",
    [
        ((0, 2, 0, 1), 64, 32, 32, "fp16"),  # fewer rows than experts: one of them has two
        ((0, 0, 0, 0, 1), 128, 64, 64, "bf16"),  # a single row, of the last expert
        ((9, 0, 3), 128, 128, 128, "bf16"),  # more rows of an expert than a program takes at a time
    ],
)
def test_experts(loads, hidden, wide, group, dtype):
    rng = np.random.default_rng(sum(loads))
    offsets = np.concatenate([[0], np.cumsum(loads)]).astype(np.int32)
    rows = rng.standard_normal((sum(loads), hidden)).astype(DTYPES[dtype])
    both, dense_both = weight(len(loads), 2 * wide, hidden, group, dtype, True)
    down, dense_down = weight(len(loads), hidden, wide, group, dtype, False)
    held = Experts(both, down)
    given = to_torch(rows, DEVICE), to_torch(offsets, DEVICE)
    y = experts(*given, held, most=max(loads))
    assert relative_error(to_numpy(y), dense(rows, offsets, dense_both, dense_down)) < 1e-2
    assert torch.equal(experts(*given, held), y), "a bound on an expert's rows changes no bit"


@pytest.mark.parametrize("k", [64, 256, 768, 2048, 8192])
@pytest.mark.parametrize("rows", [1, 16])
def test_only_down_reads_offsets_without_waiting(k, rows):
    """Gate and up follows a launch that may still be writing them, however small the model is."""
    w = bench.stand_in(cases.Case(rows, 64, k))
    assert not pick_experts(w, rows, gated=True).chained and pick_experts(w, rows, gated=False).chained
    assert not pick_experts(w, rows, gated=False).whole or -(-k // 256) <= 8, "few enough words for registers"


def test_sums_of_gate_and_up_are_never_written(watch):
    if DEVICE != "cpu":
        pytest.skip("bytes are counted on the machine")
    both, _ = weight(2, 64, 64, 32, "fp16", True)
    x, h = torch.ones(3, 64, dtype=torch.float16), torch.empty(3, 32, dtype=torch.float16)
    moved = watch(h), watch(both.words[0])
    stream(x, both, h, torch.tensor([0, 0, 3], dtype=torch.int32), 3, gated=True)
    assert moved[0].stored == 3 * 32 * 2 and moved[0].loaded == 0
    assert moved[1].loaded == 64 * 64 // 2, (
        "an expert without rows costs no bytes, the other one is read once"
    )


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Experts(weight(2, 64, 64, 32, "fp16", True)[0], weight(2, 64, 64, 32, "fp16", False)[0]),
        lambda: Experts(weight(2, 64, 64, 32, "fp16", True)[0], weight(3, 64, 32, 32, "fp16", False)[0]),
        lambda: gated_rows(torch.zeros(1, 48, 8)),
        lambda: stream(
            torch.ones(3, 64, dtype=torch.float16),
            weight(1, 64, 64, 32, "fp16", True)[0],
            torch.ones(3, 64, dtype=torch.float16),
            gated=True,
        ),
    ],
)
def test_nonsense_is_refused(wrong):
    with pytest.raises(ValueError, match=REFUSAL):
        wrong()
