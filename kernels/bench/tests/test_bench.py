"""The benchmark's judgement and its files, on a machine without a GPU."""

import contextlib
import importlib
import inspect
import json
import math
import sys
import time
import types

import pytest
import torch

from kernels import timing
from kernels.bench import __main__ as command
from kernels.bench import energy, handed, machine, measure, record
from kernels.bench.row import Absent, Row


def row(**changes) -> Row:
    given = {
        "op": "double",
        "case": "8",
        "dtype": "bf16",
        "flops": 1e9,
        "bytes": 1e6,
        "inputs": lambda seed: torch.full((8,), float(seed + 1)),
        "ours": lambda x: lambda: 2 * x,
        "check": lambda x, out: float((out - 2 * x).abs().max()),
        "tolerance": 1e-6,
    }
    return Row(**(given | changes))


CEILINGS = {"copy": 1e12, "bf16": 1e15}


def fake_times(contenders, ours=1e-4, again=0.0):
    return {name: [ours * (1 + i) for _ in range(9)] for i, name in enumerate(contenders)}, {}, again


def test_a_wrong_kernel_gets_no_time(monkeypatch):
    monkeypatch.setattr(measure, "_times", lambda *_: pytest.fail("a wrong kernel must not be timed"))
    for wrong in (lambda x: lambda: 2.1 * x, lambda x: lambda: x * float("nan")):
        result = measure.measure(row(ours=wrong), None, CEILINGS, 0.1)
        assert "wrong" in result and "us" not in result


def test_a_kernel_that_turns_wrong_under_load_gets_no_time(monkeypatch):
    monkeypatch.setattr(measure, "_times", lambda r, contenders, *_: fake_times(contenders, again=0.5))
    result = measure.measure(row(), None, CEILINGS, 0.1)
    assert "after the timing" in result["wrong"] and "us" not in result


def test_peers_are_held_to_the_same_check(monkeypatch):
    def absent(x):
        raise Absent("not on this GPU")

    def missing(x):
        raise ImportError("No module named 'fast'")

    peers = {
        "right": lambda x: lambda: x + x,
        "wrong": lambda x: lambda: x,
        "absent": absent,
        "missing": missing,
        "broken": lambda x: lambda: x[99],
    }
    seen = []
    monkeypatch.setattr(measure, "_times", lambda r, c, *_: (seen.extend(c), fake_times(c))[1])
    result = measure.measure(row(peers=peers), None, CEILINGS, 0.1)
    assert seen == ["ours", "right"]
    said = result["peers"]
    assert said["right"]["ratio"] == pytest.approx(2) and said["right"]["interval"] == pytest.approx([2, 2])
    assert "wrong" in said["wrong"] and "failed" in said["broken"]
    assert said["absent"]["absent"] == "not on this GPU" and "fast" in said["missing"]["absent"]
    assert result["us"] == pytest.approx(100) and result["share"] == pytest.approx(1e-6 / 1e-4)
    assert "2.000x" in record.line(result) and "not on this GPU" in record.line(result)


def test_a_peer_that_no_graph_captures_costs_only_itself(monkeypatch):
    def capture(calls):
        if calls[0]() is None:
            raise RuntimeError("operation failed due to a previous error during capture\nmore")
        return "graph"

    def interleave(watches, seconds, **how):
        assert how == measure.STATES["sustained"]
        pairs.append(list(watches))
        return {name: [1e-4 * (i + 1)] * 9 for i, name in enumerate(watches)}

    for name, stand_in in {
        "capture": capture,
        "interleave": interleave,
        "stopwatch": lambda *_: None,
        "Flush": lambda _: True,
    }.items():
        monkeypatch.setattr(timing, name, stand_in)
    for name in ("synchronize", "current_stream"):
        monkeypatch.setattr(torch.cuda, name, lambda: None)
    monkeypatch.setattr(torch.cuda, "stream", lambda _: contextlib.nullcontext())
    once, pairs = [], []

    def fragile(x):
        once.append(x)
        return lambda: 2 * x if len(once) == 1 else None

    peers = {"fragile": fragile, "steady": lambda x: lambda: x + x}
    result = measure.measure(row(peers=peers), None, CEILINGS, 0.1)
    assert result["us"] == pytest.approx(100)
    assert result["peers"]["fragile"] == {
        "failed": "RuntimeError: operation failed due to a previous error during capture"
    }
    assert result["peers"]["steady"]["ratio"] == pytest.approx(2)
    assert pairs == [["ours", "steady"]], "two contenders need no second round"
    with pytest.raises(RuntimeError, match="capture"):
        once.clear()
        measure.measure(row(ours=fragile), None, CEILINGS, 0.1)


