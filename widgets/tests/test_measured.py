"""Measurements are drawn by the rules of every scene, and what is not there is said in a sentence."""

import json
from dataclasses import replace

import pytest

from grader.questions.model import COUNTS
from widgets import measured
from widgets.scene import NARROW
from widgets.tests import rules

RESULTS = sorted(p for p in measured.KERNELS.glob("*/results/*.json") if "ceilings" in p.read_text())


def row(case, dtype, us, share, tb_s, tflop_s, **peers):
    peers = {name: {"us": theirs, "ratio": theirs / us, "interval": [1, 1]} for name, theirs in peers.items()}
    peers["DeepGEMM"] = {"absent": "not installed"}
    return {
        "op": "block_scaled_gemm",
        "case": case,
        "dtype": dtype,
        "us": us,
        "limit_us": us * share,
        "share": share,
        "tb_s": tb_s,
        "tflop_s": tflop_s,
        "peers": peers,
    }


RUN = {
    "machine": {"gpu": "NVIDIA H200"},
    "date": "2026-11-20",
    "ceilings": {"copy": 4.27e12, "bf16": 7.9e14, "fp8": 1.58e15},
    "rows": [
        row("1 x 28672 x 8192 bf16 rows/columns", "bf16", 119.0, 0.924, 3.95, 3.95, cuBLAS=126.0),
        row(
            "4096 x 4096 x 4096 bf16 rows/rows", "bf16", 180.0, 0.967, 0.56, 763.0, cuBLAS=176.0, quack=174.0
        ),
        row("4096 x 4096 x 4096 bf16 rows/columns", "bf16", 178.0, 0.978, 0.565, 772.0, cuBLAS=176.0),
        row("8192 x 8192 x 8192 fp8 rows/columns", "fp8", 800.0, 0.87, 0.33, 1374.0),
        {"op": "gemm", "case": "odd", "failed": "OutOfMemoryError"},
    ],
}
COUNTED = {
    "launches": [
        {
            "flops": 2**29,
            "tensors": {
                "a": {"load": {"requested": 2**21, "wave": 2**19, "unique": 2**17}},
                "b": {"load": {"requested": 2**22, "wave": 2**19, "unique": 2**19}},
                "c": {"store": {"requested": 2**23, "wave": 2**23, "unique": 2**23}},
            },
        }
    ],
    "work": {"useful_flops": 2**29, "dot_flops": 2**30, "bytes": 2**23},
    "budgets": [
        {"what": "read of A", "count": "dedup", "least": 2**17, "spent": 2**21, "most": 2**24},
        {"what": "unique bytes per wave, all waves", "count": "wave", "spent": 2**21, "most": 2**20},
    ],
}
TIMED = {
    "seconds": 1.95e-4,
    "bar_seconds": 1.76e-4,
    "bar": "matmul",
    "ratio": 1.108,
    "low": 1.105,
    "high": 1.112,
    "gpu": "NVIDIA H200",
    "flops": 2 * 4096**3,
    "bytes": 6 * 4096**2,
}


def record(*facts):
    return {"parts": [{"facts": {}}, *({"facts": one} for one in facts)]}


def drawn_well(plot, data) -> list[str]:
    assert "<svg" in plot._repr_html_() and "<table>" in plot._repr_html_()
    derived = [
        sum(t["load"][k] for t in COUNTED["launches"][0]["tensors"].values() if "load" in t)
        for k in ("requested", "wave", "unique")
    ]
    derived += [TIMED["flops"] / TIMED["seconds"], TIMED["flops"] / TIMED["bar_seconds"]]
    derived += [989e12, TIMED["flops"] / 989e12, *range(10)]
    return rules.problems(plot.scene, {*rules.numbers(data), *map(float, derived)})


OPERATIONS = {"float": 0, "int": 2**30, "special": 0, "convert": 2**28, "address": 2**34}


def test_what_takes_longest_is_named():
    """Whole numbers and conversions may take longer than bytes do; addresses don't."""
    row = {"requested": 2**22, "wave": 2**22, "unique": 2**22, "dedup": 2**22, "sectors": 2**22}
    launch = {"flops": 0, "dots": {}, "tensors": {"w": {"load": row}}, "operations": OPERATIONS}
    slow = measured.beside_bound(record({**COUNTED, "launches": [launch]}))
    assert "arithmetic outside tl.dot would be the limit" in repr(slow)
    quick = {**launch, "operations": {**OPERATIONS, "int": 0, "convert": 0}}
    assert "arithmetic" not in repr(measured.beside_bound(record({**COUNTED, "launches": [quick]})))


def test_counted_bytes_stand_under_the_roof_with_every_budget():
    plot = measured.beside_bound(record(COUNTED))
    assert drawn_well(plot, COUNTED) == []
    assert "Your tile alone gives 85.3, your waves give 512." in repr(plot)
    over = {mark["id"]: mark["role"] for mark in plot.scene.marks}
    assert over["budget0"] == "measured" and over["budget1"] == "hot"


