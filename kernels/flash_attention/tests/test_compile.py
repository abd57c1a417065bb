"""What the kernels compile to, on a machine without their GPU: spills, room, and the units they are about."""

import pytest

from kernels.tests.compiled import report

SHARED = {80: 163 * 1024, 89: 99 * 1024, 90: 227 * 1024, 100: 227 * 1024}
PER_TILE = {
    "hopper": 16,
    "portable": 64,
    "packed": 40,
    "_gradients": 128,
    "fp32": 64,
    "_grad_kv": 72,  # tiles that spill nothing were slower on the H200
}  # bytes: sizes that wait through the loop over keys, read once a tile


NAMED = (
    *("hopper 128 causal", "decode 80"),
    *("portable 80", "portable 90", "portable 100"),
)


@pytest.fixture(scope="module", params=["some", pytest.param("all", marks=pytest.mark.slow)])
def compiled(request):
    return report("kernels.flash_attention.tests.compile_all", *NAMED, everything=request.param == "all")


def target(name: str) -> int:
    last = name.split()[-1]
    return int(last) if last in map(str, SHARED) else 90


def test_everything_fits_and_next_to_nothing_spills(compiled):
    for name, facts in compiled.items():
        assert facts["shared"] <= SHARED[target(name)], name
        assert facts["spilled"] <= PER_TILE.get(name.split()[0], 0), name


@pytest.mark.parametrize("compiled", [pytest.param("all", marks=pytest.mark.slow)], indirect=True)
def test_fp32_fits_where_its_tiles_are_twice_as_large(compiled):
    """Forward, packed, dK with dV, and dQ: an H200 has no more than 227 KiB for a program."""
    wide = [facts["shared"] for name, facts in compiled.items() if name.startswith("fp32")]
    widest = [name for name in compiled if name.startswith("fp32") and name.endswith(" 256")]
    assert len(widest) == 4 and max(wide) <= SHARED[90]


def test_hopper_fetches_with_tma_and_its_matrix_products_overlap(compiled):
    for name, facts in compiled.items():
        if name.startswith(("hopper", "packed", "_gradients")):
            assert facts["tma"] >= 4 and facts["wgmma"] > 0, name  # Q for each warpgroup, K, V
            assert not facts["serialised"], name


def test_tensor_cores_of_each_generation_are_used(compiled):
    for generation, unit in {80: "mma", 90: "wgmma", 100: "tcgen05"}.items():
        assert compiled[f"portable {generation}"][unit] > 0
    for name, facts in compiled.items():
        if name.startswith("decode"):
            assert facts["mma"] > 0, "16 rows of grouped heads: the small matrix instruction"
        if name.startswith("_grad"):
            assert facts["wgmma"] > 0, name
