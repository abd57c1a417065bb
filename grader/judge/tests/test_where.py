"""Where an answer is wrong is said: the line, the first wrong element, the programs, what was never stored."""

import ast
from types import SimpleNamespace

import numpy as np
import pytest

from grader import questions
from grader.judge import kernel_repair, parts, referee, repair
from grader.judge.compare import difference
from grader.judge.numpy_evidence import written
from grader.judge.numpy_values import known_mistake
from grader.judge.pattern import Pattern
from grader.judge.source import loop_around
from grader.judge.stored import counted, filled_before, programs
from grader.proofs.right import edited, right
from grader.questions import Call, Mistake, NumpyQuestion, Part


def look(question: str, *edits: tuple[str, str]) -> str:
    source = edited(right(question), edits)
    verdict = referee.grade_one(source, questions.find(question), seed=2026, eager=False)
    return next(one.look for one in verdict.parts if one.state == "FAIL")


NUMPY = {
    "a number": ("quantization_layouts.quantize_groups", [("(high - low) / 15", "(high - low) / 16")], "line 6: another number than 16 makes all"),
    "a function": (
        "quantization_layouts.quantization_error",
        [("(w**2).mean()", "(w**2).max()")],
        "of its 2 results [1] agrees; line 6: another function in `(w**2).max()` makes all",
    ),
    "a name": ("gemm_tiling.tile_loads", [("m * k * math", "m * n * math")], "line 3: another name than `n` makes all"),
    "the formula": ("gemm_tiling.gemm_bytes", [("+ m * n)", "+ 2 * m * n)")], "gives m * n * elem_bytes too much"),
    "the line and names": (
        "expert_load_balance.least_hot_share",
        [("(experts // devices - 1)", "(experts // devices)"), ("/ (1 - beside)", "/ (2 - beside)")],
        "line 5 returns the wrong result, where beside = ",
    ),
    "the first of several": (
        "moe_routing.route",
        [("powers.sum(1, keepdims=True)", "powers.sum(0, keepdims=True) * 3")],
        "its first result agrees; the first wrong one is route[1][0, 0], ",
    ),
    "an order": (
        "sampling_fusion.kept_share",
        [("np.lexsort((np.arange(n), -logits))", "np.argsort(logits)")],
        "line 5: the opposite order of `np.argsort(logits)` makes all",
    ),
    "a bound": (
        "next_bottleneck.exposed",
        [
            ("free = 0.0", "free = late = 0.0"),
            ("free = max(free, start) + takes", "begin = start\n        free = begin + takes\n        late += max(0.0, free - max(begin, end_s))"),
            ("max(0.0, free - end_s)\n", "late\n"),
        ],
        "line 5: max(…, another name) in place of `start` makes all",
    ),
    "another spelling": ("roofline.roof", [('"memory"', '"Memory"')], "capital letters and spaces count, and 'memory'"),
}  # fmt: skip


@pytest.mark.parametrize("what", NUMPY)
def test_a_numpy_answer_is_told_where(what):
    question, edits, said = NUMPY[what]
    found = look(question, *edits)
    assert said in found, found
    assert not {"kernel", "mask", "program", "lane", "block"} & set(found.replace(",", " ").split()), found


