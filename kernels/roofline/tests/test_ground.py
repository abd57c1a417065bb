"""The kernels behind lesson 00's measurements compute what they say, and the record has what the lesson reads."""

import json
from pathlib import Path

import pytest
import torch

from kernels.roofline import ground

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
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
    assert json.loads(ground.dumps(run)) == run


def test_the_record_has_what_the_lesson_reads():
    assert "H200" in RUN["machine"]["gpu"] and RUN["machine"]["sms"] == 132
    for name, keys in ROWS.items():
        assert all(keys <= set(row) for row in RUN[name])
    assert RUN["power"]["product"].startswith("cuBLAS, 8192 x 8192 x 8192")
    # the sentences of the lesson: four fifths of the datasheet from rest, two thirds sustained, near 700 W
    rates = [2 * 8192**3 / RUN["power"][f"{state}_us"] / 1e6 for state in ("rested", "sustained")]
    assert 0.77 < rates[0] / 989 < 0.83 and 0.64 < rates[1] / 989 < 0.71
    assert RUN["power"]["rested_mhz"] > 1830 > 1600 > RUN["power"]["sustained_mhz"]
    assert 650 < RUN["power"]["watts"] <= 710
    ours = [us for name, us in RUN["host_us"].items() if name.startswith("the course's")]
    assert min(ours) > RUN["host_us"]["torch.matmul"]
