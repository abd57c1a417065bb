"""Several ranks of one answer: right ones pass, each way to fail has its sentence, and no way round the referee pays."""

import os
import time
from dataclasses import replace

import numpy as np
import pytest

from grader import questions, trial
from grader.box import warm
from grader.jail import exchange, host
from grader.jail.exchange import COUNTS, ROWS, Ask, Mismatch
from grader.judge import one_new, parts, rank_values, ranks_evidence, referee
from grader.judge.rank_values import times_over
from grader.judge.ranks_evidence import RanksEvidence
from grader.judge.record import FAIL, INCONCLUSIVE, PASS
from grader.paths import ROOT
from grader.topics.expert_load_balance.shared import LONGER

pytestmark = pytest.mark.usefixtures("no_jails_left")

DISPATCH = questions.find("expert_load_balance.dispatch_tokens")
HONEST = """
def honest(comm, x, topk_ids, experts):
    per = experts // comm.ranks
    goes = [(topk_ids // per == rank).any(axis=1) for rank in range(comm.ranks)]
    token = np.concatenate([np.flatnonzero(g) for g in goes])
    send = np.array([g.sum() for g in goes])
    receive = comm.exchange_counts(send)
    return comm.send_rows(x[token], send, receive), comm.send_rows(topk_ids[token], send, receive)


def dispatch_tokens(comm, x, topk_ids, experts):
    {body}
"""
NOTHING = "np.zeros((0, x.shape[1]), np.float32), np.zeros((0, 2), np.int64)"


def cell(*body: str) -> str:
    return HONEST.format(body="\n    ".join(body))


def judged(source: str, question=DISPATCH):
    return referee.grade_one(source, question, seed=3, eager=False)


RIGHT = cell("return honest(comm, x, topk_ids, experts)")


def test_a_right_answer_has_all_points_and_says_what_was_counted():
    verdict = judged(RIGHT)
    assert verdict.verdict == PASS and verdict.points == verdict.of == 8, verdict
    assert "3 public and 53 hidden" in verdict.parts[0].came and "3 exchanges" in verdict.parts[2].came


