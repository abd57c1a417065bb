"""What can be said of speed without a GPU: the physics veto and the ramp."""

from types import SimpleNamespace

import pytest

from grader.bench import calibration
from grader.bench.protocol import Timed
from grader.judge import parts, speed
from grader.judge.record import PartResult
from grader.judge.statistics import Ratio
from grader.questions import find

QUESTION = find("gemm_tiling.tiled_gemm")
FLOPS, BYTES = 2 * 4096**3, 3 * 2 * 4096**2


def timed_reply(seconds: float, bar: float) -> Timed:
    return Timed(
        gpu="NVIDIA H200",
        sms=132,
        torch="2",
        triton="3",
        changed=[],
        repeats=True,
        quads=[[seconds, seconds, bar, bar]] * 40,
        sets=2,
        differing=False,
    )


def test_faster_than_the_datasheet_is_flagged_with_the_arithmetic():
    found = speed.measurement(timed_reply(50e-6, 176e-6), Ratio(0.28, 0.28, 0.28, 40, 0), QUESTION.speed)
    assert "50.0 us is below the 139.0 us that H200's datasheet allows" in found["beats_physics"]
    assert not speed.measurement(timed_reply(170e-6, 176e-6), Ratio(0.97, 0.97, 0.97, 40, 0), QUESTION.speed)[
        "beats_physics"
    ]


def test_an_unknown_gpu_is_held_to_its_own_calibration(monkeypatch):
    assert speed.fastest_possible("NVIDIA X1", "bf16", FLOPS, BYTES) == (0.0, "")
    monkeypatch.setattr(calibration, "load", lambda name: {"ceilings": {"copy": 1e12, "bf16": 100e12}})
    seconds, source = speed.fastest_possible("NVIDIA X1", "bf16", FLOPS, BYTES)
    assert seconds == pytest.approx(FLOPS / 100e12) and source == "this machine's calibration"


FAST, BORDER, SLOW = (
    Ratio(1.1, 1.09, 1.11, 40, 0),
    Ratio(1.43, 1.42, 1.44, 40, 0),
    Ratio(2.02, 2.0, 2.04, 40, 0),
)
HOPELESS = Ratio(3.5, 3.4, 3.6, 40, 0)
UNSTEADY = Ratio(2.0, 1.5, 2.5, 10, 30)
PART = next(p for p in QUESTION.parts if p.name == "speed")


class Side:
    """The GPU's side of a question that measures what it is told to."""

    def __init__(self, ratios: list):
        self.left, self.cases, self.bench, self.stopped = list(ratios), [None], self, 0

    def timed_inputs(self):
        return {}, {}

    def ask(self, *_, **__):
        self.now = self.left.pop(0)
        return timed_reply(200e-6, 100e-6), {}

    def stop(self):
        self.stopped += 1


def timed(monkeypatch, ratios: list) -> tuple[PartResult, Side]:
    side, said = Side(ratios), []
    monkeypatch.setattr(speed, "misbehaves", lambda reply, question: "")
    monkeypatch.setattr(speed, "sampled", lambda *_: "")
    monkeypatch.setattr(speed, "outputs", lambda *_: {})
    monkeypatch.setattr(speed.statistics, "ratio", lambda quads: side.now)
    monkeypatch.setattr(speed.time, "sleep", said.append)
    asked = {
        "question": QUESTION,
        "cases": {},
        "say": said.append,
        "mode": "gpu",
        "on_gpu": side,
        "settle": lambda: None,
    }
    return parts.judge(SimpleNamespace(**asked), PART), side


@pytest.mark.parametrize(
    "ratios, state, share",
    [
        ([FAST], "PASS", 1.0),
        ([SLOW, SLOW], "FAIL", 0.5),
        ([HOPELESS, SLOW], "FAIL", 0.5),
        ([HOPELESS, HOPELESS], "FAIL", 0.0),
        ([SLOW, FAST], "PASS", 1.0),
        ([SLOW, BORDER, SLOW], "FAIL", 0.5),
        ([BORDER, BORDER, BORDER], "PASS", 1.0),
        ([UNSTEADY, FAST], "PASS", 1.0),
        ([UNSTEADY, SLOW, UNSTEADY], "INCONCLUSIVE", 0.0),
        ([UNSTEADY, UNSTEADY, UNSTEADY], "INCONCLUSIVE", 0.0),
    ],
)
def test_slow_is_said_only_when_a_second_process_agrees(monkeypatch, ratios, state, share):
    result, side = timed(monkeypatch, ratios)
    assert result.state == state and result.points == pytest.approx(share * PART.points, abs=0.1)
    assert not side.left and side.stopped == len(ratios) - 1
    assert ("agreed by a second run" in result.came) == (state == "FAIL")
