"""What an answer makes of weights: asked once every text is fixed and before anything that meets them is drawn."""

from dataclasses import replace

import numpy as np
import pytest

from grader import questions
from grader.box import warm
from grader.jail import host
from grader.judge import hidden_failure, kernel_repair, kernel_values, weight_packing
from grader.judge.diagnose import judge_case
from grader.judge.failed import Failed
from grader.judge.kernel_evidence import HIDDEN, METERED, PUBLIC, KernelEvidence
from grader.proofs.right import right
from grader.questions import reach

OWN = questions.find("quantization_layouts.own_layout")
RIGHT = right(OWN.id)
BEGIN = '    """Return arrays of my own, with the names and shapes of launch_own."""\n'


@pytest.fixture(scope="module", autouse=True)
def warm_boxes():
    yield
    warm.stop_all()


def gathered(source: str = RIGHT, question=OWN, hidden: int = 1) -> KernelEvidence:
    """Two public cases and some hidden ones."""
    evidence = KernelEvidence(question, source, seed=11)
    kept = [PUBLIC, PUBLIC + 1, *range(HIDDEN, HIDDEN + hidden)]
    evidence.cases = {purpose: evidence.known[purpose] for purpose in kept}
    return evidence


def with_lines(*lines: str) -> str:
    assert BEGIN in RIGHT
    return RIGHT.replace(BEGIN, BEGIN + "".join(f"    {line}\n" for line in lines), 1)


def test_weights_are_drawn_once_texts_are_fixed_and_all_else_once_they_are_packed(monkeypatch):
    order, asked = [], []

    class Spy:
        def __init__(self, programs):
            self.programs = programs

        def ask(self, task, arrays, limits):
            order.append(task["operation"])
            if task["operation"] != "plan":  # many sizes, before anything is drawn
                asked.append((task, arrays))
            return self.programs.ask(task, arrays, limits)

    programs = warm.programs
    monkeypatch.setattr(host.warm, "programs", lambda *a: Spy(programs(*a)))

    def noted(what, draw):
        return lambda case, rng: (order.append(what), draw(case, rng))[1]

    prepare = replace(OWN.prepare, weights=noted("weights", OWN.prepare.weights))
    reach.hidden(OWN, np.random.default_rng(0))  # learns of which kinds its values are, once
    evidence = gathered(question=replace(OWN, prepare=prepare, inputs=noted("inputs", OWN.inputs)))
    for purpose in (PUBLIC + 1, HIDDEN):
        judge_case(OWN, evidence.run(purpose))
    of_jail = [what for what in order if what not in ("plan", "run")]
    shown, hidden = ["lower", "weights", "weights", "pack", "inputs"], ["lower", "weights", "pack", "inputs"]
    assert of_jail == [*shown, *hidden]
    lowering = [one for one in asked if one[0]["operation"] == "lower"]
    packing = [one for one in asked if one[0]["operation"] == "pack"]
    assert all(arrays == {} for _, arrays in lowering)
    assert [len(task["cases"]) for task, _ in packing] == [2, 1]  # hidden ones in a process of their own
    for task, arrays in packing:
        assert set(task) == {"operation", "source", "entry", "cases"}
        assert all(a.dtype in (np.uint8, np.float16) or a.dtype == "bfloat16" for a in arrays.values())
        assert len(arrays) == 2 * len(task["cases"])  # codes and scales; how many bits is a plain number


def test_what_was_made_is_an_input_of_the_launch():
    evidence = gathered(hidden=0)
    inputs, placed = evidence.draw(PUBLIC)
    tensors = {one.spec.name: one for one in placed}
    assert list(tensors) == ["c", "x", "y", "words", "scales"] and {"codes", "scales", "bits"} <= set(inputs)
    words, case = tensors["words"], evidence.cases[PUBLIC]
    assert words.shape == (case.sizes["N"], case.sizes["K"] // 8) and words.strides == (
        case.sizes["K"] // 8,
        1,
    )
    assert words.as_task() | {"name": "words", "dtype": "i32", "axes": "01", "role": "in"} == words.as_task()
    low = words.view().view(np.uint32)[..., None] >> (4 * np.arange(8, dtype=np.uint32)) & 15
    assert (low.reshape(inputs["codes"].shape) == inputs["codes"]).all()
    assert (tensors["scales"].view() == inputs["scales"]).all()


def test_one_case_that_goes_wrong_leaves_the_others_and_says_where():
    evidence = gathered(with_lines("assert codes.shape != (64, 256), 'not this one'"))
    error = evidence.plan(PUBLIC)
    assert error["stage"] == "pack" and "not this one" in error["message"] and error["line"] == 3
    judge_case(OWN, evidence.run(PUBLIC + 1))


def test_what_pack_prints_is_heard_of_shown_cases_alone():
    evidence = gathered(with_lines("print('SEEN', codes.shape)"))
    evidence.run(HIDDEN)
    assert evidence.printed == ""
    evidence.run(PUBLIC)
    assert evidence.printed == "SEEN (64, 256)"


def test_a_pack_that_remembers_tells_no_hidden_weight_in_a_shown_case():
    source = "HEARD = []\n\n\n" + with_lines("HEARD.append(codes.shape)", "print(HEARD)")
    evidence = gathered(source, hidden=3)
    evidence.run(PUBLIC)
    evidence.run(PUBLIC + 1)
    shown = {str((c.sizes["N"], c.sizes["K"])) for p, c in evidence.cases.items() if p < HIDDEN}
    hidden = {str((c.sizes["N"], c.sizes["K"])) for p, c in evidence.cases.items() if p >= HIDDEN}
    assert any(one in evidence.printed for one in shown) and not any(
        one in evidence.printed for one in hidden
    )


