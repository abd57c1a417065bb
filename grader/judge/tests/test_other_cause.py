"""A hint speaks of what the answer does: a second load, blocks that are too large, weak atomics, results sent home."""

import pytest

from grader import questions
from grader.judge import by_line, rank_values, referee
from grader.judge.kernel_evidence import KernelEvidence
from grader.judge.rank_values import BUSY, SENT_HOME
from grader.judge.ranks_evidence import RanksEvidence
from grader.judge.record import PartResult
from grader.proofs.right import edited, right
from grader.questions.work import WHOLE_BLOCKS

DOUBLED = "roofline.doubled"
STORE = "    tl.store(y_ptr + offs, 2 * x)"
LOAD = "tl.load(x_ptr + offs, volatile=True)"
LAST = """
@triton.jit
def draw(logits_ptr, temperature_ptr, seed_ptr, token_ptr, top_ptr, who_ptr, done_ptr, V, stride_logitsb, stride_logitsv, BLOCK: tl.constexpr):
    half, b = tl.program_id(0), tl.program_id(1)
    t, seed = tl.load(temperature_ptr + b), tl.load(seed_ptr + b)
    offs = half * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(logits_ptr + b.to(tl.int64) * stride_logitsb + offs * stride_logitsv, mask=offs < V, other=float("-inf")).to(tl.float32)
    score = tl.where(t == 0, x, x / tl.where(t == 0, 1.0, t) - tl.log(-tl.log(tl.rand(seed, offs))))
    top = tl.max(score, 0)
    tl.store(top_ptr + b * 2 + half, top)
    tl.store(who_ptr + b * 2 + half, tl.min(tl.where((score == top) & (offs < V), offs, 2147483647), 0))
    if tl.atomic_add(done_ptr + b, 1, sem="ORDER") == 1:
        both = b * 2 + tl.arange(0, 2)
        tops = tl.load(top_ptr + both)
        best = tl.max(tops, 0)
        first = tl.min(tl.where(tops == best, tl.load(who_ptr + both), 2147483647), 0)
        tl.store(token_ptr + b, tl.where(best == float("-inf"), -1, first))


def launch(p):
    block = max(16, triton.next_power_of_2(p.V) // 2)
    scratch = {"top": ((p.B, 2), "fp32", 0), "who": ((p.B, 2), "i32", 0), "done": ((p.B,), "i32", 0)}
    return {"scratch": scratch, "steps": [{"kernel": draw, "grid": (2, p.B), "constexprs": {"BLOCK": block}}]}
"""


def said_of(answer: str, question: str, seed: int = 7) -> str:
    return str(referee.grade_one(answer, questions.find(question), seed=seed))


@pytest.mark.parametrize(
    "again",
    [f"    x = (x + {LOAD}) / 2\n", f"    for _ in range(0, tl.where(tl.num_programs(0) > 600, 2, 0)):\n        x = (x + {LOAD}) / 2\n"],
    ids=["everywhere", "in a case alone"],
)  # fmt: skip
def test_a_second_load_is_named_by_its_line(again):
    answer = edited(right(DOUBLED), [(STORE, again + STORE)])
    lines = [line for line in answer.strip().splitlines() if "###" not in line]
    first, second = (number for number, line in enumerate(lines, 1) if "tl.load" in line)
    said = said_of(answer, DOUBLED)
    assert f"lines {first} (" in said and f"and {second} (" in said, said
    assert "load x: is one of them spare?" in said, said


def test_two_lines_that_load_once_together_are_no_hint():
    question = questions.find(DOUBLED)
    evidence = KernelEvidence(question, right(DOUBLED), 7)
    purpose = evidence.public[0]
    run = evidence.run(purpose)
    budget = question.budgets["traffic"](run.case)[0]
    assert by_line.look(evidence, run, budget, "usual") == "usual"
    rows = [row for row in evidence.lines(run) if row["tensor"] == "x"]
    assert [row["bytes"] for row in rows] == [4 * run.case.sizes["N"]]


def test_blocks_that_are_too_large_are_told_from_a_missing_dot():
    question = "roofline.small_product"
    said = said_of(right(question).replace("32", "64"), question)
    assert WHOLE_BLOCKS in said and "go through tl.dot" not in said, said


@pytest.mark.slow
def test_an_atomic_that_orders_nothing_is_named():
    question = "sampling_fusion.draw"
    said = said_of(LAST.replace("ORDER", "relaxed"), question)
    assert 'sem="relaxed" in the cell\'s atomics' in said and "program id" not in said, said
    assert "race" not in said_of(LAST.replace("ORDER", "acq_rel"), question)


def test_results_of_rows_too_many_are_told_from_wide_rows():
    """Each half of a rank's tokens goes to one copy."""
    question = questions.find("expert_load_balance.replicated_layer")
    turns = "(t + comm.rank) % len(copies)"
    halves = edited(right(question.id), [(turns, "(2 * t >= len(x)) % len(copies)")])
    verdict = referee.grade_one(halves, question, seed=3)
    assert SENT_HOME + BUSY in str(verdict), str(verdict)
    wide = edited(right(question.id), [("x[token], send", "x[token].astype(np.float64), send")])
    evidence = RanksEvidence(question, wide, 3)
    with pytest.raises(rank_values.Failed) as failed:
        rank_values.judge_bytes(evidence, question.parts[1], PartResult("bytes", 1, 1))
    assert rank_values.NOT_KNOWN in failed.value.look
