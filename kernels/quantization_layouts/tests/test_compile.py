"""What the kernels compile to, on a machine without their GPU: nothing spills, and no weight changes its lane."""

import pytest

from kernels.quantization_layouts.tile import MIDDLE, RUN
from kernels.tests.compiled import report

SHARED = {80: 163 * 1024, 90: 227 * 1024, 100: 227 * 1024}
PER_THREAD = {"int4": 256, "k2": 128, "k3": 128, "k4": 128}  # weights of a thread in one step of the stream


@pytest.fixture(scope="module")
def compiled():
    return report("kernels.quantization_layouts.tests.compile_all")


def test_nothing_spills_and_everything_fits(compiled):
    for name, facts in compiled.items():
        assert facts["spilled"] == 0, name
        assert facts["shared"] <= SHARED[int(name.split()[-1])], name


def test_weights_go_from_16_byte_loads_into_the_operand(compiled):
    """No shuffle between lanes, and whole vectors."""
    for name, facts in compiled.items():
        if " zero " not in name and not name.startswith("scalar"):  # sums and zero points may cross lanes
            assert facts["exchanged"] <= 1, name
        if name.startswith("stream"):
            assert facts["vectors"] > 0, name
    for form, bits in {"int4": 4, "zero": 4, "k2": 2, "k3": 3, "k4": 4, "k5": 5}.items():
        stages = (
            MIDDLE.stages * RUN * MIDDLE.cols * 2 + (MIDDLE.stages - 1) * 16 * MIDDLE.warps * RUN * bits // 8
        )
        assert compiled[f"tile {form} 90"]["shared"] <= stages, f"{form}: no room but for what is on its way"


def test_each_generation_multiplies_on_its_tensor_cores(compiled):
    unit = {80: "mma", 90: "wgmma", 100: "tcgen05"}
    for name, facts in compiled.items():
        target = int(name.split()[-1])
        if name.startswith("tile") or name.startswith("wide"):
            assert facts[unit[target]] > 0, name
            assert not facts["serialised"], name
        if name.startswith("stream"):
            assert facts["mma"] > 0, name
        if name.startswith("scalar") or name.startswith("dequantize"):
            assert not any(facts[one] for one in unit.values()), name


def test_unpacking_costs_what_the_design_says(compiled):
    """Integer instructions a weight in PTX, where AND and OR still count one each: the assembler joins most of them."""
    for form, most in {"int4": 2.0, "k2": 2.5, "k3": 3.0, "k4": 4.5}.items():
        assert compiled[f"stream {form} 90"]["integer"] / PER_THREAD[form] < most, form
    scalar, tensor = (compiled[f"{unit} int4 90"]["conversions"] for unit in ("scalar", "stream"))
    assert scalar >= PER_THREAD["int4"] and tensor < 30, "tensor cores take 16 bits as they are"
