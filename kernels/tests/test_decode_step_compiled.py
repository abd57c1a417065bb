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
    """Norm, qkv, rotary, attention, out, norm, router, order, gate and up, down, combine; then norm, head and a sampler of one or two."""
    for batch in {name.split()[0] for name in compiled}:
        names = [name.split()[2] for name in compiled if name.split()[0] == batch]
        last = names.count("sample_kernel")
        assert last in (1, 2) and len(names) == 11 + 2 + last, names
        assert names.count("stream_kernel") == 2 and names.count("residual_norm_kernel") == 3
