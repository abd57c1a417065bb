"""The accountant's ledger: it balances, it warns when it must and only then, and batching tips it."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kernels.quantization_layouts import cost
from widgets import units
from widgets.quantization_layouts import payoff_accountant, payoff_picture
from widgets.registry import find
from widgets.scene import NARROW, WIDE

PAYOFF = find("payoff_accountant")


def account(**inputs):
    return PAYOFF.run(**PAYOFF.inputs(inputs))


def shown(**inputs):
    return PAYOFF.scene(account(**inputs))


STATES = st.fixed_dictionaries(
    {
        "bits": st.sampled_from([2, 3, 4, 5, 6, 8]),
        "dequant_ms": st.sampled_from([0.0, 0.1, 1.0, 3.8, 5.0, 10.0]),
        "dense_ms": st.sampled_from([1.0, 5.2, 50.0]),
        "batch": st.sampled_from([1, 7, 64, 65, 200, 512]),
        "placement": st.sampled_from(list(payoff_accountant.UNPACKED)),
        "weight_percent": st.sampled_from([20, 60, 100]),
    }
)


def test_every_place_for_unpacking_has_a_name():
    assert set(payoff_accountant.UNPACKED) == set(cost.PLACEMENTS)


@given(STATES)
def test_the_ledger_balances(inputs):
    r = account(**inputs)
    assert r.quant_s == pytest.approx(r.dense_s - r.saved_s + r.added_s)
    assert r.bytes_saved == pytest.approx(r.dense_bytes - r.quant_bytes)
    assert r.dense_bytes == pytest.approx(inputs["dense_ms"] / 1e3 * inputs["weight_percent"] / 100 * 3.35e12)
    assert r.speedup == pytest.approx(r.dense_s / r.quant_s)


@given(STATES)
def test_it_warns_exactly_when_the_step_is_no_faster(inputs):
    r, scene = account(**inputs), shown(**inputs)
    assume(abs(r.quant_s - r.dense_s) > 1e-9 * r.dense_s)  # at a draw the last bit decides
    assert bool(scene.warning) == (r.quant_s >= r.dense_s)
    if r.verdict == "eaten":
        assert scene.warning.startswith("Dequantization eats the win")


@given(STATES)
def test_the_curve_and_the_break_even_agree(inputs):
    r = account(**inputs)
    for step in r.curve:
        if not r.break_even_batch or step.batch < r.break_even_batch:
            assert step.quant_s < step.dense_s
    here = account(**{**inputs, "batch": r.break_even_batch or 512})
    assert (here.quant_s >= here.dense_s) == bool(r.break_even_batch)


def test_more_unpacking_never_helps_and_the_threshold_is_the_break_even():
    steps = [account(dequant_ms=d / 2).quant_s for d in range(12)]
    assert steps == sorted(steps)
    affordable_ms = 1e3 * account().affordable_dequant_s
    assert account(dequant_ms=affordable_ms - 0.01).verdict == "mostly eaten"
    assert account(dequant_ms=affordable_ms + 0.01).verdict == "eaten"


def test_a_batch_of_one_more_than_the_tile_unpacks_twice():
    assert [account(batch=b).passes for b in (1, 64, 65, 129)] == [1, 1, 2, 3]
    assert account(batch=65).dequant_s == pytest.approx(2 * account(batch=64).dequant_s)
    assert account(batch=512, placement="separate").passes == 1


def test_the_same_unpacking_is_free_inside_the_kernel_and_ruinous_in_one_of_its_own():
    inside, outside = account(placement="fused"), account(placement="separate")
    assert inside.added_s == 0 and inside.speedup == pytest.approx(16 / 4.125)
    assert outside.speedup < 0.5 and "writes 16 bits" in shown(placement="separate").warning


def test_beyond_the_ridge_nothing_is_left_to_save():
    r = account(batch=512, placement="asynchronous")
    assert r.verdict == "nothing to save" and r.saved_s == 0
    assert "Arithmetic is the limit" in shown(batch=512, placement="asynchronous").takeaway


def test_formats_that_are_multiplied_as_stored_need_the_machine_for_it():
    def speedups(machine):
        return {f.name: (f.unpacked, f.speedup) for f in account(machine_name=machine).formats}

    new, old = speedups("H100"), speedups("A100")
    assert new["fp8 (E4M3 / E5M2)"] == (False, pytest.approx(2.0)) and old["fp8 (E4M3 / E5M2)"][0]
    assert new["int8 W8A8"][0] is False and new["NVFP4"][0] and not speedups("B200")["NVFP4"][0]
    assert new["bf16"] == (False, pytest.approx(1.0))
    crowd = {f.name: f.speedup for f in account(batch=512, dequant_ms=0).formats}
    assert crowd["fp8 (E4M3 / E5M2)"] > 1.7 > 1.001 > crowd["int4 W4A16"]


def test_the_formats_stand_beside_yours_in_the_table():
    rows = shown().table.rows
    assert rows[0][0] == "yours" and [row[0] for row in rows[1:]] == list(cost.FORMATS)
    assert rows[0][4] == pytest.approx(dict((row[0], row[4]) for row in rows)["int4 W4A16"])


def test_a_measured_kernel_stands_beside_the_model():
    scene = PAYOFF.scene(account(), {"speedup": 1.8})
    assert "1.8" in scene.beside[0] and any(mark["id"] == "yours" for mark in scene.marks)


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_the_steps_of_the_curve_are_explained_where_there_are_any(width):
    def below(**inputs):
        marks = PAYOFF.scene(account(**inputs), width=width).marks
        return next(m["s"] for m in marks if m["id"] == "batch-label")

    assert "64" in below() and "256" in below(tile_rows=256)
    plain = [below(placement="separate"), below(dequant_ms=0.0), below(tile_rows=512)]
    assert len(set(plain)) == 1 and not any(c.isdigit() for c in plain[0])


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_a_bar_that_goes_on_is_torn(width):
    torn = {m["id"]: m for m in PAYOFF.scene(account(dequant_ms=10.0), width=width).marks}
    assert {"added-on0", "added-on1"} <= set(torn) and not any(m.get("s") == "→" for m in torn.values())
    assert max(torn["added-on1"]["p"][::2]) < torn["pull-added"]["x"] - 16
    assert not any("-on" in m["id"] for m in PAYOFF.scene(account(), width=width).marks)


@given(STATES, st.sampled_from([WIDE, NARROW]))
def test_the_curve_stays_in_its_chart_and_the_knob_on_the_curve(inputs, width):
    r = account(**inputs)
    chart = payoff_picture.PLACES[width == WIDE].chart
    marks = {mark["id"]: mark for mark in PAYOFF.scene(r, width=width).marks}
    heights = marks["speed-line"]["p"][1::2]
    assert chart.y < min(heights) <= max(heights) <= chart.bottom
    knob, level = marks["pull-batch"], marks["dense-line"]["y"]
    assert (chart.bottom - knob["y"]) / (chart.bottom - level) == pytest.approx(r.speedup, abs=0.01)
    assert marks["at-name"]["s"].endswith(f": {units.times(r.speedup)}")
    assert max(marks["area-useful"]["p"][1::2]) <= level <= min(marks["area-hot"]["p"][1::2])
    assert ("tips-name" in marks) == (r.break_even_batch > 1)


@pytest.mark.parametrize("batch, dequant_ms", [(1, 1.0), (160, 1.0), (512, 10.0)])
def test_ledger_figure_and_chart_say_one_speed(batch, dequant_ms):
    scene = shown(batch=batch, dequant_ms=dequant_ms)
    marks = {mark["id"]: mark for mark in scene.marks}
    said = scene.figures[-1].text
    assert marks["ratio"]["s"] == f"{said} as fast" and marks["at-name"]["s"] == f"batch {batch}: {said}"
