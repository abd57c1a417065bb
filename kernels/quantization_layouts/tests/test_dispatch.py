"""The dispatcher: what a table says is done, what it does not say follows a rule, and no choice can lose to 16 bits."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from kernels.bench import machine
from kernels.compare import relative_error
from kernels.quantization_layouts import bench, calibrate, candidates, cases, dispatch, stream
from kernels.quantization_layouts.candidates import CANDIDATES, LIBRARY, SIXTEEN, Layer, layer, worth
from kernels.quantization_layouts.dispatch import Choice, choose, linear, near
from kernels.tests.properties import given, st
from kernels.timing import ratio

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
NAMES = tuple(CANDIDATES)
RING = "MMA ring"
FAST, TILED = (next(name for name in NAMES if name.startswith(start)) for start in ("MMA 16", "MMA tile"))


def drawn(case):
    x = bench.draw(case, 0, DEVICE)
    return x, layer(x["packed"], keep_dense=True)


def choice(m, best, best_packed=FAST, n=64, k=128, experts=1, form="k4"):
    return Choice(n, k, experts, form, m, best, best_packed)


TABLE = (
    choice(1, FAST),
    choice(8, TILED),
    choice(64, SIXTEEN, LIBRARY),
    choice(1, SIXTEEN, n=4096, k=4096),
    choice(1, TILED, experts=8),
    choice(4, LIBRARY, form="int4"),
)


@pytest.mark.parametrize(
    ("rows", "best"), [(1, FAST), (2, TILED), (8, TILED), (9, SIXTEEN), (64, SIXTEEN), (4000, SIXTEEN)]
)
def test_between_two_measured_m_the_larger_one_answers(rows, best):
    _, one = drawn(cases.book(1, 64, 128, 4))
    assert choose(one, rows, TABLE) == best
    one.dense = None
    assert choose(one, rows, TABLE) == {SIXTEEN: LIBRARY if rows > 8 else FAST}.get(best, FAST)


def nearest(choices, case):
    return next(iter(near(choices, bench.stand_in(case), 1)), None)


def test_the_shape_most_alike_answers_and_never_another_form():
    assert nearest(TABLE, cases.book(1, 8192, 4096, 4)).n == 4096
    assert nearest(TABLE, cases.book(1, 64, 128, 4, experts=4)).experts == 8
    assert nearest(TABLE, cases.book(1, 64, 128, 4, experts=2)).experts == 8
    assert nearest(TABLE, cases.book(1, 512, 128, 4)).experts == 1, "as many outputs in one"
    assert nearest(TABLE, cases.Case(1, 64, 128)).form == "int4"
    assert nearest(TABLE, cases.book(1, 64, 128, 5)) is None
    zero = cases.Case(1, 64, 128, zero_points=True)
    assert nearest(TABLE, zero).form == "int4", "until they are measured"
    assert nearest((*TABLE, choice(1, FAST, form="zero")), zero).form == "zero"


def test_a_shape_that_was_not_measured_so_far_up_does_not_answer_for_many_rows():
    few = choice(16, FAST, n=512)
    assert nearest((few, *TABLE), cases.book(1, 512, 128, 4)) is few
    assert [c.n for c in near((few, *TABLE), bench.stand_in(cases.book(1, 512, 128, 4)), 64)] == [64]
    assert [c.m for c in near((few, *TABLE), bench.stand_in(cases.book(1, 512, 128, 4)), 900)] == [64]


def measured(n, k, us, group=32):
    best = min(us, key=us.get)
    return Choice(n, k, 1, "k4", 8, best, min(us.keys() - {SIXTEEN}, key=us.get), group, us)


SHORT, LONG = (
    "MMA 16 rows, 4 x 256, 8 cols, 3 stages",
    "MMA 16 rows, 4 x 512, 8 cols",
)  # steps of 1024 and 2048


def test_a_step_that_k_does_not_fill_costs_what_it_wastes():
    near_by = (measured(4096, 4096, {SHORT: 10.4, LONG: 10.0, SIXTEEN: 14.0}),)
    _, one = drawn(cases.book(1, 64, 128, 4))
    for k, best in ((4096, LONG), (8192, LONG), (5120, SHORT)):  # two steps of 2048 and a half
        one.packed = bench.stand_in(cases.book(8, 4096, k, 4))
        assert choose(one, 8, near_by) == best, k


def test_a_group_that_was_not_measured_asks_its_neighbours_and_16_bits_need_not_be_far_ahead():
    _, one = drawn(cases.book(1, 64, 128, 4))
    table = (
        measured(4096, 4096, {SHORT: 10.0, LONG: 12.0, SIXTEEN: 14.0}),
        measured(4096, 4096, {SHORT: 12.0, LONG: 10.0, SIXTEEN: 10.5}, group=128),
    )
    for group, dense, best in ((32, True, SHORT), (128, True, LONG), (128, False, LONG)):
        one.packed = bench.stand_in(cases.book(8, 4096, 4096, 4, group=group))
        one.dense = one.packed.scales if dense else None
        assert choose(one, 8, table) == best
    one.packed, one.dense = bench.stand_in(cases.book(8, 4096, 8192, 4, group=128)), one.packed.scales
    assert choose(one, 8, table[1:]) == SIXTEEN, "5% are not enough where nobody measured"
    one.dense = None
    assert choose(one, 8, table[1:]) == LONG


def left_out(form: str, odd: bool) -> tuple[list[float], list[float]]:
    """Of each measured row, its own shape left out: time of what is taken over the best one's, and over 16 bits'.
    Odd shapes are far from the others, and not all are wanted."""
    over_best, over_sixteen, table = [], [], dispatch.table("h200")
    for row in table:
        if row.form != form or row.m > 64 or ((row.n, row.k) in calibrate.ODD.values()) > odd:
            continue
        case = cases.Case(row.m, row.n, row.k, group=row.group, experts=row.experts)
        w = bench.stand_in(case)
        others = tuple(c for c in table if (c.n, c.k, c.experts) != (row.n, row.k, row.experts))
        us = {name: t for name, t in row.us.items() if name in candidates.CANDIDATES}
        taken = us.get(choose(Layer(w, dense=w.scales), row.m, others))
        if taken is not None:
            over_best.append(taken / min(us.values()))
            over_sixteen.append(taken / us[SIXTEEN])
    return over_best, over_sixteen


def test_what_the_neighbours_say_of_a_measured_shape(monkeypatch):
    """Rings count as able, as on the Hopper that was calibrated."""
    for one in candidates.CANDIDATES.values():
        if one.name.startswith(RING):
            monkeypatch.setitem(candidates.CANDIDATES, one.name, replace(one, takes=lambda w: w.bits == 4))
    over_best, over_sixteen = left_out("int4", odd=False)
    assert len(over_best) > 180 and np.mean(over_best) < 1.04
    assert sum(one > 1.02 for one in over_sixteen) <= 2
    over_best, over_sixteen = left_out("int4", odd=True)
    assert len(over_best) > 270 and np.mean(over_best) < 1.06
    assert sum(one > 1.02 for one in over_sixteen) <= 2


@pytest.mark.parametrize(
    ("rows", "dense", "run"),
    [
        (1, True, "stream"),
        (16, True, "stream"),
        (17, True, "tile"),
        (128, True, "tile"),
        (129, True, SIXTEEN),
        (129, False, LIBRARY),
    ],
)
def test_without_a_table_there_is_a_rule(rows, dense, run):
    x, one = drawn(cases.book(1, 64, 128, 2))
    one.dense = one.dense if dense else None
    assert choose(one, rows) == run


@pytest.mark.parametrize(
    ("shape", "rows", "run"),
    [
        ((28672, 8192), 2, "stream"),
        ((28672, 8192), 3, "ring"),
        ((8192, 8192), 3, "ring"),
        ((8192, 8064), 3, "stream"),
        ((4096, 4096), 16, "stream"),
        ((4096, 4096), 17, "ring"),
        ((4096, 4096), 128, "ring"),
        ((28672, 8192), 129, LIBRARY),
    ],
)
def test_on_a_hopper_gpu_the_rule_knows_the_ring(shape, rows, run, monkeypatch):
    monkeypatch.setattr(dispatch, "takes", lambda w: w.kind == "int4")
    one = candidates.Layer(bench.stand_in(cases.Case(1, *shape)))
    assert choose(one, rows) == run
    one.packed = bench.stand_in(cases.book(1, *shape, 4))
    assert choose(one, rows) != "ring", "nobody measured it on codebooks of this size"


@pytest.mark.parametrize("name", NAMES)
def test_every_candidate_is_right(name):
    case = cases.book(2, 48, 256, 4) if not name.startswith(RING) else cases.Case(2, 48, 256)
    x, one = drawn(case)
    if not CANDIDATES[name].takes(one.packed):
        pytest.skip("it wants a Hopper GPU")
    assert bench.check(x, CANDIDATES[name].call(x["x"], one, None)) < 1e-3


@pytest.mark.parametrize("m", (1, 5, 33))
def test_linear_follows_the_table(m, monkeypatch):
    case = cases.Case(m, 48, 128)
    x, one = drawn(case)
    ran = []
    for name, it in CANDIDATES.items():
        call = lambda x, layer, out, it=it: ran.append(it.name) or it.call(x, layer, out)  # noqa: E731
        monkeypatch.setitem(CANDIDATES, name, candidates.Candidate(name, it.family, call))
    table = tuple(choice(rows, best, form="int4") for rows, best in ((1, FAST), (16, TILED), (64, SIXTEEN)))
    assert bench.check(x, linear(x["x"], one, choices=table)) < 1e-3
    assert ran == [{1: FAST, 5: TILED, 33: SIXTEEN}[m]]


def test_ragged_rows_never_go_to_the_library():
    case = cases.Case(2, 40, 64, group=64, experts=3)
    x, one = drawn(case)
    offsets = torch.tensor([0, 2, 4, 6], dtype=torch.int32, device=DEVICE)
    table = (choice(512, SIXTEEN, LIBRARY, experts=3, form="int4"),)
    ring = next(name for name in NAMES if name.startswith(RING))
    for choices in (table, *((choice(8, one, experts=3, form="int4"),) for one in (TILED, ring)), ()):
        assert bench.check(x, linear(x["x"], one, offsets=offsets, choices=choices)) < 1e-3


@pytest.mark.parametrize(("rows", "run"), [(16, "stream"), (17, "tile")])
def test_ragged_rows_that_no_table_knows_go_by_the_most_of_an_expert(rows, run, monkeypatch):
    x, one = drawn(cases.Case(rows, 40, 64, group=64))
    ran = []
    for name in ("stream", "tile"):
        monkeypatch.setattr(dispatch, name, lambda *_, name=name: ran.append(name))
    linear(x["x"], one, offsets=torch.tensor([0, rows], dtype=torch.int32, device=DEVICE), choices=())
    assert ran == [run]


def test_sixteen_bits_is_a_candidate_at_every_m_and_so_is_a_packed_kernel():
    for m in (*calibrate.ROWS[4], 3, 100, 5000):
        names = [one.name for one in worth(m)]
        assert SIXTEEN in names and len(names) > 1, m
    for w in (bench.stand_in(cases.Case(1, 64, 128)), bench.stand_in(cases.book(1, 64, 128, 4))):
        assert not any(one.name.startswith(RING) for one in worth(16, w)), "no Hopper GPU holds this one"
    assert {one.family for one in CANDIDATES.values()} == {"scalar GEMV", "MMA", LIBRARY, SIXTEEN}


@given(
    us=st.lists(st.floats(1, 50), min_size=3, max_size=3),
    sixteen=st.floats(1, 50),
    noise=st.floats(0, 0.3),
    seed=st.integers(0, 99),
)
def test_what_calibration_decides_never_loses(us, sixteen, noise, seed):
    rng = np.random.default_rng(seed)
    means = dict(zip((FAST, TILED, LIBRARY), us, strict=True)) | {SIXTEEN: sixteen}
    times = {name: list(1e-6 * mean * np.exp(noise * rng.standard_normal(9))) for name, mean in means.items()}
    intervals = {name: ratio(series, times[SIXTEEN]) for name, series in times.items()}
    row = calibrate.decide(times, intervals)
    assert row["best_packed"] != SIXTEEN
    if row["best"] != SIXTEEN:
        assert intervals[row["best"]][2] < 1 and row["us"][row["best"]] == min(
            row["us"][name] for name in means if intervals[name][2] < 1
        )
    else:
        assert all(intervals[name][2] >= 1 for name in (FAST, TILED, LIBRARY))


@pytest.mark.parametrize(
    "form", (cases.Case, *((2, 3, 4, 5))), ids=lambda f: f"k{f}" if isinstance(f, int) else "int4"
)
def test_no_candidate_and_no_pick_asks_for_more_shared_memory_than_there_is(form, monkeypatch):
    """On GPUs of 227, 163 and 99 kB."""
    for limit in (227, 163, 99):
        monkeypatch.setattr(stream, "shared_limit", lambda device, limit=limit: limit * 1024)
        for n, k in ((28672, 8192), (512, 2048), (2048, 512)):
            case = form(1, n, k) if form is cases.Case else cases.book(1, n, k, form)
            w = bench.stand_in(case)
            configs = [one.config for one in CANDIDATES.values() if isinstance(one.config, stream.Stream)]
            for config in (
                *configs,
                stream.pick(w, 1),
                stream.pick(w, 16),
                stream.Stream(4, 8, 128, cols=16, stages=4),
            ):
                fits = stream.fitting(config, w)
                assert fits.stages == 1 or stream.shared_bytes(fits, w) <= limit * 1024, (config, limit)


def test_a_table_that_names_what_is_not_here_is_refused():
    row = {"n": 1, "k": 1, "experts": 1, "form": "k4", "m": 1, "best": "magic", "best_packed": FAST}
    with pytest.raises(ValueError, match="^best must be one of .*, got 'magic'; "):
        dispatch.rows_of({"rows": [row]})


def test_every_table_of_the_repository_can_be_read():
    for path in dispatch.TABLES.glob("*.json"):
        run = json.loads(path.read_text())
        read = dispatch.table(machine.short_name(run["machine"]["gpu"]))
        assert set(dispatch.rows_of(run)) <= set(read) and len(set(read)) == len(read), path.name
        assert run["dtype"] in ("fp16", "bf16")


def test_a_short_calibration_is_a_part_of_the_whole_one():
    whole = [calibrate.key(c) for c in calibrate.plan(calibrate.parse([]))]
    quick = [calibrate.key(c) for c in calibrate.plan(calibrate.parse(["--quick"]))]
    assert len(quick) == 45 and all(one in whole for one in quick)
    served = len(calibrate.COMMON) * len(calibrate.ROWS["int4"])
    assert len(whole) == 9 * sum(map(len, calibrate.ROWS.values())) + served == len({str(k) for k in whole})
    some = calibrate.plan(calibrate.parse(["--forms", "int4", "3"]))
    assert {calibrate.key(case)["form"] for case in some} == {"int4", "k3"}


def test_a_short_run_keeps_to_some_rows_of_x_and_to_launches_that_overlap():
    todo = list(calibrate.plan(calibrate.parse(["--forms", "4", "2", "--shapes", "Q", "--rows", "1", "2"])))
    assert [(case.bits, case.m) for case in todo] == [(4, 1), (4, 2), (2, 1)]
    short = {m: worth(m, None, overlapping=True) for m in calibrate.ROWS[4]}
    for m, few in short.items():
        plain = {one.name for one in few if not one.early}
        assert SIXTEEN in plain <= set(candidates.PLAIN) and set(few) < set(worth(m)), m
    assert all(any(one.early for one in few) for m, few in short.items() if m <= 64)


def test_measured_again_is_what_is_asked_for_and_nothing_else():
    todo = list(calibrate.plan(calibrate.parse(["--forms", "int4", "--shapes", "big", "Q"])))
    rows = [calibrate.key(case) | {"best": FAST} for case in calibrate.plan(calibrate.parse([]))]
    kept = calibrate.others(rows, todo)
    assert len(kept) == len(rows) - len(todo) and len(todo) == 2 * len(calibrate.ROWS["int4"])
    assert not [
        row
        for row in kept
        if row["form"] == "int4" and row["n"] in (28672, 4096) and row["k"] in (8192, 2048)
    ]


def test_what_is_timed_was_compiled_once_by_somebody():
    todo = list(calibrate.plan(calibrate.parse([])))
    shares = calibrate.shares(todo)
    assert len(shares) == calibrate.PARTS * len(calibrate.FORMS) and sum(
        len(c) for c, *_ in shares
    ) == calibrate.PARTS * len(todo)
    for m in calibrate.ROWS[4]:
        parts = [one.name for part in range(calibrate.PARTS) for one in calibrate.of_share(m, part)]
        assert sorted(parts) == sorted(one.name for one in worth(m))


def test_without_a_gpu_it_says_so(capsys):
    if DEVICE.type == "cuda":
        pytest.skip("there is one")
    assert calibrate.main(["--quick"]) == calibrate.NO_GPU
    assert "no NVIDIA GPU" in capsys.readouterr().out


@pytest.mark.gpu
@pytest.mark.parametrize("m", (1, 16, 64))
def test_a_measured_row_names_its_fastest(m):
    row = calibrate.measure(cases.book(m, 2048, 2048, 4), DEVICE, 0.01)
    assert not row.get("wrong") and row["best"] in row["us"]
    assert dispatch.rows_of({"rows": [row]})[0].m == m


@pytest.mark.gpu
@pytest.mark.parametrize("name", (None, "dispatch", FAST))
@pytest.mark.parametrize(
    "case", (cases.book(64, 512, 2048, 4, experts=8), cases.Case(24, 1024, 2048)), ids=lambda c: c.name
)
def test_a_captured_layer_answers_each_new_input(case, name):
    from kernels.quantization_layouts.graphs import capture

    x, one = drawn(case)
    replay = capture(one, case.m, name)
    first = replay(x["x"]).clone()
    assert bench.check(x, first) < 1e-3
    assert relative_error(replay(2 * x["x"]).cpu(), 2 * first.cpu()) < 1e-3
    assert relative_error(replay(x["x"]).cpu(), first.cpu()) == 0


def test_a_gpu_with_an_h200s_multiprocessors_chooses_by_its_table(monkeypatch):
    names = {0: "NVIDIA H200", 1: "NVIDIA H100 80GB HBM3", 2: "NVIDIA A100-SXM4-80GB"}
    monkeypatch.setattr(torch.cuda, "get_device_name", names.get)
    h200, h100, a100 = (dispatch.table_of_device.__wrapped__(i) for i in names)
    assert h200 and h100 == h200 and a100 == ()