# (the body of the answer, the part that is lost, words of what came, words of where to look)
TOLD = {
    "not started": (["raise NotImplementedError"], "values", "not started", "replace that line"),
    "a rank that leaves": (
        ["if comm.rank == 2:", f"    return {NOTHING}", "return honest(comm, x, topk_ids, experts)"],
        "values",
        "in the 1st exchange ranks 0, 1 and 3 wait in exchange_counts for the counts of rank 2, for ever: "
        "rank 2 returned without entering it",
        "every rank enters every exchange",
    ),
    "ranks that leave after the counts": (
        [
            "if comm.rank % 2:",
            "    comm.exchange_counts(np.full(comm.ranks, comm.rank))",
            f"    return {NOTHING}",
            "return honest(comm, x, topk_ids, experts)",
        ],
        "values",
        "in the 2nd exchange ranks 0 and 2 wait in send_rows for 4 and 4 rows of ranks 1 and 3, for ever: "
        "ranks 1 and 3 returned without entering it",
        "every rank enters every exchange",
    ),
    "one rank alone in another exchange": (
        [
            "if comm.rank == 3:",
            "    comm.send_rows(x[:0], [0] * comm.ranks, [1, 0, 0, 0])",
            "if comm.rank:",
            f"    return {NOTHING}",
            "return honest(comm, x, topk_ids, experts)",
        ],
        "values",
        "rank 0 waits in exchange_counts for the counts and rank 3 waits in send_rows for 0 rows of ranks 1 and 2, for ever",
        "every rank enters every exchange",
    ),
    "another order": (
        [
            "if comm.rank == 1:",
            "    comm.send_rows(x[:0], [0] * comm.ranks, [0] * comm.ranks)",
            "return honest(comm, x, topk_ids, experts)",
        ],
        "values",
        "in the 1st exchange rank 1 calls send_rows where rank 0 calls exchange_counts",
        "in the same order",
    ),
    "counts that are not true": (
        [
            "true = comm.exchange_counts",
            "comm.exchange_counts = lambda send: true(send) + (comm.rank == 3)",
            "return honest(comm, x, topk_ids, experts)",
        ],
        "values",
        "in the 2nd exchange rank 3 awaits",
        "which its counts say",
    ),
    "another dtype": (
        ["return honest(comm, x.astype(float) if comm.rank == 1 else x, topk_ids, experts)"],
        "values",
        "in the 2nd exchange rank 1 gives send_rows float64",
        "one width and one dtype",
    ),
    "an exception after an exchange": (
        ["out = honest(comm, x, topk_ids, experts)", "return out if comm.rank != 3 else out[2]"],
        "values",
        "rank 3 of 4 after its 3rd exchange (send_rows): IndexError",
        "line 12 of the cell",
    ),
    "counts as floats": (
        ["comm.exchange_counts(np.ones(comm.ranks))"],
        "values",
        "counts must be whole numbers, a row for each of 4 ranks, got float64",
        "line 11",
    ),
    "another number of ranks": (
        ["comm.ranks = 1", "return honest(comm, x, topk_ids, experts)"],
        "values",
        "property 'ranks' of 'Communicator' object has no setter",
        "line 11",
    ),
    "counts that carry more than counts": (
        [
            "fat, true = np.zeros((comm.ranks, 4096), int), comm.exchange_counts",
            "comm.exchange_counts = lambda send: true(fat + send[:, None])[:, 0]",
            "return honest(comm, x, topk_ids, experts)",
        ],
        "bytes",
        "times what it may",
        "the rows alone are within the limit, so look at exchange_counts",
    ),
    "a field name as long as a row": (
        ["comm.send_rows(np.zeros(1, [('f' * 4000, 'i8')]), [1, 0, 0, 0], [0] * 4)"],
        "values",
        "rows must be an array of numbers, a row each, got [('" + "f" * 37 + " … of shape",
        "line 11",
    ),
    "rows not counted": (
        ["n = [1] * comm.ranks", "comm.send_rows(x[:0], n, n)"],
        "values",
        "send must count all 0 rows",
        "line 12",
    ),
    "another result each time": (
        ["comm.exchange_counts(np.random.default_rng().integers(0, 9999, comm.ranks))"]
        + ["return honest(comm, x, topk_ids, experts)"],
        "values",
        "sent something else when it ran again",
        "from a seed that is set",
    ),
    "exchanges without an end": (
        ["while True:", "    comm.exchange_counts(np.zeros(comm.ranks, int))"],
        "values",
        "at most 16 exchanges, and this exchange_counts is one more",
        "line 12",
    ),
    "too many exchanges": (
        ["comm.exchange_counts(np.zeros(comm.ranks, int))", "return honest(comm, x, topk_ids, experts)"],
        "exchanges",
        "4 exchanges: exchange_counts, exchange_counts, send_rows, send_rows",
        "what could travel together",
    ),
    "one value": (["return honest(comm, x, topk_ids, experts)[0]"], "values", "2 values", "on rank 0"),
    "a row out of place": (
        ["a, b = honest(comm, x, topk_ids, experts)", "a[[1, 2]] = a[[2, 1]]", "return a, b"],
        "values",
        "rank 0 of 4: dispatch_tokens[0][",
        "on rank 0 is token",
    ),
    "rows left out": (
        [
            "a, b = honest(comm, x, topk_ids, experts)",
            "return (a[:-2], b[:-2]) if comm.rank == 1 else (a, b)",
        ],
        "values",
        "rank 1 of 4: dispatch_tokens[0] must be an array of shape",
        "rows are right, and then it ends: row",
    ),
    "a row left out in the midst": (
        [
            "a, b = honest(comm, x, topk_ids, experts)",
            "return tuple(np.concatenate([one[:3], one[4:]]) for one in (a, b))",
        ],
        "values",
        "rank 0 of 4: dispatch_tokens[0] must be an array of shape",
        "its first 3 rows are right, and the next is another: row 3 on rank 0 is token",
    ),
    "dies": (
        ["if comm.rank == 2:", "    __import__('os')._exit(3)", "return honest(comm, x, topk_ids, experts)"],
        "values",
        "rank 2 of 4: the process of the answer ended itself (exit code 3)",
        "what ends the process, such as os._exit",
    ),
    "calls itself": (
        ["return dispatch_tokens(comm, x, topk_ids, experts)"],
        "values",
        "RecursionError",
        "line 11",
    ),
    "asks for a library": (
        ["import kernels.expert_load_balance.reference"],
        "values",
        "No module named 'kernels'",
        "leave this import out",
    ),
}


ROWS_TOLD = "rows left out", "a row left out in the midst"  # another form of a row out of place


