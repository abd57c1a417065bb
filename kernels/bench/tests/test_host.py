"""What an eager call costs: how it is measured, and what was measured."""

import json
import time
from pathlib import Path

import pytest
import torch

from kernels.bench import host

RECORD = Path(host.__file__).parent / "results" / "host" / "h200.json"


def test_a_call_that_waits_costs_what_it_waits_and_rounds_settle_first():
    settled, quick = [], []
    calls = {"slow": lambda: time.sleep(2e-3), "quick": lambda: quick.append(1)}
    found = host.cost(calls, lambda: settled.append(1), rounds=3, each=4)
    assert 2000 < found["slow"] < 20000 and found["quick"] < 500
    assert len(settled) == 3 * 2 and len(quick) == 3 + 3 * 4


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_without_a_gpu_it_says_so(capsys):
    assert host.main([]) == host.NO_GPU
    assert "nothing was measured" in capsys.readouterr().out


def test_recorded_calls_cost_less_than_before_and_keep_their_marks():
    """30 us, and 100 for a layer of experts; those that were not kept then are named."""
    run = json.loads(RECORD.read_text())
    assert run["machine"]["gpu"] == "NVIDIA H200" and run["versions"]["triton"] == "3.6.0"
    not_kept = {"attention, backward", "decode", "4-bit linear, M = 64"}
    for row in run["rows"]:
        ours = not row["op"].startswith("torch")
        if ours and row["op"] not in not_kept:
            assert row["us"] < (100 if row["op"].startswith("MoE") else 30), row["op"]
            assert row["us"] < row["before_us"] or row["op"] == "fp8 product", row["op"]


@pytest.mark.gpu
def test_every_operation_can_be_called():
    found = host.cost(host.operations(torch.device("cuda", 0)), torch.cuda.synchronize, rounds=2, each=20)
    assert all(us > 0 for us in found.values())
