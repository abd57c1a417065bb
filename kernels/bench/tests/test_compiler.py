"""The compiler's measurements: the stacks compute alike, break where they say, and nothing is measured without a GPU."""

import pytest
import torch


@pytest.fixture(scope="module")
def compiler():
    """Read only by the worker that runs these tests: it reads all of Inductor, which takes seconds."""
    from kernels.bench import compiler

    return compiler


@pytest.mark.parametrize("breaks", [0, 3, 15])
def test_a_stack_and_its_unrolled_form_compute_the_same(compiler, breaks, monkeypatch):
    seen = []
    monkeypatch.setattr(compiler, "HIDDEN", 16)
    monkeypatch.setattr(torch._dynamo, "graph_break", lambda: seen.append(1))
    looped, unrolled = compiler.Stack(), compiler.Unrolled(breaks)
    unrolled.blocks.load_state_dict(looped.blocks.state_dict())
    x = torch.randn(2, compiler.HIDDEN)
    assert torch.equal(looped(x), unrolled(x)) and len(seen) == breaks


def test_the_broken_loop_breaks_once(compiler, monkeypatch):
    seen = []
    monkeypatch.setattr(compiler, "HIDDEN", 16)
    monkeypatch.setattr(torch._dynamo, "graph_break", lambda: seen.append(1))
    compiler.Stack(broken=True)(torch.randn(1, compiler.HIDDEN))
    assert len(seen) == 1


@pytest.mark.skipif(torch.cuda.is_available(), reason="it would measure")
def test_without_a_gpu_nothing_is_measured(compiler, capsys, tmp_path):
    assert compiler.main([str(tmp_path / "run.json")]) == 3
    assert "nothing was measured" in capsys.readouterr().out and not list(tmp_path.iterdir())