def test_a_peer_with_answers_of_its_own_has_a_check_of_its_own(monkeypatch):
    """Ours must be exact, the peer only near."""
    monkeypatch.setattr(measure, "_times", lambda r, contenders, *_: fake_times(contenders))
    loose = {"check_peer": lambda x, out: 0.0, "peers": {"near": lambda x: lambda: 2.1 * x}}
    assert "us" in measure.measure(row(**loose), None, CEILINGS, 0.1)["peers"]["near"]
    assert "wrong" in measure.measure(row(**loose, ours=loose["peers"]["near"]), None, CEILINGS, 0.1)


def test_a_record_says_how_the_gpu_stood_and_what_more_the_row_knows(monkeypatch):
    monkeypatch.setattr(measure, "_times", lambda r, contenders, *_: fake_times(contenders))
    result = measure.measure(row(facts={"lever": "tiles"}), None, CEILINGS, 0.1, "rested")
    assert result["state"] == "rested" and result["lever"] == "tiles"


def test_peers_that_no_row_met_are_listed_with_the_reason():
    rows = [
        {"peers": {"FA4": {"absent": "no module"}, "cuDNN": {"absent": "only square masks"}}},
        {"peers": {"FA4": {"absent": "no module"}, "cuDNN": {"error": 0.0, "us": 1.0}}},
        {"wrong": "no peers were tried"},
    ]
    assert record.absent(rows) == {"FA4": "no module"}


def test_limit_is_the_slower_ceiling():
    assert row(flops=1e9, bytes=1e6).limit_seconds(CEILINGS) == pytest.approx(1e-6)
    assert row(flops=1e12, bytes=1e6).limit_seconds(CEILINGS) == pytest.approx(1e-3)


def test_nonsense_rows_are_refused():
    with pytest.raises(ValueError, match="^mode must be one of cold, rotate, got 'warm'; "):
        row(mode="warm")
    with pytest.raises(ValueError, match="^bytes must be positive"):
        row(bytes=0)


def test_a_file_of_results_is_one_row_a_line_and_comes_back(tmp_path, monkeypatch, capsys):
    rows = [{"topic": t, "op": "x", "us": math.pi, "peers": {}} for t in ("alpha", "beta", "alpha")]
    run = {"machine": {"gpu": "NVIDIA H200"}, "date": "2026-01-02", "rows": rows}
    text = record.dumps(run)
    assert json.loads(text)["rows"][0]["us"] == 3.142
    assert sum('"op"' in line for line in text.splitlines()) == 3
    for slug in ("alpha", "beta"):
        (tmp_path / "kernels" / slug).mkdir(parents=True)
    monkeypatch.setattr(command, "KERNELS", tmp_path / "kernels")
    (tmp_path / "run.json").write_text(text)
    assert command.main(["--record", str(tmp_path / "run.json")]) == 0
    kept = json.loads((tmp_path / "kernels/alpha/results/h200.json").read_text())
    assert [r["topic"] for r in kept["rows"]] == ["alpha", "alpha"] and kept["date"] == "2026-01-02"