CELLS = {
    "a place for what is there, not a weight of 1 more": (
        "sampling_fusion.inverse_pick",
        """def inverse_pick(weights, u):
    w = np.asarray(weights, float)
    alive = np.flatnonzero(w)
    ends = np.cumsum(w[alive])
    at = np.searchsorted(ends, u * ends[-1], side="right")
    return int(at)
""",
        "line 6: what another name holds at `at`, in place of `at`, makes all",
    ),
    "a sign where it is, not where a product cancels it": (
        "moe_routing.experts",
        """def experts(rows, expert_offsets, gate_up, down):
    pieces = []
    for e, weights in enumerate(gate_up):
        both = rows[expert_offsets[e]:expert_offsets[e + 1]] @ weights.T
        gate, up = np.split(both, 2, axis=1)
        silu = gate * np.exp(-np.logaddexp(0.0, gate))
        pieces.append((silu * up) @ down[e].T)
    return np.concatenate(pieces)
""",
        "line 6: another sign of `gate` makes all",
    ),
    "a mistake that the public calls rule out": (
        "sampling_fusion.gumbel_pick",
        """def gumbel_pick(logits, temperature, u):
    noise = -np.log(-np.log(np.clip(u, 1e-3, 1 - 1e-3)))
    return int(np.argmax(np.asarray(logits, float) / temperature + noise))
""",
        "line 2: leaving out the function in `np.clip(u, 1e-3, 1 - 1e-3)` makes all",
    ),
    "an argument": (
        "quantization_layouts.to_planes",
        """def to_planes(codes, bits):
    single = np.stack([codes >> b & 1 for b in range(bits)])
    return np.packbits(single.astype(np.uint8), axis=2).view("<u4")
""",
        "line 3: another bitorder= in `np.packbits(",
    ),
    "a permutation for its inverse": (
        "expert_load_balance.capacity_kept",
        """def capacity_kept(topk_ids, experts, factor):
    tokens, top_k = topk_ids.shape
    capacity = math.ceil(factor * tokens * top_k / experts)
    queue = topk_ids.T.reshape(-1)
    order = np.argsort(queue, kind="stable")
    first = np.searchsorted(queue[order], np.arange(experts))
    place = (np.arange(len(queue)) - first[queue[order]])[order]
    return capacity, (place < capacity).reshape(top_k, tokens).T
""",
        "line 7: the inverse of the order `order` makes all",
    ),
    "what one .T turns and another turns back": (
        "moe_routing.permute",
        """def permute(topk_ids, experts, tile):
    expert_of_pair = topk_ids.T.ravel()
    runs = [np.flatnonzero(expert_of_pair == e) for e in range(experts)]
    runs = [np.pad(pairs, (0, -len(pairs) % tile), constant_values=-1) for pairs in runs]
    sorted_token_ids = np.concatenate(runs)
    real = np.flatnonzero(sorted_token_ids >= 0)
    inv = np.empty(topk_ids.size, dtype=np.int64)
    inv[sorted_token_ids[real]] = real
    return sorted_token_ids, inv.reshape(topk_ids.T.shape).T
""",
        "line 2: leaving out .T there and in line 9 makes all",
    ),
    "an expression that already has a name": (
        "quantization_layouts.quantize_groups",
        """def quantize_groups(w, group, zero_points):
    parts = w.reshape(len(w), -1, group)
    low, high = np.minimum(parts.min(axis=2), 0.0), np.maximum(parts.max(axis=2), 0.0)
    scales = ((high - low) / 15 if zero_points else np.maximum(-low, high) / 7).astype(np.float16)
    empty = scales == 0
    step = np.where(empty, 1.0, (high - low) / 15 if zero_points else np.maximum(-low, high) / 7)
    zeros = np.where(empty, 0, np.clip(np.rint(-low / step), 0, 15)) if zero_points else np.full(scales.shape, 8)
    codes = np.clip(np.rint(parts / step[:, :, None]) + zeros[:, :, None], 0 if zero_points else 1, 15)
    codes = np.where(empty[:, :, None], zeros[:, :, None], codes)
    return codes.reshape(w.shape).astype(np.uint8), scales, zeros.astype(np.uint8)
""",
        "line 6: a name in place of `(high - low) / 15 if ",
    ),
}


@pytest.mark.parametrize("what", CELLS)
def test_a_cell_is_told_its_slip(what):
    question, source, said = CELLS[what]
    verdict = referee.grade_one(source, questions.find(question), seed=2026, eager=False)
    found = next(one.look for one in verdict.parts if one.state == "FAIL")
    assert said in found, found


def test_a_share_just_below_1_is_not_shown_as_1():
    question = questions.find("sampling_fusion.inverse_pick")
    assert written(question, Call(([1.0, 2.0], 1 - 2**-24))).endswith(", 0.9999999403953552)")
    assert written(question, Call(([1.0, 2.0], 1 / 3))).endswith(", 0.333333)")


