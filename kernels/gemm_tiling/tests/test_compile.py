"""What the kernels compile to, on a machine without their GPU: no spills, and the unit that they are about."""

import pytest

from kernels.tests.compiled import report

SHARED = {80: 163 * 1024, 89: 99 * 1024, 90: 227 * 1024, 100: 227 * 1024}


UNIT = {80: "mma", 89: "mma", 90: "wgmma", 100: "tcgen05"}
NAMED = (
    *(f"{kernel} {target}" for kernel in ("pointers", "gemv") for target in UNIT),
    *(f"block_scaled {target}" for target in UNIT if target >= 89),
    *("descriptors 90", "hopper big rows", "hopper block_scaled 2x256"),
)


@pytest.fixture(scope="module", params=["some", pytest.param("all", marks=pytest.mark.slow)])
def compiled(request):
    return report("kernels.gemm_tiling.tests.compile_all", *NAMED, everything=request.param == "all")


def test_nothing_spills_and_everything_fits(compiled):
    for name, facts in compiled.items():
        target = int(name.split()[-1]) if name.split()[-1].isdigit() else 90
        assert facts["spilled"] == 0, name
        assert facts["shared"] <= SHARED[target], name


def test_tensor_cores_of_each_generation_are_used(compiled):
    for target, instruction in UNIT.items():
        assert compiled[f"pointers {target}"][instruction] > 0, target
        if target >= 89:
            assert compiled[f"block_scaled {target}"][instruction] > 0, target
        assert not any(compiled[f"gemv {target}"][i] for i in set(UNIT.values())), "a GEMV has no use for one"


def test_hopper_fetches_with_tma_and_multiplies_with_wgmma(compiled):
    for name, facts in compiled.items():
        if name.startswith("hopper"):
            assert facts["wgmma"] > 0 and facts["tma"] >= 3, name  # A, B in; C out
    assert compiled["descriptors 90"]["tma"] >= 3 and compiled["descriptors 90"]["wgmma"] > 0
