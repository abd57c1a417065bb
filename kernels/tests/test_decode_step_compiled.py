"""What a decode step's kernels compile to at Qwen3-30B-A3B's shapes, on a machine without their GPU."""

import pytest

from kernels.tests.compiled import report

MOST_SHARED = 227 * 1024  # bytes that a program may have on a Hopper


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def compiled():
    return report("kernels.tests.compile_decode_step", everything=True)


def test_nothing_spills_and_everything_fits(compiled):
    for name, facts in compiled.items():
        assert facts["spilled"] == 0 and facts["shared"] <= MOST_SHARED, name


def test_a_layer_takes_as_many_launches_as_it_says(compiled):
    """Norm, qkv, rotary, attention (which 64 rows do without splits), out, norm, router, order, gate and up, down, combine;
    then a lookup, norm, head and a sampler of one or two."""
    for batch in {name.split()[0] for name in compiled}:
        names = [name.split()[2] for name in compiled if name.split()[0] == batch]
        last = names.count("sample_kernel")
        assert last in (1, 2) and len(names) == 11 + 3 + last, names
        assert names.count("stream_kernel") == 2 and names.count("residual_norm_kernel") == 3


def test_a_launch_that_begins_early_waits_and_gate_and_up_waits_before_it_lets_down_begin(compiled):
    """Down reads offsets without a wait of its own. The lookup begins and ends alone, as the step's fence."""
    for batch in {name.split()[0] for name in compiled}:
        own = {name: one for name, one in compiled.items() if name.split()[0] == batch}
        for name, one in own.items():
            assert one["early"] == ("wait" in one["order"]) == ("launch" in one["order"]), name
        gate_up, down = (one["order"] for name, one in own.items() if "stream_kernel" in name)
        assert gate_up == ["wait", "launch"], batch
        assert down == ["launch", "wait"], batch
        assert not next(one for name, one in own.items() if "embedding" in name)["early"]
        early = sum(one["early"] for one in own.values())
        assert early >= 10, "norm, rotary, attention, norm, router, order, experts, combine, norm, sampler"