@pytest.mark.parametrize(
    "what", [pytest.param(one, marks=[pytest.mark.slow] * (one in ROWS_TOLD)) for one in TOLD]
)
def test_a_failure_names_the_rank_and_the_exchange(what):
    body, part, came, look = TOLD[what]
    verdict = judged(cell(*body))
    lost = next(p for p in verdict.parts if p.state != PASS)
    assert verdict.verdict == FAIL and lost.name == part, verdict
    assert came in lost.came and look in lost.look, verdict


# What would be worth points, or hurt, if a rank could do it. Each: (body, words of what came); None: it has all points.
HOSTILE = {
    "looks for other ranks in memory": (
        [
            "import gc, sys",
            "seen = [a for a in gc.get_objects() if isinstance(a, np.ndarray) and a.shape[1:] == x.shape[1:]]",
            "for frame in sys._current_frames().values():",
            "    while frame:",
            "        seen += [v for v in frame.f_locals.values() if isinstance(v, np.ndarray) and v.shape[1:] == x.shape[1:]]",
            "        frame = frame.f_back",
            "other = [a for a in seen if a.dtype == x.dtype and not any(row.tobytes() in x.tobytes() for row in a)]",
            "raise ValueError(f'{len(other)} of other ranks')",
        ],
        "ValueError: 0 of other ranks",
    ),
    "leaves its rows on disk": (
        [
            "import glob",
            "np.save(f'x{comm.rank}', x)",
            "if comm.rank == 2:",
            "    raise ValueError(sorted(glob.glob('x*')))",
            "return honest(comm, x, topk_ids, experts)",
        ],
        "ValueError: ['x2.npy']",
    ),
    "leaves its rows in shared memory": (
        [
            "import os",
            "shared = '/dev/shm' if os.access('/dev/shm', os.W_OK) else '.'",
            "open(f'{shared}/{comm.rank}', 'w').close()",
            "if comm.rank == 2:",
            "    raise ValueError(os.listdir(shared))",
            "return honest(comm, x, topk_ids, experts)",
        ],
        "ValueError: ['2']",
    ),
    "leaves a process that waits for the next rank": (
        [
            "import os, time",
            "if comm.rank == 0 and not os.fork():",
            "    time.sleep(60)",
            "    os._exit(0)",
            "return honest(comm, x, topk_ids, experts)",
        ],
        None,
    ),
    "writes into every pipe": (
        [
            "import os",
            "for fd in range(3, 40):",
            "    try:",
            "        os.write(fd, b'x' * 64)",
            "    except OSError:",
            "        pass",
            "return honest(comm, x, topk_ids, experts)",
        ],
        "wrote into the grader's own channel",
    ),
    "sends a frame of its own": (
        [
            "import os, struct, json",
            "head = json.dumps({'turns': [{'result': {'list': []}, 'before': []}] * 3, 'nonce': '', 'arrays': []}).encode()",
            "for fd in range(3, 40):",
            "    try:",
            "        os.write(fd, struct.pack('<Q', len(head)) + head)",
            "    except OSError:",
            "        pass",
            "os._exit(0)",
        ],
        "wrote into the grader's own channel",
    ),
    "rows that are wider than they look": (
        [
            "import sys",
            "rank = sys._getframe(1).f_locals['self']",
            "rank.ended.put(({'call': 'send_rows', 'send': [9] * comm.ranks, 'receive': [0] * comm.ranks}, x))",
            "import threading",
            "threading.Event().wait()",
        ],
        "wrote into the grader's own channel",
    ),
    "a split below nothing": (
        [
            "import sys",
            "rank = sys._getframe(1).f_locals['self']",
            "send = [len(x) + 5] + [0] * (comm.ranks - 2) + [-5]",
            "rank.asked.append('0' * 64)",
            "rank.ended.put(({'call': 'send_rows', 'send': send, 'receive': send}, x))",
            "import threading",
            "threading.Event().wait()",
        ],
        "wrote into the grader's own channel",
    ),
    "an exchange of another name": (
        [
            "import sys",
            "rank = sys._getframe(1).f_locals['self']",
            "rank.asked.append('0' * 64)",
            "rank.ended.put(({'call': 'give_me_all', 'send': [], 'receive': []}, x))",
            "import threading",
            "threading.Event().wait()",
        ],
        "wrote into the grader's own channel",
    ),
    "says that it has returned already": (
        [
            "import sys",
            "rank = sys._getframe(1).f_locals['self']",
            f"rank.ended.put(({{'result': None}}, ({NOTHING})))",
            "import threading",
            "threading.Event().wait()",
        ],
        "must be an array of shape",
    ),
    "a shape without an end": (
        [
            "comm.send_rows(np.broadcast_to(np.float32(0), (1 << 40, 4)), [1 << 40] + [0] * (comm.ranks - 1), [0] * comm.ranks)"
        ],
        "carries at most 4 MiB",
    ),
    "counts without an end": (
        ["comm.exchange_counts(np.zeros((comm.ranks, 1 << 20), int))"],
        "carries at most 4 MiB in 4 axes, or 4096 counts for each rank, got int64 of shape",
    ),
    "objects": (
        ["comm.send_rows(np.array([object()]), [1, 0, 0, 0], [0] * 4)"],
        "rows must be an array of numbers",
    ),
    "an array that computes when it is read": (
        [
            "class Lazy:",
            "    def __array__(self, *_, **__):",
            "        raise SystemExit",
            "comm.exchange_counts(Lazy())",
        ],
        "ended its own process",
    ),
    "floods": (
        ["import sys", "while True:", "    print('x' * 1000000)"],
        "still running",
    ),
}