def test_a_whole_run_keeps_what_it_has_when_a_row_fails(tmp_path, monkeypatch, capsys):
    def broken(x):
        raise RuntimeError("out of resources")

    def absent(x):
        raise Absent("not installed")

    one, two = row(ours=broken, case="first"), row(case="second", peers={"FA4": absent})
    stand_in = types.ModuleType("kernels.alpha.bench")
    stand_in.rows = lambda device: [one, two]
    monkeypatch.setitem(sys.modules, "kernels.alpha.bench", stand_in)
    monkeypatch.setattr(command, "topics", lambda table="": ["alpha"])
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    for name, value in {
        "describe": {"gpu": "NVIDIA H200"},
        "ceilings": CEILINGS,
        "under_load": {"clock_mhz": 1455},
    }.items():
        monkeypatch.setattr(machine, name, lambda device, value=value: value)
    monkeypatch.setattr(measure, "_times", lambda r, contenders, *_: fake_times(contenders))
    assert command.main(["--json", str(tmp_path / "run.json")]) == 1, "a row failed"
    run = json.loads((tmp_path / "run.json").read_text())
    assert run["state"] == "sustained" and run["under_load"] == {"clock_mhz": 1455}
    assert "out of resources" in run["rows"][0]["failed"] and run["rows"][1]["us"] == pytest.approx(100)
    assert run["absent"] == {"FA4": "not installed"}
    shown = capsys.readouterr().out
    assert "absent: FA4 (not installed)" in shown and "rows sustained" in shown


def test_parts_meet_in_one_file_and_what_it_has_is_not_measured_again(tmp_path, monkeypatch, capsys):
    """Five rows in three parts; the last part comes on another day, and one row is measured anew."""
    stand_in = types.ModuleType("kernels.alpha.bench")
    stand_in.rows = lambda device: [row(case=str(i)) for i in range(5)]
    monkeypatch.setitem(sys.modules, "kernels.alpha.bench", stand_in)
    monkeypatch.setattr(command, "topics", lambda table="": ["alpha"])
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    here = {"gpu": "NVIDIA H200", "gpus": 1}
    for name, value in {"describe": here, "ceilings": CEILINGS, "under_load": {}}.items():
        monkeypatch.setattr(machine, name, lambda device, value=value: value)
    timed = []
    monkeypatch.setattr(
        measure, "_times", lambda r, contenders, *_: (timed.append(r.case), fake_times(contenders))[1]
    )
    path, days = str(tmp_path / "run.json"), iter(("2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04"))
    monkeypatch.setattr(machine, "today", lambda: next(days))
    for part, cases in (("1/3", ["0", "3"]), ("2/3", ["1", "4"]), ("1/2", ["2"])):
        timed.clear()
        assert command.main(["--json", path, "--part", part]) == 0 and timed == cases, part
    run = json.loads((tmp_path / "run.json").read_text())
    assert {r["case"]: r["date"][-1] for r in run["rows"]} == {
        "0": "1",
        "3": "1",
        "1": "2",
        "4": "2",
        "2": "3",
    }
    assert all(r["ceilings"] == CEILINGS and "torch" in r["versions"] for r in run["rows"])
    timed.clear()
    assert command.main(["--json", path, "--part", "3/5", "--again"]) == 0 and timed == ["2"]
    assert len(json.loads((tmp_path / "run.json").read_text())["rows"]) == 5
    here["gpus"] = 2
    monkeypatch.setattr(machine, "today", lambda: "2026-01-05")
    with pytest.raises(SystemExit, match="^--json must be a file of this machine"):
        command.main(["--json", path, "--part", "1/1"])


@pytest.mark.parametrize("part", ("0/3", "4/3", "2", "a/b", "-1/2"))
def test_a_part_that_is_none_is_refused(part, capsys):
    for given in ([f"--part={part}", "--json", "x"], ["--part", "1/2"]):
        with pytest.raises(SystemExit):
            command.main(given)
        assert "1/3 is the first third" in capsys.readouterr().err or given[-1] == "1/2"


def test_rows_with_a_peer_that_is_certainly_faster_are_named():
    rows = [
        {
            "op": "a",
            "case": "1",
            "peers": {"x": {"ratio": 0.9, "interval": [0.88, 0.97]}, "y": {"absent": ""}},
        },
        {"op": "a", "case": "2", "peers": {"x": {"ratio": 0.97, "interval": [0.95, 0.99]}}},
        {"op": "a", "case": "3", "peers": {"x": {"ratio": 1.2, "interval": [1.1, 1.3]}}},
        {"op": "a", "case": "4", "failed": "why"},
    ]
    assert record.behind(rows, {("a", "1"): ("it waits", "wait less")}) == [
        "behind: a 1, 0.900 of x",
        "    why: it waits",
        "    next: wait less",
    ]
    assert record.behind(rows[1:]) == []
    assert "not known" in record.behind(rows)[1]


