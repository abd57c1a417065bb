"""The tiny model sees no byte that is to come, learns, and what was kept of it is what it says."""

import math

import numpy as np
import pytest
import torch

from kernels.tests.figures import REFUSAL
from kernels.tiny_model import kept, train
from kernels.tiny_model.model import TinyModel


@pytest.fixture(autouse=True)
def one_thread():
    """So small a model is no faster on more, and on a busy machine threads that wait for each other spin."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def test_no_byte_sees_what_comes_after_it():
    torch.manual_seed(1)
    model, tokens = TinyModel(), torch.randint(256, (2, 20))
    changed = tokens.clone()
    changed[:, 12:] = (changed[:, 12:] + 7) % 256
    with torch.no_grad():
        before, after = model(tokens), model(changed)
    torch.testing.assert_close(before[:, :12], after[:, :12], atol=1e-5, rtol=0)
    assert (before[:, 12:] - after[:, 12:]).abs().max() > 1e-2


def test_each_token_goes_through_its_experts_and_no_other():
    """Seed 2: an expert that nobody chose may hold anything; one that was chosen may not."""
    torch.manual_seed(2)
    moe = TinyModel().blocks[0].moe
    x = torch.randn(1, 3, 64)
    with torch.no_grad():
        before = moe(x)
        chosen = set(moe.routed[1].flatten().tolist())
        idle = next(e for e in range(8) if e not in chosen)
        moe.down[idle] += 1
        assert torch.equal(moe(x), before)
        moe.down[min(chosen)] += 1
        assert not torch.equal(moe(x), before)


def test_it_learns_in_a_few_steps():
    said = []
    train.train("bias", steps=20, rows=4, say=said.append)
    first, last = (float(line.split(": ")[1].split()[0]) for line in said)
    assert first > 0.9 * math.log(256) > last + 1


def test_unseen_text_is_not_trained_on():
    seen, unseen = train.split([b"abcdefgh" * 4, b"ijklmnop" * 2])
    assert len(seen) == 30 + 15 and bytes(unseen.tolist()) == b"ghp"


def test_the_kept_model_reads_the_lessons_and_its_traces_are_whole():
    about, traces = kept.about(), kept.traces()
    loss, trace = train.traced(kept.model())
    assert about["unseen_nats_a_byte"]["auxiliary loss"] < 1.7
    assert loss < 0.45 * math.log(256), "the lessons' wording may have changed since, their language has not"
    assert set(traces) == set(train.WAYS)
    for chosen in traces.values():
        assert chosen.shape == trace.shape == (2, train.TRACED * 128, 2) and chosen.max() < 8
        assert (chosen[..., 0] != chosen[..., 1]).all()


def test_the_kept_traces_show_what_balancing_does():
    most = {}
    for way, chosen in kept.traces().items():
        loads = [np.bincount(block.reshape(-1), minlength=8) for block in chosen]
        most[way] = max(load.max() / load.mean() for load in loads)
    assert most["none"] > 1.2 * max(most["auxiliary loss"], most["bias"])


@pytest.mark.parametrize("given", [{"way": "prayer", "steps": 1}, {"way": "none", "steps": 0}])
def test_nonsense_is_refused(given):
    with pytest.raises(ValueError, match=REFUSAL):
        train.train(**given)
