"""What the kernels compile to, on a machine without their GPU: nothing spills, and no weight changes its lane."""

import pytest

from kernels.quantization_layouts import cost
from kernels.quantization_layouts.tile import MIDDLE, RUN
from kernels.tests.compiled import report

pytestmark = pytest.mark.slow  # what three other topics compile to is looked at in make test
SHARED = {80: 163 * 1024, 90: 227 * 1024, 100: 227 * 1024}


UNIT = {80: "mma", 90: "wgmma", 100: "tcgen05"}
SPILLED = {"format mxfp4 17 rows 80": 352}  # bytes, on an A100 with Triton 3.7
NAMED = (
    *(f"tile int4 {target}" for target in UNIT),
    *("tile k3 90", "wide k4 90", "stream int4 90", "scalar int4 90", "dequantize k4 90"),
    *("unpacking int4", "unpacking k5"),
    *("direct k3 90", "greedy k3", "greedy k5"),
    *("ring 4x64 16 bf16 g128 90", "ring 2x128 64 fp16 g32 zero 90"),
    *("ring 4x64 16 8 stages bf16 int8 90", "ring 4x64 64 5 stages bf16 nvfp4 90", "direct mxfp4 90"),
    *("format fp8 17 rows 90", "format w8a16 1 rows 90", "format mxfp4 17 rows 90"),
    *("step tile", "step ring", "step ring of two"),
)


@pytest.fixture(scope="module", params=["some", pytest.param("all", marks=pytest.mark.slow)])
def reported(request):
    return report("kernels.quantization_layouts.tests.compile_all", *NAMED, everything=request.param == "all")


@pytest.fixture(scope="module")
def compiled(reported):
    return reported["kernels"]


def test_nothing_spills_and_everything_fits(compiled):
    for name, facts in compiled.items():
        usual = 96 if "format" in name else 0  # the widest tiles keep a sum or two
        assert facts["spilled"] <= SPILLED.get(name, usual), name
        assert facts["shared"] <= SHARED[int(name.split()[-1])], name


def test_stages_are_as_many_as_shared_memory_holds(reported):
    assert len(reported["greedy"]) == 2
    for name, (said, compiled) in reported["greedy"].items():
        assert 0.6 * said <= compiled <= said <= SHARED[90], name


def test_no_product_runs_on_while_its_operand_is_rewritten(compiled):
    """A weight in registers is the left operand: the next step unpacks into the same ones."""
    for name, facts in compiled.items():
        if any(stored in name for stored in ("format w8a8", "format fp8")):
            continue  # both sides lie in shared memory
        assert facts["running on"] == 0, name


def test_a_direct_kernel_exchanges_nothing_before_its_end(compiled):
    """Four barriers and the sums of two warps' worth of rows end it; a step through shared memory would add to both."""
    for name, facts in compiled.items():
        if name.startswith("direct"):
            assert facts["barriers"] <= 4 and facts["shared"] <= 2048 and facts["registers"] <= 128, name


def test_a_ring_unpacks_into_the_operand_without_a_copy(compiled):
    """Each product waits for no other, words come by the copy engine, and no tile changes its layout."""
    for name, facts in compiled.items():
        if name.startswith("ring"):
            assert not facts["serialised"] and facts["wgmma"], name
            assert facts["tma"] >= (2 if "int8" in name else 4), name  # int8 has no scales but its rows'
            assert facts["stored"] <= 2, f"{name}: beyond what tells warps their parts"


def test_weights_go_from_16_byte_loads_into_the_operand(compiled):
    """No shuffle between lanes, and whole vectors."""
    for name, facts in compiled.items():
        if " zero " not in name and "scalar" not in name:  # sums and zero points may cross lanes
            assert facts["exchanged"] <= 1, name
        if name.startswith(("stream", "direct")):
            assert facts["vectors"] > 0, name
    bits_of = {"int4": 4, "zero": 4, "k2": 2, "k3": 3, "k4": 4, "k5": 5}
    for form, bits in ((form, bits) for form, bits in bits_of.items() if f"tile {form} 90" in compiled):
        stages = (
            MIDDLE.stages * RUN * MIDDLE.cols * 2 + (MIDDLE.stages - 1) * 16 * MIDDLE.warps * RUN * bits // 8
        )
        assert compiled[f"tile {form} 90"]["shared"] <= stages, f"{form}: no room but for what is on its way"


def test_each_generation_multiplies_on_its_tensor_cores(compiled):
    for name, facts in compiled.items():
        target = int(name.split()[-1])
        if name.startswith("tile") or name.startswith("wide"):
            assert facts[UNIT[target]] > 0, name
        if name.startswith(("stream", "direct")):
            assert facts["mma"] > 0, name
        if name.startswith("ring"):
            assert facts["wgmma"] > 0 and not facts["mma"], name
        if name.startswith("scalar") or name.startswith("dequantize"):
            assert not any(facts[one] for one in UNIT.values()), name


def test_unpacking_costs_what_the_cost_model_says(reported):
    """In assembled instructions; addresses of the second brick are among them."""
    for form, counted in reported["unpacking"].items():
        said = cost.unpack_per_weight("int4" if form == "int4" else "book", int(form[-1]))
        assert said <= counted * 1.05 and counted <= said + 0.35, form


def test_a_step_of_the_ring_issues_a_third_of_what_a_step_of_the_tile_does(reported):
    """All instructions of the loop for each weight: lesson 02 says these counts."""
    counted = {name: round(count, 1) for name, count in reported["steps"].items()}
    assert counted == {"step tile": 6.8, "step ring": 2.3, "step ring of two": 2.5}


def test_tensor_cores_take_sixteen_bits_as_they_are(compiled):
    scalar, tensor = (compiled[f"{unit} int4 90"]["conversions"] for unit in ("scalar", "stream"))
    assert scalar >= 256 > 30 > tensor, "256 weights of a thread in one step"
