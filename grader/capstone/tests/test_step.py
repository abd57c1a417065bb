"""The capstone's step: right answers are used and counted, wrong ones are refused with a reason."""

import json

import pytest
import torch

from grader.capstone import __main__ as command
from grader.capstone import answers
from grader.capstone.recorded import KEPT, TOGETHER, recorded
from grader.capstone.step import OWN, Capstone, Spent
from grader.proofs.right import ROOT, right
from kernels.machines import machine

NOTEBOOK = ROOT / "solutions/07_next_bottleneck/capstone.ipynb"


def launches(**edits) -> dict:
    """The two right answers of the capstone, with (before, after) in one where it is named."""
    found = {}
    for question in OWN:
        name = question.split(".")[1]
        source = right(question).replace(*edits.get(name, ("", "")))
        found[name] = answers.loaded(question, source)
    return found


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    """Nobody has done a lab."""
    return Capstone(tmp_path_factory.mktemp("labs"))


def whose(capstone: Capstone) -> dict[str, tuple[str, str]]:
    return {slot: (filled, why) for slot, _, filled, why in capstone.slots()}


@pytest.mark.skipif(torch.cuda.is_available(), reason="on a GPU the step is timed, not counted")
def test_own_kernels_close_the_gap_and_keep_the_logits(empty):
    assert whose(empty)["norm"] == ("plain PyTorch", "you write it below")
    assert whose(empty)["qkv"] == ("the course's", "no 01_gemm_tiling/kernel.ipynb")
    plain = empty.measured("plain")
    assert plain["rotary"].launches == 4 * 42 and plain["norm"].launches == 9 * 10 - 1
    before = empty.measured("own")
    assert empty.gap_closed(before, plain) > 0.3, "the course's kernels close it"
    assert empty.closed_by_you(before, plain) == 0
    empty.improve(**launches())
    assert {whose(empty)[slot] for slot in ("norm", "rotary")} == {("yours", "")}
    own = empty.measured("own")
    assert own["rotary"].launches == 4 and own["norm"].launches == 10
    assert own["norm"].bytes < plain["norm"].bytes / 4
    off, same = empty.logits_differ()
    assert off < 0.02 and same
    assert 0.7 < empty.gap_closed(own, plain) < 1
    saved = sum(plain[name].seconds - own[name].seconds for name in ("norm", "rotary"))
    whole = sum(one.seconds for one in plain.values()) - empty.bound_s
    assert empty.closed_by_you(own, plain) == empty.kept["closed_by_you"] == pytest.approx(saved / whole)
    assert empty.asks_the_host() == {}


@pytest.mark.parametrize(
    "edits, slot, why",
    [
        ({"residual_norm": ("(x + r)", "(x - r)")}, "norm", "its logits differ by "),
        ({"residual_norm": ("(x + r)", "(x * 0 / 0 + r)")}, "norm", "its logits aren't numbers (NaN)"),
        ({"rotary_cache": ("at % S", "at % S + 1")}, "rotary", ""),
        (
            {"rotary_cache": ("def launch_rotary(p):", "def launch_rotary(p):\n    p.Q")},
            "rotary",
            "AttributeError: ",
        ),
    ],
    ids=["wrong numbers", "no numbers", "another place", "an error"],
)
def test_a_wrong_kernel_is_not_used_and_the_other_one_is(edits, slot, why, empty):
    empty.improve(**launches(**edits))
    filled, said = whose(empty)[slot]
    assert filled == "plain PyTorch" and said and said.startswith(why), said
    assert whose(empty)["rotary" if slot == "norm" else "norm"][0] == "yours"


def test_bad_names_are_refused(empty):
    with pytest.raises(ValueError, match="residual_norm or rotary_cache, got layernorm"):
        empty.improve(layernorm=print)
    with pytest.raises(ValueError, match="prompt must hold a letter"):
        empty.speak("\u00e9")


def test_the_rule_ranks_slots_by_what_can_be_removed(empty):
    names, times, removable = empty.cures({"rotary": Spent(168, 0.0, 840e-6), "head": Spent(1, 1e6, 5e-6)})
    assert names == ["rotary", "head"] and removable[0] == pytest.approx(1 - 4 / 168) and removable[1] == 0
    assert times.sum() == pytest.approx(845e-6)


def test_the_recorded_step_s_rows_are_all_of_it():
    found = recorded(machine("H200"))
    names = [row[0] for row in found.rows]
    assert names[-1] == "all" and "router, order" in names and "order" not in names
    assert found.rows[-1][1] == pytest.approx(sum(row[1] for row in found.rows[:-1]))
    assert found.rows[-1][2] == found.launches
    shares = json.loads((KEPT / "tables/h200_trace.json").read_text(encoding="utf-8"))["shares"]
    for name, _, launches, *_ in found.rows[:-1]:  # as the trace has them
        assert launches == shares["routed" if name == TOGETHER else name]["launches"], name
    assert f"{found.step_us:.0f} µs" in found.words() and found.bound_us < found.step_us < found.plain_us


def test_the_lab_and_its_samples_say_what_the_record_says():
    found = {row[0]: row for row in recorded(machine("H200")).rows}
    took = {name: row[4] + row[5] for name, row in found.items()}
    for name in ("norm", "rotary", "combine", "head"):  # "take about as long as predicted"
        assert took[name] == pytest.approx(found[name][3], rel=0.15)
    left = {name: took[name] - found[name][3] for name in found if name != "all"}
    assert sorted(left, key=left.get)[:-4:-1] == ["experts", "attention", "router, order"]
    share = left["experts"] / recorded(machine("H200")).step_us
    for text in (ROOT / "solutions/07_next_bottleneck/capstone.md", ROOT / "instructors/capstone.md"):
        words = " ".join(text.read_text(encoding="utf-8").replace("\n> ", " ").split())
        assert f"{took['experts']:.0f} µs instead of the predicted {found['experts'][3]:.0f}" in words
        assert f"{share:.0%}" in words and f"{1 / (1 - share):.2f}x" in words


def test_a_cell_that_fails_does_not_end_a_run(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cells = ["a = 6\na * 7", "1 / 0", "a + 1"]
    notebook = {"cells": [{"cell_type": "code", "source": [one]} for one in cells]}
    (tmp_path / "one.ipynb").write_text(json.dumps(notebook))
    assert command.main(["one.ipynb", "--json", "kept/one.json"]) == 1
    assert "42\n" in (told := capsys.readouterr().out) and "7\n3 cells" in told
    kept = json.loads((tmp_path / "kept/one.json").read_text())
    assert [one["cell"] for one in kept["failed"]] == [2]
    with pytest.raises(SystemExit):
        command.main(["two.ipynb"])


@pytest.mark.slow
def test_the_solutions_notebook_speaks_on_every_lab_s_kernels(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert command.main([str(NOTEBOOK), "--json", str(tmp_path / "kept.json")]) == 0
    kept = json.loads((tmp_path / "kept.json").read_text())
    filled = {slot: by for slot, _, by, _ in kept["slots"]}
    assert [slot for slot, by in filled.items() if by != "yours"] == ["embed", "router"]
    assert kept["same_token"] and kept["said"].startswith("The kernel is ")
    assert kept["gap_closed"] > 0.7
