"""A layer that times its likeliest candidates: which ones, when none, and that linear() follows what was found."""

import pytest
import torch

from kernels.compare import relative_error
from kernels.quantization_layouts import bench, cases, dispatch, settle
from kernels.quantization_layouts.candidates import CANDIDATES, LIBRARY, SIXTEEN, layer
from kernels.quantization_layouts.dispatch import Choice

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
DIRECT = [name for name in CANDIDATES if name.startswith("MMA direct 16 rows") and "8 cols" in name][:8]
US = dict(zip([*DIRECT, SIXTEEN, LIBRARY], (5.0, 5.1, 5.2, 5.3, 5.4, 5.5, 5.6, 5.7, 6.0, 4.0), strict=True))


def table(n=64, k=256, m=4):
    return (Choice(n, k, 1, "int4", m, DIRECT[0], DIRECT[0], 128, US),)


def drawn(case, dense=True):
    x = bench.draw(case, 0, DEVICE)
    return x, layer(x["packed"], keep_dense=dense)


CASE = cases.Case(4, 128, 256, dtype="bf16")


def test_the_likeliest_and_16_bits_are_timed_and_what_was_measured_is_not():
    _, one = drawn(CASE)
    names = settle.contenders(one, 4, table())
    assert len(names) == settle.COUNT + 1 and SIXTEEN in names and LIBRARY not in names
    assert names[0] == dispatch.choose(one, 4, table()) and set(names[1:]) < {*DIRECT, SIXTEEN}
    one.dense = None
    assert SIXTEEN not in settle.contenders(one, 4, table())
    assert settle.contenders(one, 4, table(128, 256)) == [DIRECT[0]], "measured for this very layer"
    assert len(settle.contenders(one, 3, table(128, 256))) > 1, "for another number of rows"
    assert settle.contenders(one, 4, ()) == [dispatch.choose(one, 4)]


@pytest.mark.parametrize("dense", [True, False])
def test_linear_follows_what_was_the_fastest(monkeypatch, dense):
    x, one = drawn(CASE, dense)
    asked = []

    def timed(names, layer, rows):
        asked.append((names, rows))
        return {name: float(name != names[2]) for name in names}

    monkeypatch.setattr(settle, "timed", timed)
    one.packed.replays["an earlier choice"] = None
    best = settle.settle(one, 4, table())
    assert asked == [(settle.contenders(one, 4, table()), 4)] and best == asked[0][0][2]
    assert not one.packed.replays, "calls kept for the choice before"
    ran, run = [], dispatch._run
    monkeypatch.setattr(dispatch, "_run", lambda name, *rest: ran.append(name) or run(name, *rest))
    got = dispatch.linear(x["x"], one)
    assert ran == [best] and bench.check(x, got) <= bench.TOLERANCE["bf16"]
    other = dispatch.linear(x["x"][:3], one)
    assert ran[1] == dispatch.choose(one, 3, dispatch.table_of_device(0) if DEVICE.type == "cuda" else ())
    assert relative_error(other.float().cpu().numpy(), got[:3].float().cpu().numpy()) < 1e-2


def test_rows_must_be_a_number():
    with pytest.raises(ValueError, match="rows must be"):
        settle.settle(drawn(CASE)[1], 0)


@pytest.mark.gpu
def test_a_layer_times_its_candidates_here():
    x, one = drawn(cases.Case(4, 1088, 2048, dtype="bf16"))
    best = settle.settle(one, 4, table())
    assert best in settle.contenders(one, 4, table())
    times = settle.timed(settle.contenders(one, 4, table()), one, 4)
    assert all(0 < seconds < 1e-3 for seconds in times.values())
    assert bench.check(x, dispatch.linear(x["x"], one)) <= bench.TOLERANCE["bf16"]