def recorded_rows() -> dict:
    runs = command.kept_runs(command.topics())
    assert runs, "results/ must hold runs"
    return {(row["op"], row["case"]): row for run in runs for row in run["rows"]}


def test_a_recorded_row_behind_a_peer_says_why_and_what_may_help():
    rows, reasons = recorded_rows(), command.reasons()
    late = {at for at, row in rows.items() if record.is_behind(row)}
    assert late == reasons.keys(), "reasons.json must have the rows behind, and no other"
    for why, lever in reasons.values():
        assert len(why.split()) > 5 and len(lever.split()) > 3
    for reason in json.loads((command.KERNELS / "bench" / "reasons.json").read_text(encoding="utf-8")):
        assert set(reason) == {"op", "case", "why", "next"}


def test_the_table_has_a_line_for_each_row_with_the_best_peer_its_interval_and_its_date():
    rows = [
        {
            "op": "a",
            "case": "1",
            "us": 10.0,
            "share": 0.5,
            "joules": 0.002,
            "state": "sustained",
            "date": "2026-01-02",
            "peers": {
                "slow": {"ratio": 3.0, "interval": [2.9, 3.1]},
                "fast": {"ratio": 0.9, "interval": [0.88, 0.97]},
            },
        },
        {"op": "a", "case": "2", "us": 10.0, "share": 0.5, "peers": {"x": {"absent": "no"}}},
        {"op": "a", "case": "3", "failed": "out of room"},
    ]
    title, _, first, second, third = record.summary(rows, "a GPU", "2026-01-01")
    assert title.startswith("a GPU")
    for word in ("10.0", "2.00", "2026-01-02", "0.900", "0.880", "0.970", "fast", "sustained"):
        assert word in first
    assert "no peer" in second and "2026-01-01" in second and "out of room" in third


def test_kept_results_are_printed_without_a_gpu(capsys):
    assert command.main(["gemm_tiling", "--kept"]) == 0
    said = capsys.readouterr().out
    assert "NVIDIA H200, machine with 1 GPU;" in said and "4096 x 4096 x 4096 bf16 rows/columns" in said


def test_joules_are_read_between_two_ticks_of_the_counter():
    """A counter that moves every seventh look, by what the calls of that time cost."""
    meter = object.__new__(energy.Meter)
    calls, looks, shown = [], [], [0.0]

    def read():
        looks.append(1)
        if len(looks) % 7 == 0:
            shown[0] = 0.25 * len(calls)
        return shown[0]

    meter.seconds, meter.read = 0.02, read
    joules = meter.joules(lambda: calls.append(1), wait=lambda: time.sleep(0.001))
    assert joules == pytest.approx(0.25)


def test_a_record_has_joules_of_ours_and_of_the_fastest_peer(monkeypatch):
    monkeypatch.setattr(
        measure,
        "_times",
        lambda r, c, *_: (
            {n: [1e-4] * 9 for n in c},
            {"joules": {"ours": 0.5, "p": 0.25}, "alone": ("p", {"ours": [2e-4] * 9, "p": [1e-4] * 9})},
            0.0,
        ),
    )
    result = measure.measure(row(peers={"p": lambda x: lambda: x + x}), None, CEILINGS, 0.1)
    assert result["joules"] == 0.5 and result["peers"]["p"]["joules"] == 0.25
    assert record.verdict(result) == ("p", *[pytest.approx(0.5)] * 3), "the pair alone decides"
    assert record.is_behind(result) and result["peers"]["p"]["ratio"] == pytest.approx(1)


def test_a_topic_is_handed_another_ones_kernels_and_says_what_several_gpus_measure(monkeypatch):
    def given(device, *, fused):
        yield row(ours=fused)

    stand_ins = {slug: types.ModuleType(f"kernels.{slug}.bench") for slug in ("alpha", "beta")}
    stand_ins["alpha"].rows, stand_ins["beta"].rows = given, lambda device: [row()]
    stand_ins["alpha"].below = lambda gpus: f"alpha on {gpus} GPUs: another command" if gpus > 1 else ""
    for slug, module in stand_ins.items():
        monkeypatch.setitem(sys.modules, f"kernels.{slug}.bench", module)
    monkeypatch.setattr(command, "topics", lambda table="": list(stand_ins))
    monkeypatch.setattr(handed, "TOPICS", {"alpha": lambda: {"fused": "alpha's"}})
    options = command.parse(["alpha", "beta"])
    assert [(slug, r.ours == "alpha's") for slug, r in command.chosen(options, None)] == [
        ("alpha", True),
        ("beta", False),
    ]
    for gpus, said in ((1, []), (4, ["alpha on 4 GPUs: another command"])):
        monkeypatch.setattr(torch.cuda, "device_count", lambda gpus=gpus: gpus)
        assert command.below(options) == said