def test_a_change_that_does_not_make_all_calls_right_is_not_named():
    """A loop that a change makes endless costs a fraction of a second, and two mistakes have no one cure."""
    source = "def reuse(bm, bn):\n    n = 0\n    while n < 3:\n        n = n + 1\n    return bm * bn / (bm - bn + n + 2)\n"
    verdict = referee.grade_one(source, questions.find("gemm_tiling.reuse"), seed=2026, eager=False)
    assert "makes all" not in verdict.parts[0].look and verdict.seconds < 60, str(verdict)


def test_a_changed_source_is_python_with_its_lines_in_place():
    source = (
        "def f(a, b):\n    # a comment\n    x = max(a,\n            b) // 2\n    return x if a < b else -x\n"
    )
    found = list(repair.changes(source, "f"))
    assert len(found) > 30 and len({one.source for one in found}) > 25
    for one in found:
        assert ast.parse(one.source) and one.source.count("\n") == source.count("\n") and one.source != source


DIFFERENCES, DOUBLED, TURNED = "roofline.differences", "roofline.doubled", "roofline.turned"
KERNELS = {
    "the line and the program": (
        DIFFERENCES,
        [("x - before", "x - 1.5 * before")],
        "line 7 of the cell stores the first wrong one, y[1] (",
    ),
    "programs that overlap": (
        DOUBLED,
        [("tl.program_id(0) * BLOCK + tl", "tl.program_id(0) + tl")],
        "all programs together store 256 elements, but only 67 different ones, so they overlap",
    ),
    "the last program": (
        DIFFERENCES,
        [("x - before, mask", "tl.where(offs // BLOCK == N // BLOCK, 3 * x, x - before), mask")],
        "only programs with tl.program_id(0) = 1, the last, store wrong ones",
    ),
    "a row that is passed over": (
        "roofline.smoothed",
        [("range(0, T)", "range(1, T)")],
        "the programs pass over these: ",
    ),
}


@pytest.mark.parametrize("what", KERNELS)
def test_a_kernel_is_told_where(what, monkeypatch):
    """If no small change cures it."""
    monkeypatch.setattr(kernel_repair, "MOST_CHANGES", 0)
    question, edits, said = KERNELS[what]
    found = look(question, *edits)
    assert said in found, found


def test_programs_are_named_if_they_store_all_that_is_wrong():
    grid, side = (4, 3, 1), 4
    program = np.kron(np.arange(12).reshape(3, 4), np.ones((side, side), int))
    stored = {"program": program, "launch": np.zeros_like(program)}
    x, y = program % 4, program // 4
    drawn = np.random.default_rng(1).random(program.shape) < 0.7
    for bad, said in {
        "only programs with tl.program_id(0) = 3, the last, store wrong ones": x == 3,
        "only programs with tl.program_id(1) = 0 store wrong ones": y == 0,
        "all programs store wrong ones but those with tl.program_id(0) = 0": x > 0,
        "only programs with tl.program_id(0) = 1, 2 store wrong ones": (x == 1) | (x == 2),
        "only program (2, 1) stores wrong ones": program == 6,
        "3 of 12 programs store wrong ones": np.isin(program, (0, 5, 10)),
        "": program >= 0,
    }.items():
        assert programs(stored, said & drawn, 0, grid) == bad


def test_what_an_earlier_line_filled_in_is_told_from_what_a_line_stores_wrongly():
    came, want = np.array([-1.0, 7, -1, 9]), np.array([5.0, 7, -1, 9])
    stored = {"line": np.array([16, 69, 16, 69])}
    bad = Pattern("rows", came, want, came != want)
    said = filled_before(stored, bad, (0,), 16)
    assert said.startswith("rows[0] still holds the -1 of line 16, where line 69, which stores the rest")
    assert not filled_before(stored, bad, (0,), 69)
    assert not filled_before({"line": np.array([69, 69, 69, 69])}, bad, (0,), 69)


def test_programs_that_store_nothing_are_no_lack_of_programs():
    missing = np.arange(64) >= 16
    row = {"requested": 64, "programs": 1, "busiest": 64}
    placed = SimpleNamespace(spec=SimpleNamespace(name="y"), storage=np.zeros(1, np.float32))
    run = SimpleNamespace(
        placed=[placed],
        launches=[{"programs": 3, "tensors": {"y": {"store": row}}}],
        plan=SimpleNamespace(steps=[SimpleNamespace(grid=(3, 1, 1))]),
    )
    assert counted(run, "y", missing).startswith("2 of 3 programs store nothing")
    row |= {"programs": 3, "requested": 64, "busiest": 24}
    assert "nothing" not in counted(run, "y", missing)


