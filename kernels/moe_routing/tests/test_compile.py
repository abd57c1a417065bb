"""What the kernels compile to, on a machine without their GPU: nothing spills, all fits, and the right units multiply."""

import pytest

from kernels.moe_routing.tests.compile_all import TILES
from kernels.tests.compiled import report

SHARED = {80: 163 * 1024, 89: 99 * 1024, 90: 227 * 1024, 100: 227 * 1024}
WIDE = {80: "mma", 89: "mma", 90: "wgmma", 100: "tcgen05"}  # for tiles of 64 rows and more


@pytest.fixture(scope="module")
def compiled():
    return report("kernels.moe_routing.tests.compile_all")


def test_nothing_spills_and_everything_fits(compiled):
    for name, facts in compiled.items():
        assert facts["spilled"] == 0, name
        assert facts["shared"] <= SHARED[int(name.split()[-1])], name


def test_a_layer_takes_as_many_launches_as_it_says(compiled):
    for layer, launches in {
        "Qwen3-like 1": 3,
        "Qwen3-like 16": 4,
        "DeepSeek-like 1": 3,
        "DeepSeek-like 100": 5,
    }.items():
        mine = [name for name in compiled if name.startswith(f"{layer} ")]
        twice = any("experts_kernel" in name for name in mine)  # gate and up, and down
        assert len(mine) + twice == launches, mine


def test_each_generation_multiplies_on_its_tensor_cores(compiled):
    for target, tiles in TILES.items():
        for tile in tiles:
            assert compiled[f"gate_up {tile} {target}"][WIDE[target] if tile >= 64 else "mma"] > 0, (
                tile,
                target,
            )


def test_one_token_is_multiplied_by_the_plain_units(compiled):
    mine = [facts for name, facts in compiled.items() if " 1 gate_up" in name or " 1 down" in name]
    assert len(mine) == 4 and not any(facts["mma"] or facts["wgmma"] for facts in mine)


def test_hopper_fetches_with_tma_and_its_matrix_products_overlap(compiled):
    mine = {name: facts for name, facts in compiled.items() if name.startswith("hopper")}
    assert len(mine) == 2 * 2, "two products, tiles of 128 and of 192 rows"
    for name, facts in mine.items():
        assert facts["tma"] >= 4 and facts["wgmma"] > 0 and not facts["serialised"], name
