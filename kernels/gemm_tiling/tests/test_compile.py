"""What the kernels compile to, on a machine without their GPU: no spills, and the unit that they are about."""

import pytest

from kernels.tests.compiled import report

SHARED = {80: 163 * 1024, 89: 99 * 1024, 90: 227 * 1024, 100: 227 * 1024}


@pytest.fixture(scope="module")
def compiled():
    return report("kernels.gemm_tiling.tests.compile_all")


def test_nothing_spills_and_everything_fits(compiled):
    for name, facts in compiled.items():
        target = int(name.split()[-1]) if name.split()[-1].isdigit() else 90
        assert facts["spilled"] == 0, name
        assert facts["shared"] <= SHARED[target], name


def test_tensor_cores_of_each_generation_are_used(compiled):
    unit = {80: "mma", 89: "mma", 90: "wgmma", 100: "tcgen05"}
    for target, instruction in unit.items():
        assert compiled[f"pointers {target}"][instruction] > 0, target
        if target >= 89:
            assert compiled[f"block_scaled {target}"][instruction] > 0, target
        assert not any(compiled[f"gemv {target}"][i] for i in set(unit.values())), "a GEMV has no use for one"


def test_hopper_fetches_with_tma_and_multiplies_with_wgmma(compiled):
    for name, facts in compiled.items():
        if name.startswith("hopper"):
            assert facts["wgmma"] > 0 and facts["tma"] >= 3, name  # A, B in; C out
    assert compiled["descriptors 90"]["tma"] >= 3 and compiled["descriptors 90"]["wgmma"] > 0
