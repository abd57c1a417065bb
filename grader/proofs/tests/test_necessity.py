"""A sample of the command's table: no mistake of any question passes one check's hidden cases."""

import numpy as np
import pytest

from grader import questions
from grader.proofs import necessity
from grader.questions import Mistake

SEEDS = {
    "numpy": (40, 1),
    "ranks": (20, 1),
    "kernel": (1, 6),
}  # checks drawn here, and which share of the ways: one in so many


@pytest.mark.parametrize("question", [q.id for q in questions.load().values() if q.mistakes])
def test_hidden_cases_catch_every_mistake(question):
    found = questions.find(question)
    seeds, every = SEEDS[found.kind]
    rows = necessity.measured(found, range(seeds), every=every)
    assert rows and [row.words() for row in rows if row.caught < necessity.LEAST] == []


def test_what_no_case_catches_is_seen():
    norm = questions.find("roofline.layernorm_gelu")
    right = Mistake("none", "it is right", wrong=norm.reference)
    from dataclasses import replace

    rows = necessity.measured(replace(norm, mistakes=(right,)), range(2))
    assert rows[0].caught == 0 and rows[0].by[""] == 2


def test_the_command_prints_a_row_for_each_way(capsys):
    assert necessity.main(["gemm_tiling.reuse", "--seeds", "3"]) == 0
    printed = capsys.readouterr().out
    ways = list(necessity.ways(questions.find("gemm_tiling.reuse")))
    assert all(name in printed for name, _, _ in ways) and printed.count("gemm_tiling.reuse") == len(ways)


def test_a_call_that_raises_is_caught():
    reuse = questions.find("gemm_tiling.reuse")
    assert necessity._call_differs(reuse, (3, 4), lambda bm, bn: 1 / 0)
    assert not necessity._call_differs(reuse, (3, 4), lambda bm, bn: np.float64(reuse.reference(bm, bn)))


def test_a_name_is_compared_as_a_name():
    roof = questions.find("roofline.roof")
    right, work = roof.reference, (1.0, 8.0, 2.0)
    assert not necessity._call_differs(roof, work, right)
    assert necessity._call_differs(roof, work, lambda *given: (right(*given)[0], "compute"))
