"""The sweep over drawn shapes: what it draws, what it says, and what a recorded one holds."""

import json
from pathlib import Path

from kernels.bench.record import is_behind
from kernels.quantization_layouts import bench, calibrate, cases, sweep
from kernels.quantization_layouts.candidates import CANDIDATES

RECORDED = json.loads((Path(__file__).parents[1] / "results" / "drawn" / "h200.json").read_text())


def test_shapes_are_drawn_again_by_their_seed_and_libraries_can_take_them():
    found = sweep.drawn(200, 3)
    assert found == sweep.drawn(200, 3) != sweep.drawn(200, 4) and len(set(found)) == 200
    assert all(one.n % 64 == one.k % 128 == one.k % one.group == 0 for one in found)
    assert {one.group for one in found} == {32, 64, 128} and {one.m for one in found} == set(sweep.ROWS)
    assert {one.bits for one in found if one.kind == "book"} == {2, 3, 4, 5}
    assert all(sweep.LEAST - 128 < side < sweep.MOST + 128 for one in found for side in (one.n, one.k))


def test_a_line_says_who_is_ahead():
    row = {
        "case": "1 x 64",
        "us": 2.0,
        "kernel": "ours",
        "peers": {"fast": {"ratio": 0.9, "interval": [0.8, 0.95]}},
    }
    assert "0.900 of fast" in sweep.line(row) and sweep.line(row).endswith("BEHIND")
    row["peers"]["fast"]["interval"] = [0.8, 0.99]
    assert not sweep.line(row).endswith("BEHIND")
    assert "out of room" in sweep.line({"case": "1 x 64", "failed": "out of room"})


def test_the_recorded_shapes_are_those_of_their_seed_and_all_are_right():
    names = [one.name for one in sweep.drawn(200, RECORDED["seed"])]
    rows = RECORDED["rows"]
    assert [row["case"] for row in rows] == names[: len(rows)]
    assert all("us" in row and row["error"] <= row["tolerance"] for row in rows)
    assert {"Marlin", "Machete", "int4pack"} <= {
        n for row in rows for n, p in row["peers"].items() if "us" in p
    }
    late = [row for row in rows if is_behind(row)]
    assert len(rows) == 200 and len(late) == 2
    assert min(row["alone"]["ratio"] if "alone" in row else 1 for row in rows) > 0.9
    assert RECORDED["settled"] and sum(row["kernel"] != row["guess"] for row in rows) > 80, (
        "a guess is a guess"
    )


def test_no_candidate_asks_for_more_of_a_weight_than_its_registers_hold():
    """Which of these spill was seen in what they compile to for sm_90: up to 460 bytes a thread."""

    def holds(name, k, group, bits=4):
        case = cases.Case(1, 64, k, group=group) if bits == 4 else cases.book(1, 64, k, bits, group)
        return CANDIDATES[name].takes(bench.stand_in(case))

    four, eight = (
        f"MMA direct 16 rows, {n} x 256, 8 cols, whole, {r} registers, early" for n, r in ((4, 168), (8, 128))
    )
    assert holds(four, 7168, 128) and holds(four, 6912, 128) and holds(four, 5120, 64)
    assert not holds(four, 6912, 64)
    assert not any(
        holds(eight, k, group) for k, group in ((13312, 32), (13568, 64), (13312, 128), (8192, 32))
    )
    narrow = "MMA direct 16 rows, 8 x 128, 8 cols, whole, early"
    assert holds(narrow, 5120, 64, 5) and not holds(narrow, 8448, 64, 5)


def test_odd_shapes_can_be_calibrated_for_several_groups():
    todo = list(
        calibrate.plan(calibrate.parse("--forms int4 --shapes odd --group 32 128 --rows 1 4".split()))
    )
    assert {(one.n, one.k) for one in todo} == set(calibrate.ODD.values())
    assert {one.group for one in todo} == {32, 128} and len(todo) == 4 * len(calibrate.ODD)
