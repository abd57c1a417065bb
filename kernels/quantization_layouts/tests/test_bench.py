"""What the benchmark asks before it times a layer; it can say no."""

import math

import pytest
import torch

from kernels.bench.row import Absent
from kernels.quantization_layouts import bench, bench_formats, cases, peers
from kernels.quantization_layouts.formats import FORMS

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SMALL = (
    cases.Case(2, 70, 256, zero_points=True, dtype="bf16"),
    cases.book(3, 64, 96, 3),
    cases.book(2, 48, 64, 5, experts=3),
)


@pytest.mark.parametrize("case", SMALL, ids=lambda c: c.name)
def test_ours_and_the_library_pass_and_a_wrong_column_does_not(case):
    x = bench.draw(case, 0, DEVICE)
    out = bench.ours(x)()
    assert bench.check(x, out) < bench.TOLERANCE[case.dtype]
    assert bench.check(x, peers.cublas(x)()) < bench.TOLERANCE[case.dtype]
    for column in (0, case.n - 1):
        wrong = out.clone()
        wrong[-1, column] += 60
        assert bench.check(x, wrong) > 10 * bench.TOLERANCE[case.dtype]
    assert bench.check(x, out[:-1]) == bench.check(x, out * math.nan) == math.inf


def test_two_seeds_give_two_weights_and_one_seed_one():
    a, b, c = (bench.draw(SMALL[0], seed, DEVICE) for seed in (0, 0, 1))
    assert torch.equal(a["packed"].words[0], b["packed"].words[0])
    assert not torch.equal(a["packed"].words[0], c["packed"].words[0])


def test_every_row_has_a_bound_and_somebody_to_compare_with():
    rows = list(bench.rows(DEVICE))
    assert [row.case for row in rows] == [case.name for case in (*cases.TIMED, *bench_formats.TIMED)]
    assert all("cuBLAS 16 bits" in row.peers for row in rows)
    for row, case in zip(rows, cases.TIMED, strict=False):
        weights = case.experts * case.n * case.k * case.bits / 8
        assert weights < row.bytes < weights * 1.5 + 4 * case.experts * case.m * (case.n + case.k)
    assert len({(case.name, case.mode) for case in cases.TIMED}) == len(cases.TIMED)


def test_peers_that_cannot_say_why():
    book, zeros = bench.draw(cases.book(2, 64, 64, 4), 0, DEVICE), bench.draw(SMALL[0], 0, DEVICE)
    fp16 = bench.draw(cases.Case(1, 64, 128), 0, DEVICE)
    with pytest.raises(Absent, match="bf16"):
        peers.int4pack(fp16)
    for peer, inputs in ((peers.bitsandbytes, book), (peers.marlin, zeros), (peers.machete, zeros)):
        with pytest.raises((Absent, ImportError)):
            peer(inputs)


@pytest.mark.parametrize("form", FORMS)
def test_every_format_passes_and_a_wrong_column_does_not(form):
    x = bench_formats.draw(bench_formats.Timed(form, 18, 64, 256), 0, DEVICE)
    out = bench_formats.ours(x)()
    assert bench_formats.check(x, out) < bench_formats.BF16_RESULT
    assert bench_formats.check(x, bench_formats.cublas(x)()) < bench_formats.BF16_RESULT
    for column in (0, 63):
        wrong = out.clone()
        wrong[-1, column] += 4 * out.abs().max()
        assert bench_formats.check(x, wrong) > 10 * bench_formats.BF16_RESULT
    assert bench_formats.check(x, out[:-1]) == bench_formats.check(x, out * math.nan) == math.inf


@pytest.mark.gpu
def test_torchs_int4_is_right_about_the_same_codes():
    for zero_points in (False, True):
        case = cases.Case(3, 256, 1024, zero_points=zero_points, dtype="bf16")
        x = bench.draw(case, 0, DEVICE)
        assert bench.check(x, peers.int4pack(x)()) < bench.TOLERANCE["bf16"]