LEAVES = "leaves a process that waits for the next rank"  # looked at below, where nothing is left of it


@pytest.mark.parametrize(
    "what", [pytest.param(one, marks=[pytest.mark.slow] * (one == LEAVES)) for one in HOSTILE]
)
def test_no_way_round_the_referee_pays(what, monkeypatch):
    monkeypatch.setattr(
        host,
        "RANKS_LIMITS",
        replace(host.RANKS_LIMITS, wall_s=3.0 if what == "floods" else 8.0, cpu_s=1, memory_bytes=1 << 30),
    )
    body, came = HOSTILE[what]
    verdict = judged(cell(*body))
    if came is None:
        assert verdict.verdict == PASS, verdict
    else:
        assert verdict.verdict == FAIL and verdict.points == 0 and came in verdict.parts[0].came, verdict


BYTES = {  # values are right, and more crosses than may: the words of where to look
    "to everybody": (
        [
            "per, n = experts // comm.ranks, [len(x)] * comm.ranks",
            "receive = comm.exchange_counts(np.array(n))",
            "rows = comm.send_rows(np.tile(x, (comm.ranks, 1)), n, receive)",
            "ids = comm.send_rows(np.tile(topk_ids, (comm.ranks, 1)), n, receive)",
            "here = (ids // per == comm.rank).any(1)",
            "return rows[here], ids[here]",
        ],
        "every token goes to every rank",
    ),
    "views that look small": (
        [
            "n = [4] * comm.ranks",
            "comm.send_rows(np.broadcast_to(np.float32(0), (4 * comm.ranks, 64)), n, n)",
            "return honest(comm, x, topk_ids, experts)",
        ],
        "what of it the receiver does not need",
    ),
    "rows as counts": (
        [
            "comm.exchange_counts(np.zeros((comm.ranks, 200), int))",
            "return honest(comm, x, topk_ids, experts)",
        ],
        "What does a receiver need to know beyond how many rows come?",
    ),
}


@pytest.mark.parametrize("what", BYTES)
def test_bytes_are_those_that_crossed(what):
    body, look = BYTES[what]
    verdict = judged(cell(*body))
    values, sent, _ = verdict.parts
    assert values.state == PASS and sent.state == FAIL and look in sent.look, verdict
    assert "times what it may" in sent.came and "rank 0 of 4 sends" in sent.came


def test_a_rank_that_sleeps_is_its_own_failure(monkeypatch):
    monkeypatch.setattr(host, "RANKS_LIMITS", replace(host.RANKS_LIMITS, wall_s=1.0))
    verdict = judged(
        cell(
            "import time",
            "if comm.rank == 1:",
            "    time.sleep(9)",
            "return honest(comm, x, topk_ids, experts)",
        )
    )
    assert verdict.verdict == FAIL and "rank 1 of 4" in verdict.parts[0].came, verdict
    assert "what does it wait for?" in verdict.parts[0].came


def test_ranks_that_sleep_a_little_every_time_are_stopped(monkeypatch):
    monkeypatch.setattr(ranks_evidence, "MOST_ASLEEP_S", 1.0)
    monkeypatch.setattr(ranks_evidence, "HURRIED_S", 0.5)
    verdict = judged(cell("import time", "time.sleep(0.9)", "return honest(comm, x, topk_ids, experts)"))
    assert verdict.verdict == FAIL and "what does it wait for?" in verdict.parts[0].came, verdict