def test_what_is_handed_over_is_what_rows_ask_for():
    for slug in handed.TOPICS:
        rows = importlib.import_module(f"kernels.{slug}.bench").rows
        assert set(handed.handed_to(slug)) == set(inspect.signature(rows).parameters) - {"device"}


def test_names_of_machines():
    assert machine.short_name("NVIDIA H200") == "h200"
    assert machine.short_name("NVIDIA GeForce RTX 4090") == "rtx_4090"


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_without_a_gpu_it_says_so(capsys):
    assert command.main([]) == command.NO_GPU
    assert "nothing was measured" in capsys.readouterr().out


@pytest.mark.parametrize("wrong", (["no_such_topic"], ["sampling_fusion", "--ladder"]))
def test_an_unknown_topic_and_one_without_a_ladder_are_refused(wrong, capsys):
    with pytest.raises(SystemExit):
        command.main(wrong)
    assert "SLUG must be one of" in capsys.readouterr().err


def test_a_run_of_some_rows_replaces_those_and_dates_them(tmp_path, monkeypatch):
    def run_of(date, **us):
        rows = [
            {"topic": "alpha", "op": "x", "case": case, "us": one, "peers": {}} for case, one in us.items()
        ]
        head = {"machine": {"gpu": "NVIDIA H200"}, "date": date, "versions": {}, "ceilings": {}}
        return head | {"rows": rows}

    (tmp_path / "kernels/alpha").mkdir(parents=True)
    monkeypatch.setattr(command, "KERNELS", tmp_path / "kernels")
    for run in (run_of("2026-01-02", small=1, large=2), run_of("2026-02-03", large=3, huge=4)):
        (tmp_path / "run.json").write_text(record.dumps(run))
        assert command.main(["--record", str(tmp_path / "run.json")]) == 0
    kept = json.loads((tmp_path / "kernels/alpha/results/h200.json").read_text())
    found = {row["case"]: (row["us"], row.get("date", kept["date"])) for row in kept["rows"]}
    assert found == {"small": (1, "2026-01-02"), "large": (3, "2026-02-03"), "huge": (4, "2026-02-03")}


def test_a_ladder_is_recorded_apart_from_the_tuned_kernels(tmp_path, monkeypatch):
    assert "gemm_tiling" in command.topics("ladder")
    run = {"machine": {"gpu": "NVIDIA H200"}, "table": "ladder", "rows": [{"topic": "alpha", "op": "ladder"}]}
    (tmp_path / "kernels/alpha").mkdir(parents=True)
    monkeypatch.setattr(command, "KERNELS", tmp_path / "kernels")
    (tmp_path / "run.json").write_text(record.dumps(run))
    assert command.main(["--record", str(tmp_path / "run.json")]) == 0
    assert [p.name for p in (tmp_path / "kernels/alpha/results").iterdir()] == ["ladder"]
    assert (
        json.loads((tmp_path / "kernels/alpha/results/ladder/h200.json").read_text())["rows"] == run["rows"]
    )


@pytest.mark.parametrize("slug", command.topics())
def test_every_topic_offers_rows(slug):
    assert callable(importlib.import_module(f"kernels.{slug}.bench").rows)


@pytest.mark.gpu
def test_one_row_on_this_gpu():
    x = torch.arange(1 << 20, device="cuda", dtype=torch.float32)
    one = row(inputs=lambda seed: x + seed, bytes=8 << 20, peers={"add": lambda x: lambda: x + x})
    for mode in ("cold", "rotate"):
        result = measure.measure(Row(**(one.__dict__ | {"mode": mode})), x.device, CEILINGS, 0.05)
        assert 0.5 < result["us"] < 1000 and 0.2 < result["peers"]["add"]["ratio"] < 5