def test_time_that_runs_out_is_told_by_the_loop_that_spends_it():
    helper = "def near(x):\n    return x\n\n\n"
    loop = "def k(n):\n    for start in range(n):\n        t = near(start)\n    return t\n"
    assert loop_around(helper + loop, 2) == 6 and loop_around(helper + loop, 7) == 6
    assert loop_around(helper + loop, 8) == 0 and loop_around(helper + loop, None) == 0


# ---- recognised mistakes


def question_of(*mistakes: Mistake) -> NumpyQuestion:
    return NumpyQuestion(
        id="gemm_tiling.made_up",
        notebook="concepts",
        entry="f",
        asks="f(n)",
        parts=(Part("values", 1, "calls"),),
        reference=lambda n: n,
        public=(Call((2,)), Call((3,))),
        hidden=lambda rng: [Call((int(n),), "other sizes") for n in rng.integers(4, 90, 4)],
        where="nowhere",
        mistakes=mistakes,
    )


def judged(question, source: str) -> str:
    return parts.judge(parts.gather(question, source, 2026), question.parts[0]).look


TWICE = Mistake("twice", "this is twice as much", wrong=lambda n: 2 * n)
SQUARE = Mistake("square", "this is the square", wrong=lambda n: n * n)
DOUBLE = Mistake("double", "this counts everything two times", wrong=lambda n: n + n)


def test_of_two_mistakes_with_one_output_both_are_named():
    found = judged(question_of(TWICE, SQUARE, DOUBLE), "def f(n):\n    return 2 * n\n")
    assert found == f"{TWICE.sentence}; or: {DOUBLE.sentence}"


def test_a_mistake_that_explains_the_public_calls_alone_is_not_named():
    found = judged(question_of(SQUARE), "def f(n):\n    return n * n if n < 4 else n + 1\n")
    assert SQUARE.sentence not in found, found


def test_a_mistake_that_leaves_one_wrong_result_unexplained_is_not_named():
    seen = {
        n: (Call((n,)), {"array": f"r{n}"}, {f"r{n}": np.asarray(2 * n + (n == 9))}) for n in range(2, 12)
    }
    assert known_mistake(question_of(TWICE), seen) == ""
    seen.pop(9)
    assert known_mistake(question_of(TWICE), seen) == TWICE.sentence


# ---- patterns of drawn faults

FAULTS = {
    "a row": (lambda want, rng: (np.arange(want.shape[0])[:, None] == 3) & np.ones(want.shape, bool), "at row 3"),
    "the last columns": (lambda want, rng: np.indices(want.shape)[1] >= 24, "from column 24 on"),
    "odd columns": (lambda want, rng: np.indices(want.shape)[1] % 2 == 1, "at column 1 and every 2 further"),
    "above the diagonal": (lambda want, rng: np.indices(want.shape)[1] > np.indices(want.shape)[0], "above the diagonal"),
    "scattered": (lambda want, rng: rng.random(want.shape) < 0.3, ""),
}  # fmt: skip
VALUES = {
    "zeros": (lambda want: 0 * want, "all that is wrong is 0"),
    "NaN": (lambda want: want * np.nan, "what is wrong is NaN"),
    "half": (lambda want: want / 2, "each of them is 1/2 of what it should be"),
    "moved": (lambda want: want + 5, "each of them is 5 too much"),
    "anything": (lambda want: np.random.default_rng(want.size).standard_normal(want.shape) * 9, ""),
}


@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_drawn_fault_is_told_by_its_pattern(fault, values):
    (where, place), (change, relation) = FAULTS[fault], VALUES[values]
    for seed in range(6):
        rng = np.random.default_rng(seed)
        want = rng.standard_normal((12, 32)) + 4
        wrong = where(want, rng)
        found = difference("y", np.where(wrong, change(want), want), want, 1e-12).pattern.sentence()
        assert place in found and relation in found, found
        assert ("wrong only" in found) == bool(place) and (relation or "each" not in found), found
