"""On a GPU: every candidate at real shapes, of every form; the same bits twice; rows of experts that differ."""

import pytest
import torch

from kernels.compare import relative_error
from kernels.quantization_layouts import bench, cases
from kernels.quantization_layouts.candidates import CANDIDATES, layer, worth
from kernels.quantization_layouts.direct import direct
from kernels.quantization_layouts.dispatch import linear
from kernels.quantization_layouts.ring_launch import Ring, ring, takes
from kernels.quantization_layouts.stream import stream
from kernels.quantization_layouts.tile import tile

pytestmark = pytest.mark.gpu

FORMS = {
    "int4": {"bits": 4, "kind": "int4", "group": 128},
    "zero": {"bits": 4, "kind": "int4", "group": 32, "zero_points": True},
    **{f"k{bits}": {"bits": bits, "kind": "book", "group": 32} for bits in (2, 3, 4, 5)},
}
SHAPES = {"gateup": (5120, 2048), "down": (2048, 5120), "odd": (4000, 2080)}


def device():
    return torch.device("cuda", torch.cuda.current_device())


@pytest.mark.parametrize("m", (1, 3, 16, 65, 300))
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("form", FORMS)
def test_every_candidate_worth_trying_is_right(form, shape, m):
    n, k = SHAPES[shape]
    k -= k % FORMS[form]["group"]
    case = cases.Case(m, n, k, dtype="bf16" if m == 3 else "fp16", **FORMS[form])
    x = bench.draw(case, 0, device())
    one = layer(x["packed"], keep_dense=True)
    for candidate in worth(m, x["packed"]):
        error = bench.check(x, candidate.call(x["x"], one, None))
        assert error < bench.TOLERANCE[case.dtype], candidate.name


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("m", (1, 4, 16, 64))
def test_experts_by_every_candidate(form, m):
    case = cases.Case(m, 512, 2048, experts=8, **FORMS[form])
    x = bench.draw(case, 0, device())
    one = layer(x["packed"], keep_dense=True)
    for candidate in worth(m, x["packed"]):
        assert bench.check(x, candidate.call(x["x"], one, None)) < bench.TOLERANCE["fp16"], candidate.name


RINGED = (
    (cases.Case(5, 300, 608, group=32, zero_points=True), Ring(8)),
    (cases.Case(40, 264, 960, group=64, dtype="bf16"), Ring(16)),
    (cases.Case(3, 512, 2048, zero_points=True, experts=8), Ring(16, 2, 2)),
    (cases.Case(20, 40, 96, group=32, dtype="bf16", experts=3), Ring(64, 2)),
    (cases.Case(100, 1000, 4032, group=64, zero_points=True, experts=2), Ring(128, 2, 2, 4, even=False)),
    (cases.Case(300, 700, 512), Ring(64, stages=6, late=False)),
    (cases.Case(16, 2000, 8192, dtype="bf16"), Ring(16, stages=2)),
    (cases.Case(60, 5000, 8192, dtype="bf16"), Ring(64, 2, 4, 4)),
    (cases.book(5, 300, 608, 4), Ring(8, 2, stages=5, two=True)),
    (cases.book(40, 264, 960, 4, group=64, dtype="bf16"), Ring(16)),
    (cases.book(16, 2000, 2048, 4, group=128, dtype="bf16"), Ring(16, 2, stages=6, two=True, early=True)),
    (cases.book(3, 500, 2048, 4, experts=5), Ring(16, 2, even=False, early=True)),
    (cases.book(60, 1000, 2048, 4, group=128), Ring(64, 2, 2, 6)),
)


@pytest.mark.parametrize(("case", "config"), RINGED, ids=lambda one: getattr(one, "name", ""))
def test_a_ring_is_right_wherever_shares_and_rows_end(case, config):
    """Tiles cut among programs, K that ends inside a step, N inside a tile; no sum may depend on who came last."""
    x = bench.draw(case, 0, device())
    if not takes(x["packed"]):
        pytest.skip("it wants a Hopper GPU")
    out = torch.full((case.experts * case.m, case.n), float("nan"), device=device(), dtype=x["x"].dtype)
    ring(x["x"], x["packed"], out, config)
    assert bench.check(x, out) < bench.TOLERANCE[case.dtype]
    assert all(torch.equal(out, ring(x["x"], x["packed"], None, config)) for _ in range(5))


@pytest.mark.parametrize("form", FORMS)
def test_ragged_experts_give_what_each_alone_gives(form):
    rows = [0, 1, 17, 130, 0, 5, 64, 3]
    case = cases.Case(1, 512, 2048, experts=len(rows), **FORMS[form])
    drawn = bench.draw(case, 0, device())
    w = drawn["packed"]
    ends = torch.tensor([0, *torch.tensor(rows).cumsum(0).tolist()], dtype=torch.int32)
    x = torch.randn(int(ends[-1]), case.k, device=device()).half()
    dense = layer(w, keep_dense=True).dense
    expected = torch.cat(
        [x[a:b].float() @ d.float().T for a, b, d in zip(ends, ends[1:], dense, strict=False)]
    )
    for launch in (stream, direct, tile):
        out = launch(x, w, None, ends.to(device()), max(rows))
        assert relative_error(out.cpu(), expected.cpu()) < 1e-3
    assert relative_error(linear(x, layer(w), offsets=ends.to(device())).cpu(), expected.cpu()) < 1e-3


@pytest.mark.parametrize("name", [name for name in CANDIDATES if name.startswith(("MMA", "scalar"))])
def test_the_same_bits_at_every_run(name):
    case = cases.book(4, 2048, 4096, 4) if "ring" not in name else cases.Case(4, 2048, 4096)
    x = bench.draw(case, 0, device())
    one = layer(x["packed"])
    if not CANDIDATES[name].takes(one.packed):
        pytest.skip("it wants a Hopper GPU")
    first = CANDIDATES[name].call(x["x"], one, None)
    assert all(torch.equal(first, CANDIDATES[name].call(x["x"], one, None)) for _ in range(5))


def test_a_weight_with_more_codes_than_32_bits_count():
    """96 experts of 28672 x 1024: offsets beyond 2^31 elements once unpacked."""
    case = cases.Case(1, 28672, 1024, experts=96)
    if torch.cuda.get_device_properties(device()).total_memory < 60e9:
        pytest.skip("needs a GPU of 60 GB")
    one = bench.draw(cases.Case(1, 28672, 1024), 0, device())["packed"]
    many = one._each(lambda part: part.expand(case.experts, *part.shape[1:]).contiguous())
    w = type(one)(many.words, many.scales, None, None, 4, 128, case.experts, case.n, case.k)
    x = torch.randn(case.experts, case.k, device=device()).half()
    alone = stream(x[-1:], one)
    assert torch.equal(stream(x, w)[-1:], alone)
    assert relative_error(tile(x, w)[-1:].cpu(), alone.cpu()) < 1e-3
    last = layer(w, keep_dense=True).dense[-1]
    assert relative_error((x[-1:].float() @ last.float().T).cpu(), alone.cpu()) < 1e-3


@pytest.mark.parametrize("m", (1, 64))
def test_a_row_of_the_benchmark_is_measured(m):
    from kernels.bench.measure import measure

    row = next(row for row in bench.rows(device()) if row.case.startswith(f"{m} x 4096 x 2048 k4"))
    found = measure(row, device(), {"copy": 4e12, "bf16": 7e14, "fp16": 7e14}, 0.05)
    assert "us" in found and "ratio" in found["peers"]["cuBLAS 16 bits"]