def test_what_is_no_budget_of_bytes_with_an_upper_end_is_not_drawn():
    programs = {"what": "programs", "count": "programs", "least": 132, "spent": 256}
    flops = {"what": "FLOP in tl.dot", "count": "dot", "spent": 2**29, "most": 2**30}
    wide = {"what": "FLOP in tl.dot of 32 bits", "count": "wide dot", "spent": 0, "most": 0.0}
    whole = {"what": "operations on whole numbers", "count": "integers", "spent": 2**23, "most": 2**24}
    open_end = {"what": "read of B", "count": "dedup", "least": 2**17, "spent": 2**20}
    rows = [*COUNTED["budgets"], programs, flops, wide, whole, open_end]
    plot = measured.beside_bound(record({**COUNTED, "budgets": rows}))
    assert drawn_well(plot, COUNTED) == [] and len(plot.scene.table.rows) == 2


def test_what_counts_as_bytes_is_what_the_grader_says_is_bytes():
    assert set(measured.BYTES) == {name for name, words in COUNTS.items() if words.startswith("bytes")}


def test_a_kernel_without_matrix_products_has_budgets_and_no_roof():
    plot = measured.beside_bound(record({**COUNTED, "work": {**COUNTED["work"], "useful_flops": 0}}))
    assert not any(mark["id"].startswith("roof") for mark in plot.scene.marks)
    assert drawn_well(plot, COUNTED) == []


def test_a_timed_kernel_stands_beside_its_bar_and_the_limit():
    plot = measured.beside_bound(record(COUNTED, TIMED))
    assert drawn_well(plot, TIMED) == []
    assert "1.108× the time of matmul (99% interval 1.105 to 1.112)" in repr(plot)
    assert [row[0] for row in plot.scene.table.rows] == ["yours", "matmul", "H200's limit"]


def test_an_unknown_gpu_is_compared_with_the_bar_alone():
    plot = measured.beside_bound(record({**TIMED, "gpu": "NVIDIA RTX 9999"}))
    assert drawn_well(plot, TIMED) == [] and len(plot.scene.table.rows) == 2


@pytest.mark.parametrize("nothing", [None, {"parts": []}, record()])
def test_no_measurement_is_a_sentence(nothing):
    plot = measured.beside_bound(nothing)
    assert plot._repr_html_() == f"<p>{plot!r}</p>" and "a check whose values are right" in repr(plot)


def test_a_recorded_run_shows_ours_and_the_best_peer(tmp_path, monkeypatch):
    monkeypatch.setattr(measured, "KERNELS", tmp_path)
    assert "No measurement of these kernels on h200" in repr(measured.recorded("gemm_tiling"))
    (tmp_path / "gemm_tiling/results").mkdir(parents=True)
    (tmp_path / "gemm_tiling/results/h200.json").write_text(json.dumps(RUN))
    plot = measured.recorded("gemm_tiling")
    assert drawn_well(plot, RUN) == []
    assert plot.title == "NVIDIA H200, 2026-11-20"
    assert [row[6] for row in plot.scene.table.rows] == ["cuBLAS", "quack", "cuBLAS", "none"]


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: f"{path.parts[-3]}-{path.stem}")
def test_every_recorded_file_can_be_drawn(path):
    plot = measured.recorded(path.parts[-3], path.stem)
    data = json.loads(path.read_text())
    assert drawn_well(plot, data) == []
    on_a_phone = replace(plot, scene=plot.narrow)
    assert drawn_well(on_a_phone, data) == [] and plot.narrow.width == NARROW


def test_in_a_crowd_only_the_nearest_and_the_farthest_are_named():
    path = measured.KERNELS / "flash_attention/results/h200.json"
    plot, rows = measured.recorded("flash_attention"), json.loads(path.read_text())["rows"]
    labels = [
        mark["s"] for mark in plot.scene.marks if mark["id"].startswith("label") and mark["t"] == "text"
    ]
    shares = [row["share"] for row in rows if "us" in row]
    wanted = {f"row {shares.index(s) + 1}: {100 * s:.0f}% of its limit" for s in (min(shares), max(shares))}
    assert set(labels) == wanted


def test_kernels_without_arithmetic_have_bars_and_no_roof():
    plot = measured.recorded("sampling_fusion")
    kinds = {mark["id"].rstrip("0123456789") for mark in plot.scene.marks}
    assert "bar" in kinds and not any(kind.startswith(("roof", "point", "rate")) for kind in kinds)


def test_shares_above_the_limit_are_drawn_as_long_as_they_are():
    """A measured limit can be passed: the ladder's best rungs and cuBLAS beside them do."""
    rows = json.loads((measured.KERNELS / "gemm_tiling/results/ladder/h200.json").read_text())["rows"]
    marks = {mark["id"]: mark for mark in measured.recorded("gemm_tiling", "ladder/h200").scene.marks}
    for mine, theirs in ((9, 9), (9, 4)):  # the fastest rung, and cuBLAS at its fastest
        bar, peer = marks[f"bar{mine}"], marks[f"peer{theirs}"]
        share = rows[theirs]["limit_us"] / rows[theirs]["peers"]["cuBLAS"]["us"]
        drawn = (peer["x"] - bar["x"]) / bar["w"]
        assert drawn == pytest.approx(share / rows[mine]["share"], rel=0.01)