def test_a_machine_that_is_busy_all_along_fails_nobody(monkeypatch):
    monkeypatch.setattr(ranks_evidence, "MOST_ASLEEP_S", 0.0)
    monkeypatch.setattr(ranks_evidence, "HURRIED_S", 30.0)
    assert judged(RIGHT).verdict == PASS


@pytest.mark.slow
def test_a_loop_without_an_end_in_one_case_is_found_by_halves(monkeypatch):
    monkeypatch.setattr(host, "RANKS_LIMITS", replace(host.RANKS_LIMITS, cpu_s=1))
    asked, ask = [], host.turn_of
    monkeypatch.setattr(host, "turn_of", lambda *given: asked.append(len(given[3])) or ask(*given))
    body = ["while comm.ranks == 3:", "    pass", "return honest(comm, x, topk_ids, experts)"]
    kinds = ("a rank with nothing to do", "all tokens to one rank", "nobody has a token", LONGER)
    few = replace(DISPATCH, hidden=lambda rng: [one for one in DISPATCH.hidden(rng) if one.kind in kinds])
    verdict = judged(cell(*body), few)
    assert "a hidden case (nobody has a token)" in verdict.parts[0].came, verdict
    found = asked[asked.index(5) :]  # these four, and one that holds the cell's numbers
    assert found[:3] == [5, 2, 3] and found[3] < 3, asked


def test_what_is_carried_has_an_end():
    body = [
        "for _ in range(9):",
        "    comm.send_rows(np.zeros((1024, 1000), np.float32), *[[256] * comm.ranks] * 2)",
    ]
    verdict = judged(cell(*body), replace(DISPATCH, public=DISPATCH.public[:1]))
    came = verdict.parts[0].came
    assert verdict.verdict == FAIL and "in the 2nd exchange send_rows brings what all 4 ranks gave" in came, (
        verdict
    )
    assert (
        "to 32,768,000 bytes, where 16,777,216 are the most; the largest share is rank 0's, 8,192,000 bytes"
        in came
    )


def test_trouble_of_our_own_costs_nothing(monkeypatch):
    def broken(*_, **__):
        raise warm.JailTrouble("the box broke off")

    monkeypatch.setattr(host, "turn_of", broken)
    assert judged(RIGHT).verdict == INCONCLUSIVE


def test_a_hidden_case_that_alone_fails_is_told_by_its_kind_and_shown_anew():
    verdict = judged(
        cell("if comm.ranks == 2:", f"    return {NOTHING}", "return honest(comm, x, topk_ids, experts)")
    )
    lost = verdict.parts[0]
    assert lost.state == FAIL and lost.came.startswith("a hidden case (two ranks): values that differ"), (
        verdict
    )
    assert "drawn anew for you to see: rank 0 of 2" in lost.came


@pytest.mark.parametrize("key", ["topk_ids.shape", "comm.ranks == 1 or topk_ids.tobytes()"])
def test_what_the_first_call_leaves_in_the_module_serves_no_second_one(key):
    """Also if one rank alone keeps it."""
    body = [f"kept = SEEN.setdefault({key}, topk_ids.copy())", "return honest(comm, x, kept, experts)"]
    verdict = judged(cell(*body) + "\n\nSEEN = {}\n")
    lost = verdict.parts[0]
    assert lost.state == FAIL and f"a hidden case ({ranks_evidence.TWICE})" in lost.came, verdict
    assert lost.look == rank_values.KEPT


def test_a_second_call_has_other_weights_in_one_row_of_each_matrix():
    """A cache may look at a few numbers only, and copies of an expert stay alike on all ranks."""
    w = np.arange(24.0).reshape(2, 3, 4)
    (one, other) = (ranks_evidence.negated(w, 0.5) for _ in range(2))
    assert (one == other).all() and (one[:, 1] == -w[:, 1]).all()
    assert (one[:, [0, 2]] == w[:, [0, 2]]).all() and (ranks_evidence.negated(w) == -w).all()
    own = one_new.matrices([(w[:1],)])  # of the rank that keeps its own
    assert (ranks_evidence.negated(w, 0.5, own) == [w[0], one[1]]).all()