@pytest.mark.parametrize(
    "lines", [("import os", "os._exit(0)"), ("while True: pass",), ("raise MemoryError",)]
)
def test_a_pack_that_ends_its_process_fails_its_cases(lines, monkeypatch):
    monkeypatch.setattr(host, "PACK_LIMITS", replace(host.PACK_LIMITS, cpu_s=2, wall_s=20.0))
    evidence = gathered(with_lines(*lines))
    assert all(isinstance(evidence.plan(purpose), dict) for purpose in evidence.cases)
    assert evidence.run(PUBLIC).outcome.error["stage"] in ("process", "memory")


def test_hidden_weights_are_stored_in_every_order_and_public_ones_in_rows():
    evidence = KernelEvidence(OWN, RIGHT, seed=3)
    orders = {"codes": set(), "scales": set()}
    for purpose in (*evidence.public, *evidence.hidden[:12]):
        drawn = OWN.drawn_weights(evidence.case(purpose), evidence.rng(purpose))
        stored = weight_packing.stored(evidence, purpose, drawn)
        assert stored["bits"] == drawn["bits"]
        for name, seen in orders.items():
            assert (stored[name] == drawn[name]).all()
            if purpose in evidence.public:
                assert stored[name] is drawn[name]
            elif min(drawn[name].shape) > 1:
                flags = stored[name].flags
                seen.add((flags.c_contiguous, flags.f_contiguous))
    assert orders == dict.fromkeys(orders, {(True, False), (False, True), (False, False)})


def test_a_case_drawn_for_the_learner_has_every_order_too():
    for purpose in range(HIDDEN, HIDDEN + 3):
        found = set()
        for draw in range(hidden_failure.SHOWN_DRAWS):
            again = KernelEvidence(OWN, RIGHT, hidden_failure.SHOWN_SEED + draw)
            stored = weight_packing.stored(again, purpose, {"codes": np.zeros((3, 64), np.uint8)})
            found.add(stored["codes"].strides)
        assert {(1, 3), (129, 2)} <= found


IN_MEMORY_ORDER = 'codes = codes.ravel(order="K").reshape(codes.shape)'
PAST_ITS_VIEW = "codes = np.lib.stride_tricks.as_strided(codes, codes.shape, (codes.shape[1], 1))"


@pytest.mark.parametrize("line", [IN_MEMORY_ORDER, PAST_ITS_VIEW])
def test_a_pack_that_reads_in_the_order_of_memory_is_wrong_in_hidden_cases(line):
    evidence = gathered(with_lines(line), hidden=3)
    judge_case(OWN, evidence.run(PUBLIC))
    evidence.shown = True
    failures = {}
    for purpose in evidence.hidden:
        try:
            judge_case(OWN, evidence.run(purpose))
        except Failed as failed:
            failures[purpose] = failed
    assert failures
    for purpose, failed in failures.items():
        said = weight_packing.said(evidence, purpose)
        assert "codes" in said and ("column by column" in said or "with gaps" in said)
        look = kernel_repair.sentence(evidence, purpose, failed)
        assert "codes" in look and "stored row by row this case is right" in look


@pytest.mark.parametrize(
    "name, line", [("codes", "codes[-1] ^= 1"), ("scales", "np.negative(scales, out=scales)")]
)
def test_a_pack_that_changes_its_arguments_fails_and_hears_which_and_where(name, line):
    evidence = gathered(with_lines("kept = codes.copy()", line), hidden=3)
    evidence.run(PUBLIC)
    for purpose in evidence.cases:
        with pytest.raises(Failed) as failed:
            kernel_values.judge_one(evidence, purpose, [])
        assert f"pack changes {name} in place, in line 4 of the cell" in failed.value.came
        assert failed.value.look == f"change a copy: {name} = {name}.copy()"
        assert failed.value.came.startswith("a hidden case (") == (purpose >= HIDDEN)


def test_a_pack_that_turns_its_argument_into_another_shape_changes_it():
    evidence = gathered(with_lines("scales.shape = -1", "scales = scales.reshape(len(codes), -1)"), hidden=0)
    with pytest.raises(Failed, match="pack changes scales in place. The"):
        kernel_values.judge_public(evidence, evidence.public)


def test_a_pack_may_change_a_copy_and_return_an_argument():
    evidence = gathered(with_lines("codes = codes.copy()", "codes[:] = codes"), hidden=3)
    for purpose in evidence.cases:
        kernel_values.judge_one(evidence, purpose, [])
    assert evidence.changed == dict.fromkeys(evidence.cases, ([], None))


def test_the_metered_case_counts_what_was_made_as_one():
    from grader.judge import traffic

    evidence = KernelEvidence(OWN, RIGHT, seed=5)
    evidence.cases = {METERED: evidence.known[METERED]}
    run = evidence.run(METERED)
    held = sum(one.storage.nbytes for one in run.placed if one.spec.name in run.plan.packed)
    (budget,) = [b for b in OWN.budgets["traffic"](run.case) if b.tensor == "packed"]
    assert traffic.names_of(run, budget) == ["words", "scales"]
    assert traffic.spent(run, budget) == held <= OWN.prepare.most_bytes(run.case)
