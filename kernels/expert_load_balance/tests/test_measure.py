"""The command that measures: a small run from end to end, its table and JSON, and what it says no to."""

import json

import pytest

from kernels.expert_load_balance import cases, measure
from kernels.expert_load_balance.ranks import RanksEnded


def test_a_quick_run_checks_measures_and_writes(tmp_path, capsys):
    path = tmp_path / "run.json"
    assert measure.main(["--ranks", "2", "--device", "cpu", "--quick", "--json", str(path)]) == 0
    run, said = json.loads(path.read_text()), capsys.readouterr().out
    assert run["same_bits"] == {"compared": 96, "differ": []} and "96 of 96 ways" in said
    assert run["command"] == "python -m kernels.expert_load_balance.measure --ranks 2 --device cpu --quick"
    assert run["versions"]["torch"] and run["machine"] and run["date"] and run["ranks"] == 2
    assert len(run["link"]) == len(measure.LINK_BYTES["cpu"]) and all(one["gb_s"] > 0 for one in run["link"])
    rows = {(r["skew"], r["placement"], r["parts"]): r for r in run["rows"]}
    assert len(rows) == len(run["rows"]) == len(cases.settings(2, "cpu", quick=True)) == 17
    for row in run["rows"]:
        assert row["error"] < 1e-5 and "wrong" not in row
        assert 0 < row["us"] and row["efficiency"] == pytest.approx(row["speedup"] / 2, rel=1e-3)
        if row["parts"] == "1":
            assert list(row["stages_us"]) == ["plan", "counts", "dispatch", "experts", "return", "combine"]
            assert min(row["stages_us"].values()) > 0 and row["link_share"] >= 0
    few, copied = rows["same few", "contiguous", "1"], rows["same few", "replicated", "1"]
    assert few["imbalance"] == 2 and copied["imbalance"] < 1.1
    assert rows["same few", "replicated, home first", "1"]["sent_mb"] < copied["sent_mb"]
    assert (
        "same few: " in said
        and "share of this time: greedy" in said
        and "share of this time: in parts, 2 of experts" in said
    )


def test_seconds_of_a_step_are_the_slowest_ranks_and_the_median_steps():
    assert measure.slowest([[1.0, 5.0, 2.0], [2.0, 1.0, 4.0]]) == 4.0


def test_the_busiest_link_is_that_of_who_sends_or_takes_most():
    results = [{"rows_to": [4, 1, 0], "row_bytes": 8}, {"rows_to": [6, 2, 2], "row_bytes": 8}]
    results.append({"rows_to": [5, 0, 1], "row_bytes": 8})
    found = measure.busiest(results)
    assert found == {"rows": [15, 3, 3], "over_link": 8 * 11}


def test_a_run_that_breaks_says_why_and_keeps_what_it_has(tmp_path, monkeypatch, capsys):
    def broken(ranks, options, run):
        run["rows"] = []
        raise RanksEnded("rank 1 was killed by SIGKILL in 'experts'")

    class Nobody:
        def __init__(self, *_):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

    monkeypatch.setattr(measure, "measure", broken)
    monkeypatch.setattr(measure, "Ranks", Nobody)
    path = tmp_path / "run.json"
    assert measure.main(["--ranks", "2", "--device", "cpu", "--json", str(path)]) == 1
    assert "the run ended because rank 1 was killed" in capsys.readouterr().err
    assert json.loads(path.read_text())["ended"].startswith("rank 1 was killed")


@pytest.mark.parametrize(
    "given, says",
    [
        ([], "--ranks"),
        (["--ranks", "0"], "must be at least 1"),
        (["--ranks", "9999", "--device", "cuda"], "must be at most the"),
        (["--ranks", "2", "--patience", "0"], "must be above 0"),
        (["--ranks", "2", "--json", "."], "must be a file"),
        (["--ranks", "two"], "invalid int"),
    ],
)
def test_nonsense_is_refused(given, says, capsys):
    with pytest.raises(SystemExit):
        measure.parse(given)
    assert says in capsys.readouterr().err
