"""What the kernels compile to, on a machine without their GPU: nothing spills, all fits, and the right units multiply."""

import pytest

from kernels.moe_routing.tests.compile_all import TILES
from kernels.tests.compiled import report

pytestmark = pytest.mark.slow  # what three other topics compile to is looked at in make test
SHARED = {80: 163 * 1024, 89: 99 * 1024, 90: 227 * 1024, 100: 227 * 1024}
WIDE = {80: "mma", 89: "mma", 90: "wgmma", 100: "tcgen05"}  # for tiles of 64 rows and more


LAUNCHES = {
    "Qwen3-like 1": 3,
    "Qwen3-like 16": 4,
    "Qwen3-like 1100": 6,
    "DeepSeek-like 1": 3,
    "DeepSeek-like 100": 5,
    "DeepSeek-like 4096": 6,
    "routed elsewhere 100": 5,
}
NAMED = (
    *(
        "Qwen3-like 1",
        "DeepSeek-like 100",
        "routed elsewhere 100",
        "DeepSeek-like 4096",
        "hopper gate_up 192 90",
        "hopper down 128 90",
        "turns gate_up 192 90",
        "turns down 128 90",
    ),
    *(f"gate_up 128 {target}" for target in TILES),
    *("gate_up 16 80", "gate_up 16 90", "down 128 90"),
)


@pytest.fixture(scope="module", params=["some", pytest.param("all", marks=pytest.mark.slow)])
def compiled(request):
    return report("kernels.moe_routing.tests.compile_all", *NAMED, everything=request.param == "all")


def test_nothing_spills_and_everything_fits(compiled):
    for name, facts in compiled.items():
        assert facts["spilled"] == 0, name
        assert facts["shared"] <= SHARED[int(name.split()[-1])], name


def test_a_layer_takes_as_many_launches_as_it_says(compiled):
    met = {layer: [name for name in compiled if name.startswith(f"{layer} ")] for layer in LAUNCHES}
    assert set(NAMED[:4]) <= {layer for layer, mine in met.items() if mine}
    for layer, mine in met.items():
        twice = any("experts_kernel" in name for name in mine)  # gate and up, and down
        assert not mine or len(mine) + twice == LAUNCHES[layer], mine


def test_each_generation_multiplies_on_its_tensor_cores(compiled):
    for target, tiles in TILES.items():
        met = {tile: compiled[name] for tile in tiles if (name := f"gate_up {tile} {target}") in compiled}
        assert 128 in met
        for tile, facts in met.items():
            assert facts[WIDE[target] if tile >= 64 else "mma"] > 0, (tile, target)


def test_one_token_is_multiplied_by_the_plain_units(compiled):
    mine = {name: facts for name, facts in compiled.items() if " 1 one_" in name}
    models = {name.split()[0] for name in mine}
    assert models and len(mine) == 3 * len(models)
    assert not any(facts["mma"] or facts["wgmma"] for facts in mine.values())


def test_hopper_fetches_with_tma_and_its_matrix_products_overlap(compiled):
    mine = {name: facts for name, facts in compiled.items() if name.startswith(("hopper", "turns"))}
    for form in ("hopper", "turns"):
        names = [name.split() for name in mine if name.startswith(form)]
        assert {name[1] for name in names} == {"gate_up", "down"}
        assert {name[2] for name in names} == {"128", "192"}
    for name, facts in mine.items():
        assert facts["tma"] >= 4 and facts["wgmma"] > 0 and not facts["serialised"], name
