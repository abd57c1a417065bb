"""A measurement that is interrupted keeps what it has, and the next one adds to it."""

import json
import random
from pathlib import Path
from types import SimpleNamespace

import pytest

from grader.bench import gpu
from grader.tools import false_fail

REPLY = SimpleNamespace(gpu="NVIDIA H200", torch="2.11", triton="3.6")


def quads(ratio=1.0, seed=0):
    rng = random.Random(seed)
    return [[ratio * rng.uniform(0.999, 1.001), ratio, 1.0, 1.0] for _ in range(40)]


@pytest.fixture
def run(monkeypatch, tmp_path, capsys):
    """run(trials, ratio) measures with a bench that answers at once, and stops it after `stop` trials."""
    monkeypatch.setattr(gpu, "name", lambda: "NVIDIA H200")
    monkeypatch.setattr(false_fail, "SAVE_S", 0.0)
    path = tmp_path / "results.json"

    def measure(trials, ratio=1.0, stop=None, *more):
        def series(question, source, count, load, say):
            for number in range(count):
                if number == stop:
                    raise KeyboardInterrupt
                yield REPLY, quads(ratio, number)

        monkeypatch.setattr(false_fail, "series", series)
        code = false_fail.main(["--trials", str(trials), "--json", str(path), *more])
        return code, json.loads(Path(path).read_text()), capsys.readouterr().out

    return measure


def test_an_interrupted_series_keeps_what_it_has_and_the_next_one_adds_to_it(run):
    code, rows, said = run(50, stop=7)
    assert code == 0 and rows[0]["trials"] == 7 and "0 of 7 trials" in said
    _, rows, said = run(13)
    assert len(rows) == 1 and rows[0]["trials"] == rows[0]["usable"] == 20
    assert rows[0]["rule_of_three"] == pytest.approx(3 / 20)
    assert rows[0]["rate_at_most"]["1.01"] == pytest.approx(1 - 0.05 ** (1 / 20), abs=1e-6)
    assert 0.999 < rows[0]["least"] <= rows[0]["median"] <= rows[0]["most"] < 1.001
    assert {"gpu", "torch", "triton", "python", "date", "seconds_each"} <= set(rows[0])


def test_another_machine_or_load_is_another_row(run, monkeypatch):
    run(5)
    _, rows, _ = run(5, 1.0, None, "--load")
    assert [row["load"] for row in rows] == [False, True]
    monkeypatch.setattr(REPLY, "triton", "3.7.1")
    _, rows, _ = run(5)
    assert [row["trials"] for row in rows] == [5, 5, 5]


def test_slower_against_itself_is_counted_as_a_wrong_fail(run):
    _, rows, said = run(6, ratio=1.025)
    assert rows[0]["fails_beyond"] == {"1.01": 6, "1.02": 6, "1.03": 0, "1.05": 0}
    assert "beyond 1.02: 6 of 6" in said
