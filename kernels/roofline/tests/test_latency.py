"""The pointer chase visits every line once before it repeats, by loads of the cache it is about."""

import pytest
import torch

from kernels.roofline import latency
from kernels.tests.compiled import report

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize(("size", "spacing"), [(64, 4), (1024, 128), (4096, 512)])
def test_a_ring_visits_every_line_once(size, spacing):
    x, at, met = latency.ring(size, spacing, "cpu"), 0, []
    for _ in range(size // spacing):
        at = int(x[at])
        met.append(at)
    assert at == 0 and sorted(met) == list(range(0, size // 4, spacing // 4))
    assert met != sorted(met), "in order, hardware that prefetches would hide the wait"


@pytest.mark.parametrize("cache", sorted({cache for *_, cache in latency.LEVELS}))
def test_the_chase_goes_on_where_it_ended(cache):
    x = latency.ring(512, 16, DEVICE)
    at, want = torch.zeros(1, dtype=torch.int32, device=DEVICE), 0
    for steps in (1, 5):
        latency.chase[(1,)](x, at, steps, CACHE=cache)
        for _ in range(steps):
            want = int(x[want])
        assert int(at) == want


def test_each_chase_loads_from_its_own_memory():
    loads = report("kernels.roofline.tests.compile_latency")
    assert loads["shared memory"] == ["shared"] * latency.UNROLLED
    assert loads["L1"][-1] == "global.ca" and loads["L2"][-1] == loads["HBM"][-1] == "global.cg"


def test_the_walk_over_hbm_is_longer_than_an_l2():
    sizes = {name: (size, spacing) for name, size, spacing, _ in latency.LEVELS}
    size, spacing = sizes["HBM"]
    assert size // spacing * 64 > 2 * 60 * 2**20, "sectors of a whole walk, and an H200's L2"
    assert sizes["L1"][0] < 2**15 and sizes["L2"][0] < 25 * 2**20
