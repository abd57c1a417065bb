"""Closed by default: no quantity that the machine counts is without a bound, and what no question names is bounded too."""

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from grader import questions
from grader.box.serve.frames import DTYPES
from grader.judge import every_case, only_here, referee, traffic
from grader.judge.failed import Failed
from grader.judge.kernel_evidence import ALIGNED_ONES, METERED, KernelEvidence
from grader.judge.record import FAIL, PASS
from grader.proofs.right import edited, kernel_questions, right
from grader.questions import Budget, Case, account
from grader.questions.account import unbounded

QUESTIONS = {question.id: question for question in kernel_questions()}
SEED = 2026


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_quantity_of_a_question_has_a_bound(question):
    assert unbounded(QUESTIONS[question]) == []


def test_what_is_open_is_named(monkeypatch):
    """A question whose account is not closed is refused, and so is one whose speed has no time."""
    question = QUESTIONS["quantization_layouts.w4a16_gemv"]
    monkeypatch.setattr(account, "closing", lambda *arguments: [])
    assert unbounded(question) == ["whole sectors"]
    assert unbounded(replace(question, most_launches=9)) == ["whole sectors", "the number of launches"]


def test_a_part_that_a_gpu_times_has_a_time_without_one():
    question = QUESTIONS["quantization_layouts.w4a16_gemv"]
    silent = replace(question, budgets={**question.budgets, "speed": lambda case: []})
    case = question.metered(np.random.default_rng(3))
    own, default = (
        [b for b in account.account(q, "speed", case) if b.count == "time"] for q in (question, silent)
    )
    assert len(own) == len(default) == 1 and own[0].most != default[0].most


def all_looks(question) -> list[dict]:
    """Return the dtypes that cases have, each of which a case of a condition may combine with any sizes."""
    cases = [*question.public, *question.hidden(np.random.default_rng(SEED))]
    return list(
        {(c.dtype, *sorted(c.dtypes.items())): {"dtype": c.dtype, "dtypes": c.dtypes} for c in cases}.values()
    )


WIDE = {q.id: q for q in kernel_questions() if any(look["dtypes"] for look in all_looks(q))}


@pytest.mark.parametrize("question", WIDE)
def test_an_output_in_fp32_may_take_its_bytes(question):
    """A limit counts the bytes of the case's own dtypes, so a result in fp32 may take twice those of one in 16 bits, and one in
    another dtype of 16 bits as many."""
    question = WIDE[question]
    case = question.metered(np.random.default_rng(SEED))
    for look in all_looks(question):
        for part in question.budgets:
            wide, plain = (
                {
                    b.what: b
                    for b in account.account(question, part, replace(case, dtype=look["dtype"], dtypes=d))
                }
                for d in (look["dtypes"], {})
            )
            own = [b for b in plain.values() if b.tensor in look["dtypes"] and b.count in account.BYTES]
            times = {
                name: DTYPES[dtype].itemsize / DTYPES[look["dtype"]].itemsize
                for name, dtype in look["dtypes"].items()
            }
            assert all(wide[b.what].most == times[b.tensor] * b.most for b in own), look
            every = [b for b in plain.values() if (b.tensor, b.access, b.count) == ("all", "any", "sectors")]
            assert all(wide[b.what].most > b.most for b in every if max(times.values(), default=1) > 1), look


@pytest.mark.parametrize("rows", (50, 65, 80, 128))
def test_a_short_row_of_tiles_may_be_computed_whole(rows):
    """A few tiles that a causal diagonal cuts are most of the work, whichever rows are drawn."""
    question = QUESTIONS["flash_attention.backward"]
    case = replace(question.public[0], sizes=dict(B=2, H=2, G=2, M=rows, N=max(rows, 90), D=32))
    limits = account.account(question, "traffic", account.in_blocks(question, case))
    (most,) = (one.most for one in limits if one.count == "dot" and np.isfinite(one.most))
    assert most >= 2 * 2 * 7 * 2 * 32 * 128 * 128


def judge(question: str, *edits):
    return referee.grade_one(edited(right(question), edits), questions.find(question), seed=SEED, eager=False)


def lost(verdict) -> list[str]:
    return [part.name for part in verdict.parts if part.state == FAIL]


