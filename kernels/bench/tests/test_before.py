"""An earlier checkout beside this one: how it is imported, what is told of a pair, and what was measured."""

import json
import sys

import pytest
import torch

from kernels.bench import before
from kernels.bench.record import TIE


def test_an_earlier_checkout_is_imported_under_another_name(tmp_path, monkeypatch):
    package = tmp_path / "old" / "kernels"
    (package / "topic" / "tests").mkdir(parents=True)
    files = {
        "__init__.py": "",
        "topic/__init__.py": "",
        "number.py": "one = 1\n",
        "topic/tests/broken.py": "1 / 0\n",
    }
    files["topic/bench.py"] = (
        "import importlib\nimport kernels.number\nfrom kernels import number\nfrom kernels.number import one\n"
        "other = importlib.import_module('kernels.number')\nkernels = 'kernels of a model'\n"
    )
    for name, text in files.items():
        (package / name).write_text(text)
    to = tmp_path / "to"
    monkeypatch.setattr(sys, "path", list(sys.path))
    before.importable(tmp_path / "old", to)
    import kernels_before.topic.bench as bench

    try:
        assert bench.one == 1 and bench.number is bench.other
        assert bench.number.__name__ == "kernels_before.number" and bench.kernels == "kernels of a model"
        assert not (to / before.PACKAGE / "topic" / "tests").exists()
    finally:
        for name in [name for name in sys.modules if name.split(".")[0] == before.PACKAGE]:
            del sys.modules[name]


def pair(interval=(1.0, 1.01), error=1e-3, now=1e-3, **changes) -> dict:
    earlier = {"error": error, "us": 10.0, "ratio": 1.0, "interval": list(interval)} | changes
    return {"op": "gemm", "case": "8", "us": 10.0, "error": now, "peers": {"before": earlier}}


def test_a_pair_is_told_as_slower_or_less_exact_only_if_it_is():
    assert before.faults(pair()) == [] and before.faults(pair(interval=(0.9, TIE))) == []
    assert before.faults(pair(interval=(0.9, 0.97))) == ["slower"]
    assert before.faults(pair(now=1.2e-3)) == ["less exact"] and before.faults(pair(now=1.05e-3)) == []
    assert before.faults(pair(error=0.0, now=0.0)) == []
    assert before.faults({"op": "gemm", "case": "8", "wrong": "error"}) == ["error"]
    gone = {"op": "gemm", "case": "8", "us": 1.0, "error": 0.0, "peers": {"before": {"failed": "no kernel"}}}
    assert before.faults(gone) == ["not compared: no kernel"]
    assert "slower" in before.line(pair(interval=(0.9, 0.97))) and "no kernel" in before.line(gone)


def test_the_kept_comparison_has_no_row_that_got_worse(capsys):
    run = json.loads(before.KEPT.read_text())
    assert run["machine"]["gpu"] == "NVIDIA H200" and run["before"]
    ops = {row["op"] for row in run["rows"]}
    assert {"gemm", "block_scaled_gemm", "attention", "attention backward", "decode", "linear"} <= ops
    assert {"MoE layer", "sampling", "layernorm_gelu"} <= ops and len(run["rows"]) > 70
    assert [before.line(row) for row in run["rows"] if before.faults(row)] == []
    assert before.main(["--kept"]) == 0
    assert "0 slower, less exact or not compared" in capsys.readouterr().out


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_without_a_gpu_it_says_so(capsys, tmp_path):
    (tmp_path / "kernels" / "bench").mkdir(parents=True)
    assert before.main([str(tmp_path), "gemm_tiling", "--only", "8192"]) == before.NO_GPU
    assert "nothing was compared" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        before.main([str(tmp_path / "nowhere")])
    assert "FOLDER must hold kernels/bench" in capsys.readouterr().err
