"""The kernels behind lesson 00's measurements compute what they say, and the record has what the lesson reads."""

import json
from pathlib import Path

import pytest
import torch

from kernels.bench import kept
from kernels.roofline import ground
from kernels.tests.compiled import report

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
KERNELS = Path(__file__).parents[2]
RUN = json.loads((Path(ground.HERE) / "h200.json").read_text())
ROWS = {
    "strides": {"stride", "us"},
    "waves": {"programs", "us"},
    "flight": {"programs", "bytes_each", "tb_s"},
}


@pytest.mark.parametrize("stride", (1, 3, 8))
def test_gather_sums_every_stride_th_number(stride):
    x = torch.arange(512 * stride, device=DEVICE).float() % 7
    out = torch.full((4,), float("nan"), device=DEVICE)
    ground.gather[(4,)](x, out, STRIDE=stride, BLOCK=128)
    assert out.tolist() == [float(x[::stride][128 * i : 128 * i + 128].sum()) for i in range(4)]


def test_spin_comes_to_rest_at_one():
    out = torch.full((2 * 64,), float("nan"), device=DEVICE)
    ground.spin[(2,)](out, 60, BLOCK=64)
    assert (out == 1).all()
    ground.spin[(2,)](out, 1, BLOCK=64)
    assert out[:3].tolist() == [0.5, 1.0, 1.5]


@pytest.mark.parametrize("programs", (1, 3, 8))
def test_stream_adds_every_number_once(programs):
    x = torch.arange(2048, device=DEVICE).float()
    out = torch.full((programs,), float("nan"), device=DEVICE)
    ground.stream[(programs,)](x, out, 2048, BLOCK=256)
    assert out.sum() == x.sum() and out.isfinite().all()


def test_a_lane_has_one_load_of_16_bytes_on_order():
    assert report("kernels.roofline.tests.compile_ground") == ["v4.b32"]
    assert 4 * ground.TILE == 16 * 4 * 32, "16 bytes for each lane of 4 warps"


def test_a_wrong_sum_is_not_timed():
    ground.right("sum", torch.tensor(1.0), 1.0)
    with pytest.raises(AssertionError, match="^sum must be right before it is timed"):
        ground.right("sum", torch.tensor(1.0), 1.001)


def test_a_record_is_read_as_it_was_written():
    run = {
        "date": "2026-11-21",
        "power": {"watts": 690.0},
        "strides": [{"stride": 1, "us": 1.5}],
        "waves": [],
    }
    assert json.loads(kept.dumps(run)) == run


def test_the_record_has_what_the_lesson_reads():
    assert "H200" in RUN["machine"]["gpu"] and RUN["machine"]["sms"] == 132
    for name, keys in ROWS.items():
        assert all(keys <= set(row) for row in RUN[name])
    assert RUN["power"]["product"].startswith("cuBLAS, 8192 x 8192 x 8192")
    # words of the lesson: four fifths of the datasheet from rest, two thirds sustained
    rates = [2 * 8192**3 / RUN["power"][f"{state}_us"] / 1e6 for state in ("rested", "sustained")]
    assert 0.78 < rates[0] / 989 < 0.84 and 0.64 < rates[1] / 989 < 0.70
    ceilings = json.loads((KERNELS / "roofline" / "results" / "h200.json").read_text())["ceilings"]
    assert 1e12 * rates[1] < ceilings["bf16"], "the shared rate is above the one without a pause"
    assert RUN["power"]["rested_mhz"] > 1830 > 1600 > RUN["power"]["sustained_mhz"]
    ours = [us for name, us in RUN["host_us"].items() if name.startswith("the course's")]
    assert min(ours) == max(RUN["host_us"].values()) > 30
    assert RUN["launches"]["launched from Python"] > 5 * RUN["launches"]["replayed in a CUDA graph"]


def test_power_is_near_its_limit_of_700_watts():
    """One reading of a board whose draw swings; two runs of the same day read it in the midst of the same load."""
    assert 640 < RUN["power"]["watts"] <= 700
    for file in ("gemm_tiling/results/h200.json", "gemm_tiling/results/ladder/h200.json"):
        load = json.loads((KERNELS / file).read_text())["under_load"]
        assert 685 < load["watts"] <= 700 and 1400 < load["clock_mhz"] <= 1530


def test_strides_follow_the_sectors_up_to_8_and_pay_more_beyond():
    first = RUN["strides"][0]["us"]
    times = {row["stride"]: row["us"] / first for row in RUN["strides"]}
    assert all(0.79 * stride < times[stride] <= stride for stride in (1, 2, 4, 8))
    assert 1.2 * times[8] < times[16] < times[32]
    moved = [64 * row["useful_tb_s"] / 4 for row in RUN["strides"] if row["stride"] >= 16]
    assert all(3.7 < rate < 4.8 for rate in moved), (
        "64 bytes for each number come to a copy's speed, 32 to half"
    )


def test_a_program_too_many_is_a_wave_more():
    times = {row["programs"]: row["us"] / RUN["waves"][0]["us"] for row in RUN["waves"]}
    assert max(times[1], times[66], times[132]) < 1.02
    assert 1.7 < times[133] < 2 and abs(times[264] / times[133] - 1) < 0.01 and 2.5 < times[265] < 3


def test_few_programs_follow_littles_law_and_many_queue():
    """A round of the lesson's sentences: bytes on order over the rate is how long a byte was on its way."""
    rows = RUN["flight"]
    ns = {row["programs"]: 1e-3 * row["programs"] * row["bytes_each"] / row["tb_s"] for row in rows}
    assert max(ns[n] for n in (8, 66, 132)) < 1.02 * min(ns[n] for n in (8, 66, 132)), (
        "twice the programs, twice the bytes"
    )
    assert ns[1056] > 1.3 * ns[132] and 950 < ns[2112] < 1050, "the queue begins; a microsecond"
    rates = {row["programs"]: row["tb_s"] for row in rows}
    assert rates[1056] / rates[2112] == pytest.approx(6 / 7, abs=0.02)
    ceiling = json.loads((KERNELS / "roofline" / "results" / "h200.json").read_text())["ceilings"]["copy"]
    assert 1e12 * rates[2112] > ceiling, "reading alone is no slower than a copy"