@pytest.mark.parametrize(
    "buffers, least, most", [(1, 0, 1 << 14), (8, 0, 1 << 14), (1, 0, 40), (3, 65, 1 << 14)]
)
def test_a_buffer_that_a_later_call_fills_anew_is_no_result_of_an_earlier_one(buffers, least, most):
    """Buffers may take turns, or be there for few rows or many alone."""
    body = [
        "rows, ids = honest(comm, x, topk_ids, experts)",
        f"if not {least} <= len(rows) <= {most}:",
        "    return rows, ids",
        "BUFFERS.append(BUFFERS.pop(0))",
        "kept = BUFFERS[0][: len(rows), : rows.shape[1]]",
        "kept[...] = rows",
        "return kept, ids",
    ]
    made = f"BUFFERS = [np.empty(({most}, 64), np.float32) for _ in range({buffers})]"
    verdict = judged(cell(*body) + f"\n\n{made}\n")
    lost = verdict.parts[0]
    assert lost.state == FAIL and f"a hidden case ({ranks_evidence.TWICE})" in lost.came, verdict
    assert lost.look == rank_values.OWN


def test_nothing_is_left_of_a_check():
    def mine():
        return {int(p) for p in os.listdir("/proc") if p.isdigit()} if os.path.isdir("/proc") else set()

    warm.stop_all()
    before = mine()
    assert judged(cell(*HOSTILE[LEAVES][0])).verdict == PASS
    warm.stop_all()
    until = time.monotonic() + 10
    while (named := [p for p in mine() - before if _is_ours(p)]) and time.monotonic() < until:
        time.sleep(0.1)
    assert named == []


def _is_ours(pid: int) -> bool:
    """A rank's process of this checkout, unless it hangs on a neighbour of this test, which may run boxes meanwhile."""
    try:
        with open(f"/proc/{pid}/cmdline") as file:
            ranks = f"{ROOT}\0grader.jail.inside.ranks_answer" in file.read()
        above = _above(pid)
    except OSError:
        return False
    return ranks and (os.getpid() in above or os.getppid() not in above)


def _above(pid: int) -> set[int]:
    found = set()
    while pid > 1:
        with open(f"/proc/{pid}/stat") as file:
            pid = int(file.read().rpartition(")")[2].split()[1])
        found.add(pid)
    return found


def test_a_run_shows_every_ranks_result_and_what_crossed():
    tried = trial.run(RIGHT, 0, DISPATCH.id)
    assert not tried.error and "rank 3, r0" in " ".join(tried.outputs)
    assert "exchange 2, send_rows: rank 0 sent" in repr(tried)
    wrong = trial.run(cell("print('here', comm.rank)", f"return {NOTHING}"), 1, DISPATCH.id)
    assert "rank 0 of 4" in wrong.error and "rank 3: here 3" in wrong.printed


# The routing itself, without a jail.


def rows(rank: int, send, receive, width: int = 3) -> Ask:
    return Ask(ROWS, np.full((sum(send), width), float(rank), np.float32), tuple(send), tuple(receive))


def test_rows_arrive_by_sender_and_own_ones_cross_nothing():
    replies, sent = exchange.route([rows(0, (1, 2), (1, 1)), rows(1, (1, 0), (2, 0))])
    assert [r[:, 0].tolist() for r in replies] == [[0, 1], [0, 0]]
    assert sent.tolist() == [[0, 24], [12, 0]]


def test_counts_arrive_by_sender():
    table = np.arange(8).reshape(2, 2, 2)
    replies, sent = exchange.route([Ask(COUNTS, table[0]), Ask(COUNTS, table[1])])
    assert np.array_equal(replies, table.swapaxes(0, 1)) and sent.tolist() == [[0, 16], [16, 0]]


def test_what_does_not_fit_together_is_said():
    with pytest.raises(Mismatch, match="rank 1 awaits 3 rows of rank 0, which sends it 2"):
        exchange.route([rows(0, (1, 2), (1, 0)), rows(1, (0, 0), (3, 0))])
    with pytest.raises(Mismatch, match="rank 1 gives send_rows float32 of shape"):
        exchange.route([rows(0, (1, 0), (1, 0)), rows(1, (0, 0), (0, 0), width=4)])


def test_the_kind_has_its_judges_and_its_evidence():
    assert parts.KINDS[type(DISPATCH)].evidence is RanksEvidence
    assert {part.judge for part in DISPATCH.parts} <= set(parts.JUDGES) and DISPATCH.parts[
        0
    ].judge in parts.OF_VALUES
    evidence = RanksEvidence(DISPATCH, RIGHT, 1)
    assert [rank_values.trouble(DISPATCH, one) for one in evidence.meetings(False)] == [None] * 3


def test_a_little_too_much_is_told_with_the_digits_that_show_it():
    assert [times_over(n) for n in (10_544 / 10_514, 2.0, 1.004, 1.00004)] == [
        "1.003",
        "2.00",
        "1.004",
        "1.00004",
    ]
