"""The simulator's numbers against sums by hand, and what it says of them."""

import pytest

from kernels.expert_load_balance import cost_batches as cost
from kernels.machines import machine
from widgets.expert_load_balance import two_batches
from widgets.expert_load_balance.two_batches import SIMULATOR, run


def test_the_prediction_s_numbers_are_the_state_s():
    r = run(32, 0, 50, 4096)
    assert [round(1e6 * one) for one in r.whole] == [70, 36, 46, 72]
    assert round(1e6 * r.whole_s) == 225
    weights = (187e6 + 5 * 3 * 7168 * 2048) / 4.8e12
    assert round(1e6 * weights) == 85
    assert r.halves_us == pytest.approx(1e6 * (r.whole.compute_s + weights), rel=1e-6), (
        "all weights once more"
    )
    asked = SIMULATOR.prediction.question
    for words in ("70 µs", "36 of dispatch", "46 of experts", "72 of combine", "225 in all", "85 µs"):
        assert words in asked


def test_sms_that_are_held_make_the_arithmetic_longer():
    free, held = run(32, 0, 50, 4096), run(32, 24, 50, 4096)
    assert held.slower == pytest.approx(132 / 108)
    assert held.halves_s == pytest.approx(free.halves_s * 132 / 108)
    assert held.faster < 1 < free.faster


def test_the_curve_goes_through_the_state():
    for tokens in two_batches.SIZES:
        r = run(tokens, 24, 160, 1024)
        here = r.curve[two_batches.DRAWN.index(tokens)]
        assert (here.tokens, here.faster) == (tokens, r.faster) and here.faster_without_sms >= here.faster


@pytest.mark.parametrize("preset", SIMULATOR.presets)
def test_every_piece_on_the_link_is_named_and_the_layer_before_is_said(preset):
    """A box is named within or under it, unless it is narrower than a letter needs."""
    marks = {
        m["id"]: m for m in SIMULATOR.scenes(run(**SIMULATOR.inputs(SIMULATOR.presets[preset])))[0].marks
    }
    boxes = [id for id, m in marks.items() if id.startswith("half-") and m["t"] == "rect"]
    for id in boxes:
        _, half, layer, piece = id.split("-")
        if piece in ("dispatch", "combine"):
            said = [marks[one]["s"] for one in (f"{id}-name", f"{id}-under") if one in marks]
            assert any("AB"[int(half)] in words for words in said) or preset == "Over NVLink", (id, said)
    if not SIMULATOR.presets[preset]:
        assert marks["half-1-3-combine-under"]["s"] == "of the layer before"
        assert marks["half-0-4-dispatch-under"]["s"] == "dispatch A"


@pytest.mark.parametrize("state", [{}, {"sms": 24}, {"link_gb_s": 450}, {"keys": 16384}], ids=str)
def test_halves_pay_from_the_number_that_is_marked(state):
    r = run(**SIMULATOR.inputs(state))
    layer, gpu = cost.Layer(), machine("H200")
    faster = [
        n for n in range(8, 513) if cost.overlap(layer, gpu, n, r.keys, r.link_byte_s, r.sms).faster > 1
    ]
    assert r.pays_from == (faster[0] if faster else 0)
    assert faster == list(range(r.pays_from, 513)), "no larger number is slower again"
