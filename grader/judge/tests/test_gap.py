"""Points by the share of the gap: full at the least that must be spent, none at the plain version, and counted in between."""

import pytest
import torch

from grader import questions
from grader.judge import gap, parts, report
from grader.judge.record import FAIL, PASS
from grader.proofs import wrong
from grader.proofs.right import right
from grader.questions import Case
from grader.topics.next_bottleneck.residual_norm import cases as norm
from grader.topics.next_bottleneck.rotary_cache import cases as rotary
from kernels.next_bottleneck import plain
from kernels.next_bottleneck.counted import Meter
from kernels.next_bottleneck.shapes import Shape

NORM = questions.find("next_bottleneck.residual_norm")


def judged(source: str):
    part = next(one for one in NORM.parts if one.judge == "gap")
    return parts.judge(parts.gather(NORM, source, seed=5), part)


def test_the_share_is_of_the_gap_and_stays_between_0_and_1():
    whole, least = gap.Spent(10, 6e6), gap.Spent(1, 1e6)
    assert gap.share_closed(whole, least, least) == 1
    assert gap.share_closed(whole, whole, least) == 0
    two = gap.share_closed(whole, gap.Spent(2, 1e6), least)
    assert two == pytest.approx((8 * 5e-6 + 5e6 / 4.8e12) / (9 * 5e-6 + 5e6 / 4.8e12))
    assert gap.share_closed(whole, gap.Spent(0, 0.0), least) == 1
    assert gap.share_closed(whole, gap.Spent(40, 9e9), least) == 0


def test_one_launch_closes_it_and_two_close_most_of_it():
    one = judged(right(NORM.id))
    assert (one.state, one.points) == (PASS, one.of) and one.facts["spent_launches"] == 1
    assert "gap" in report.part_html(one) and report.traffic_html(one.facts) == ""
    row = wrong.table(NORM)["two launches"]
    two = judged(wrong.source(NORM, row))
    assert two.state == FAIL and two.facts["spent_launches"] == 2
    assert 0.85 < two.facts["gap_closed"] < 0.9
    assert two.points == pytest.approx(two.of * two.facts["gap_closed"], abs=0.005)
    assert "2 launches" in two.came and "2 launches" not in two.told


def counted(call) -> tuple[int, float]:
    meter = Meter()
    with meter.operations():
        call()
    return meter.slots["loop"].launches, meter.slots["loop"].bytes


def agree(said: tuple[int, float], found: tuple[int, float]) -> None:
    assert said[0] == found[0]
    assert 0.95 * found[1] < said[1] <= found[1]


def test_plain_pytorch_spends_what_the_questions_say_of_it():
    m, n = 64, 2000
    x, r = (torch.zeros(m, n, dtype=torch.float16) for _ in range(2))
    shape = Shape(2000, 1, 32, 4, 128, experts=4, top_k=2, intermediate=32, vocabulary=40, group=16)
    call = plain.norm(torch.ones(n).half(), shape)
    agree(norm.plain_spends(Case({"M": m, "N": n})), counted(lambda: call(x, r)))
    t, h, g, d, s, pages = 16, 32, 4, 128, 16, 2
    qkv = torch.zeros(t, (h + 2 * g) * d, dtype=torch.float16)
    lens, table = torch.ones(t, dtype=torch.int32), torch.zeros(t, pages, dtype=torch.int32)
    caches = [torch.zeros(1, g, s, d, dtype=torch.float16) for _ in range(2)]
    weight = torch.ones(d).half(), torch.ones(d).half(), torch.zeros(pages * s, d)
    turn = plain.rotary(weight, shape)
    said = rotary.plain_spends(Case({"T": t, "H": h, "G": g, "D": d, "S": s, "L": pages}))
    agree(said, counted(lambda: turn(qkv, lens, table, *caches)))
