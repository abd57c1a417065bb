"""python -m widgets: the same models without a browser."""

import json
import subprocess
import sys

import pytest

from widgets.__main__ import main
from widgets.registry import every


def test_list_publishes_every_input_with_its_range(capsys):
    assert main(["list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [one["id"] for one in listed] == [d.id for d in every()]
    for one in listed:
        assert one["question"] and one["outputs"]
        for control in one["inputs"]:
            assert control["rule"] and "default" in control
            assert "options" in control or "min" in control or control["kind"] == "toggle"


def test_run_prints_the_result(capsys):
    assert main(["run", "tile_walk", "m=1", "--json", "bn=64"]) == 0
    got = json.loads(capsys.readouterr().out)
    assert got["inputs"]["m"] == 1 and got["outputs"]["reuse_flop_per_element"] == pytest.approx(2 * 64 / 65)


def test_run_for_people(capsys):
    assert main(["run", "fp8_accumulator"]) == 0
    out = capsys.readouterr().out
    assert "50.1%" in out and "FP16" in out


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["run", "nothing"], "simulator must be one of"),
        (["run", "tile_walk", "m=zero"], "must be a whole number"),
        (["run", "tile_walk", "m"], "input must be name=value"),
        (["run", "tile_walk", "q=1"], "input must be one of"),
        (["run", "tile_walk", "m=nan"], "must be a whole number"),
        (["frobnicate"], "invalid choice"),
    ],
)
def test_wrong_usage_is_a_sentence_and_64(arguments, words, capsys):
    assert main(arguments) == 64
    assert words in capsys.readouterr().err


def test_it_starts_as_a_module():
    done = subprocess.run([sys.executable, "-m", "widgets", "list"], capture_output=True, text=True)
    assert done.returncode == 0 and "tile_walk" in done.stdout
