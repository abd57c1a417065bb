"""Launches that begin while the one before them runs: what is fetched before the wait, and that nothing is used too early."""

import pytest
import torch

from kernels import timing
from kernels.overlap import can_overlap, overlapped
from kernels.quantization_layouts import bench, cases
from kernels.quantization_layouts.candidates import Layer, layer
from kernels.quantization_layouts.direct import Direct, direct
from kernels.quantization_layouts.ring_launch import Ring, ring, takes
from kernels.quantization_layouts.stream import Stream, stream
from kernels.tests.compiled import report
from kernels.tests.figures import REFUSAL

EARLY = (
    (stream, Stream(1, 8, 256, tensor=False, early=True), 1),
    (stream, Stream(1, 4, 512, early=True), 8),
    (stream, Stream(1, 4, 256, stages=3, early=True), 8),
    (direct, Direct(1, 4, 256, early=True), 8),
    (direct, Direct(2, 4, 128, cols=16, ahead=False, early=True), 16),
    (ring, Ring(16, 2, stages=6, even=False, early=True), 16),
)
STEPS = 24


@pytest.fixture(scope="module")
def compiled():
    names = [
        f"early {unit} {form} 90"
        for unit in ("scalar", "stream", "direct", "ring")
        for form in ("int4", "k4")
    ]
    kernels = report("kernels.quantization_layouts.tests.compile_all", *names)["kernels"]
    return {name: kernels[name] for name in names}


def test_words_are_fetched_before_the_wait_and_x_after_it(compiled):
    for name, facts in compiled.items():
        let_begin, fetched, then = facts["early"]
        assert let_begin and facts["launched early"], name
        assert fetched >= 2 and then >= 1, f"{name}: {fetched} fetches before the wait, {then} after it"


def test_what_waits_as_every_launch_does_says_nothing_of_it(compiled):
    kernels = report("kernels.quantization_layouts.tests.compile_all", "stream int4 90")["kernels"]
    assert kernels["stream int4 90"]["early"] is None and not kernels["stream int4 90"]["launched early"]
    assert overlapped(False) == {} and overlapped(True) == {"launch_pdl": True}


def test_only_a_gpu_overlaps():
    assert not can_overlap(torch.device("cpu")) and not can_overlap(torch.device("meta"))


def device():
    return torch.device("cuda", torch.cuda.current_device())


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("launch", "config", "rows"), EARLY, ids=lambda one: getattr(one, "__name__", str(one)[:60])
)
@pytest.mark.parametrize("form", ("int4", "k4"))
def test_a_chain_of_products_is_what_it_is_one_after_the_other(form, launch, config, rows):
    """Each launch's X is what the one before wrote, and its Y is what that one read: too early either way is seen."""
    case = cases.Case(rows, 2048, 2048) if form == "int4" else cases.book(rows, 2048, 2048, 4)
    x = bench.draw(case, 0, device())
    if launch is ring and not takes(x["packed"]):
        pytest.skip("it wants a Hopper GPU")
    if (
        form == "int4"
    ):  # codes are half a step off their middle on average, which 24 products would make infinite
        x["packed"].scales.mul_(0.05)
    w = layer(x["packed"]).packed
    alone, chained = ([x["x"].clone(), torch.empty_like(x["x"])] for _ in range(2))
    for i in range(STEPS):
        launch(alone[i % 2], w, alone[1 - i % 2], config=config)
        torch.cuda.synchronize()
    assert alone[0].isfinite().all() and alone[0].any()
    calls = [lambda i=i: launch(chained[i % 2], w, chained[1 - i % 2], config=config) for i in range(STEPS)]
    graph = timing.capture([lambda: torch.mul(x["x"], 1, out=chained[0]), *calls])
    for _ in range(50):
        graph.replay()
        torch.cuda.synchronize()
        assert torch.equal(chained[0], alone[0])
    torch.mul(x["x"], 1, out=chained[0])
    for call in calls:
        call()
    assert torch.equal(chained[0], alone[0]), "outside a graph"


@pytest.mark.gpu
def test_rows_that_the_launch_before_places_are_read_after_it():
    """Offsets come from a launch, too, so a ragged one waits before it reads them."""
    case = cases.book(1, 512, 2048, 4, experts=8)
    x = bench.draw(case, 0, device())
    w = layer(x["packed"]).packed
    ends = torch.arange(9, dtype=torch.int32, device=device())
    expected = direct(x["x"], w, None, ends, 1)
    made, out = torch.empty_like(ends), torch.empty_like(expected)
    for launch, config in ((direct, Direct(early=True)), (stream, Stream(early=True))):

        def both(launch=launch, config=config):
            torch.add(ends, 0, out=made)
            launch(x["x"], w, out, made, 1, config)
            made.zero_()

        graph = timing.capture([both] * 20)
        graph.replay()
        torch.cuda.synchronize()
        assert torch.allclose(out, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.gpu
def test_a_layer_is_made_before_a_capture():
    packed = bench.draw(cases.Case(1, 64, 128), 0, device())["packed"]
    with pytest.raises(ValueError, match=REFUSAL) as error:
        timing.capture([lambda: Layer(packed)])
    assert error.match("^layer must be made before a graph is captured")