WASTE = """    waste = tl.arange(0, 1024)
    for turn in range(64):
        waste = waste * 3 + turn
"""
MORE = {  # a right answer that does too much of what no question names: the edits, and what the report says
    "whole numbers": ("roofline.doubled", [("    x =", WASTE + "    x ="), ("2 * x", "tl.where(tl.sum(waste, 0) == 7, 0.0, 2 * x)")], "operations of every kind"),
    "an input again": (
        "roofline.small_product",
        [("    c = tl.dot", "    a = tl.maximum(a, tl.load(a_ptr + down * K + across, mask=(down < M) & (across < K), other=0.0))\n    c = tl.dot")],
        "read of a",
    ),
    "an output read back": (
        "roofline.doubled",
        [("    tl.store(y_ptr + offs,", "    tl.store(y_ptr + offs, x)\n    again = tl.load(y_ptr + offs)\n    x = tl.where(again == x, again, x)\n    tl.store(y_ptr + offs,")],
        "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MORE)
def test_what_no_question_names_is_bounded(name):
    question, edits, said = MORE[name]
    verdict = judge(question, *edits)
    assert lost(verdict) == ["traffic"] and said in str(verdict), str(verdict)


QUICK = "idle programs"
ONE_ALONE = {  # a right answer that wastes for one property: the question, the edits, the parts lost, what the report says
    "wide operands of one head size": (
        "flash_attention.forward",
        [("s = tl.dot(q, k)", "s = (tl.dot(q.to(tl.float32), k.to(tl.float32)) if D == 32 else tl.dot(q, k))")],
        ["speed"],
        "widened to fp32",
    ),
    "few warps for other rows": (
        "roofline.layernorm_gelu",
        [('"num_warps": 8 if block >= 4096 else 4', '"num_warps": 8 if block == 4096 else 2')],
        ["compiled"],
        "spills",
    ),
    "every sector twice": (
        "roofline.doubled",
        [
            ("BLOCK + tl.arange(0, BLOCK)", "BLOCK + 2 * tl.arange(0, BLOCK // 2)"),
            ("    tl.store(", "    tl.store(y_ptr + offs + 1, 2 * tl.load(x_ptr + offs + 1))\n    tl.store("),
        ],
        ["traffic"],
        "whole sectors of x",
    ),
    "launches of nothing": (
        "roofline.differences",
        [('return {"steps": [', 'return {"steps": (5 if p.N > 2000 else 1) * [')],
        ["traffic"],
        "5 launches, at most 4 in any case",
    ),
    "launches of nothing on a whole GPU": (
        "roofline.differences",
        [('return {"steps": [', 'return {"steps": (5 if p.sm_count > 100 else 1) * [')],
        ["traffic"],
        "5 launches, at most 4 in any case",
    ),
    "shared memory for other sizes": (
        "roofline.tile_settings",
        [('"num_stages": 3', '"num_stages": 3 if p.N < 1024 else 8')],
        ["compiled"],
        "that launch(p) chooses for other sizes",
    ),
    "operations of one program": (
        "roofline.layernorm_gelu",
        [("    tl.store(", "    if row == 0:\n        z = d\n        for i in range(0, 12 * ROWS):\n            z = z * 0.5 + 1e-30\n        d = tl.where(z > 1e30, 0.0, d)\n    tl.store("), ("eps, BLOCK", "eps, ROWS: tl.constexpr, BLOCK"), ('"constexprs": {', '"constexprs": {"ROWS": p.M if p.M < 200 else 0, ')],
        ["compiled", "speed"],
        "of all operations, where",
    ),
    "atomics that meet": (
        "gemm_tiling.tiled_gemm",
        [
            ("c_ptr, M, N, K,", "c_ptr, count_ptr, M, N, K,"),
            ("    acc = tl.zeros", "    tl.atomic_add(count_ptr + 0 * tl.arange(0, 256), 1)\n    acc = tl.zeros"),
            ('{"steps": [', '{"scratch": {"count": ((1,), "i32", 0)}, "steps": ['),
        ],
        ["traffic"],
        "lanes of an atomic on count meet at one address",
    ),
    "idle programs": (
        "roofline.differences",
        [
            ("    offs =", "    if tl.program_id(0) * BLOCK >= N:\n        return\n    offs ="),
            ("triton.cdiv(p.N, 64),", "200 * triton.cdiv(p.N, 64),"),
        ],
        ["traffic"],
        "programs for each that stores",
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=() if one == QUICK else pytest.mark.slow) for one in ONE_ALONE]
)
def test_an_answer_that_wastes_for_one_property_loses_points(name):
    question, edits, parts, said = ONE_ALONE[name]
    verdict = judge(question, *edits)
    assert lost(verdict) == parts and said in str(verdict), str(verdict)


def test_values_are_blamed_where_the_same_sizes_keep_the_limit_with_others():
    """Rows with a large mean are read ten times."""
    question = replace(questions.find("roofline.long_mean"), free={})  # no case is near the number below
    stored = "    tl.store(y_ptr + row, tl.sum(total, axis=0) / N)"
    again = """    mean = tl.sum(total, axis=0) / N
    if mean > 0.7:
        for turn in range(0, 9):
            other = tl.zeros((BLOCK,), tl.float32)
            for start in range(0, N, BLOCK):
                other += tl.load(x_ptr + row * N + start + offs, mask=start + offs < N, other=0.0)
            mean = tl.sum(other, axis=0) / N
    tl.store(y_ptr + row, mean)"""
    source = edited(right(question.id), [(stored, again)])
    part = referee.grade_one(source, question, seed=2, eager=False).parts[1]
    assert part.state == FAIL and "of the same sizes keep this limit: which values" in part.look, part
    assert part.asked.startswith("read of x: in each case at most"), part.asked


def test_a_whole_multiple_of_what_the_metered_case_spends_is_asked_for():
    shares, question = only_here.against_metered(0.8, 1.6)
    assert shares == "the metered case spends 80% of this limit, and this one 160%"
    assert question == "what is done 2 times here, and once there?"
    assert only_here.against_metered(0.8, 1.9)[1] == "" == only_here.against_metered(0.8, 1.9)[1]
    assert only_here.against_metered(0.5, 4.0) == (
        "the metered case spends 50% of this limit, and this one 4 times the limit",
        "",
    )
    assert only_here.against_metered(0.0, 2.0) == ("", "")
    assert only_here.against_metered(0.81, 46.9)[1] == "", "every large ratio is near a whole number"


def test_both_sentences_say_one_excess():
    """A limit has room at small sizes, and what is over it there is said by the same measure twice."""
    shares, question = only_here.against_metered(0.8, 1.6, 1.1)
    assert shares == "the metered case spends 80% of this limit, and this one 110%"
    assert question == "what is done 2 times here, and once there?"


def test_too_many_launches_are_what_was_asked():
    steps = [('return {"steps": [', 'return {"steps": 3 * [')]
    part = judge("roofline.differences", *steps).parts[1]
    assert part.asked.startswith("at most 1 launch") and "further limits kept)" in part.asked, part.asked


@pytest.mark.slow
def test_an_answer_is_thrifty_at_every_size():
    """Rows of other lengths than those that are metered or compiled are read four times."""
    four = "    for again in range(3):\n        x = tl.maximum(x, tl.load(x_ptr + row * stride_xm + offs * stride_xn, mask=mask, other=0.0).to(tl.float32))\n"
    more = [
        ("    g = 0.5", "    if N != 4096 and (N < 900 or N > 1100):\n" + four.replace("    ", "        ", 1).replace("\n        x", "\n            x") + "    g = 0.5"),
    ]  # fmt: skip
    verdict = judge("roofline.layernorm_gelu", *more)
    assert "traffic" in lost(verdict) and "the limit there" in str(verdict), str(verdict)
    assert judge("roofline.layernorm_gelu").verdict == PASS


def test_a_special_value_is_tried_where_an_axis_is_long():
    """A path for long vectors that loses an infinity, which short ones have at their beginning."""
    edits = [("    tl.store(", "    x = tl.where(N > 51_000, tl.clamp(x, -3e38, 3e38), x)\n    tl.store(")]
    verdict = judge("roofline.differences", *edits)
    assert lost(verdict) == ["values"] and "with N large" in str(verdict), str(verdict)


def test_an_excess_shows_in_its_digits():
    assert traffic.times(1.004) == "1.004 times" and traffic.times(1.00004, 1) == "1.00004 times"
    assert traffic.times(2.0, 1) == "2.0 times" and traffic.times(1.3) == "1.30 times"


def test_the_forms_of_other_sizes_are_compiled_as_if_these_were_whole_blocks():
    """Where sizes are odd, nothing is loaded ahead, and eight stages cost no shared memory."""
    source = right("roofline.tile_settings")
    assert (stages := re.search(r'"num_stages": (\d)', source))
    source = source.replace(stages[0], f'"num_stages": {stages[1]} if p.N < 1024 else 8')
    evidence = KernelEvidence(questions.find("roofline.tile_settings"), source, seed=3)
    assert {step.num_stages for step in evidence.other_forms()} == {8}
    own = KernelEvidence(questions.find("roofline.tile_settings"), right("roofline.tile_settings"), seed=3)
    assert own.other_forms() == []
    gemm = KernelEvidence(questions.find("gemm_tiling.tiled_gemm"), "", seed=3)
    aligned = [case for purpose, case in gemm.cases.items() if purpose in ALIGNED_ONES]
    assert aligned and all(
        case.sizes[axis] % 64 == 0 and not case.layout for case in aligned for axis in "MNK"
    )


def test_one_program_may_not_do_most_operations():
    evidence = SimpleNamespace(cases={METERED: Case({}, sm_count=30)})

    def judged(busiest: float):
        launch = {"busiest": busiest, "operations": {"float": 4e6}, "dots": {}}
        run = SimpleNamespace(launches=[launch], case=Case({"M": 60}, sm_count=132), hidden=True)
        limits = [
            Budget(what=f"programs that store {y}", count="programs", least=n)
            for y, n in (("y", 8.0), ("z", 20.0))
        ]
        every_case.judge_busiest(run, limits)

    judged(1e6)
    with pytest.raises(Failed, match="30% of all operations, where 8 could"):
        judged(1.2e6)
    # as at the metered size, whatever the number of SMs that the case is told, unless a limit names the case's own GPU
    for name, part, least in (
        ("quantization_layouts.w4a16_gemv", -1, 30),
        ("flash_attention.split_decode", 1, 32),
    ):
        question = questions.find(name)
        asked, *_ = every_case.sharing(
            SimpleNamespace(question=question, **vars(evidence)),
            question.parts[part],
            replace(question.compile_case, sm_count=148),
        )
        assert asked.least == least, name
