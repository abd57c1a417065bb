"""The tokenizer loses nothing, training and decoding are the same model, and what was kept speaks."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from kernels.next_bottleneck.shapes import SPEAKING
from kernels.speaking_model import kept, text, tokens, train
from kernels.speaking_model.model import Moe, SpeakingModel
from kernels.tests.figures import REFUSAL


@pytest.fixture(autouse=True)
def one_thread():
    """So small a model is no faster on more, and on a busy machine threads that wait for each other spin."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


TALE = (
    "The kernel reads a tile. The tile waits for the kernel.\nA kernel that waits reads nothing, 42 times.\n"
    * 9
)


def test_the_tokenizer_merges_what_is_frequent_and_loses_nothing():
    learned = tokens.learn(TALE, 130)
    assert len(learned) == 130 and " kernel" in learned.pieces
    assert learned.decode(learned.encode(TALE)) == TALE
    assert len(learned.encode(TALE)) < len(TALE) / 2.5
    assert learned.encode("\u00e9\n") == [tokens.END], "what is not in the alphabet is left out"
    again = tokens.Tokenizer(learned.merges)
    assert again.encode(TALE) == learned.encode(TALE)


def test_the_kept_tokenizer_has_the_model_s_vocabulary_and_whole_words():
    held = kept.tokenizer()
    assert len(held) == SPEAKING.vocabulary
    assert held.decode(held.encode("The kernel is written in Python.")) == "The kernel is written in Python."
    assert len(held.encode(" the function returns")) == 3


def test_sentences_are_kept_and_everything_else_is_not():
    """Of markup the marks go, of code and tables everything."""
    told = """Return the :class:`Tensor` of *all* rows. It is on the same device as the `weight`.

    >>> Return the value of this and that example.

    | A table has the form of a sentence here. |

    too(short). No.

    Values are x[i, j] = a * b + c / d - (e ** 2) % 7 == 0 != 1 always here."""
    assert list(text.sentences(told)) == [
        "Return the Tensor of all rows. It is on the same device as the weight."
    ]


def test_unseen_text_is_not_trained_on():
    numbers = np.arange(300 * train.STRETCH, dtype=np.uint32) // train.STRETCH
    seen, unseen = train.split(numbers.astype(np.uint16))
    assert unseen.unique().tolist() == [99, 199, 299] and not set(unseen.tolist()) & set(
        seen.unique().tolist()
    )


def test_no_token_sees_what_comes_after_it():
    torch.manual_seed(1)
    model, given = SpeakingModel(replace(SPEAKING, layers=1)).eval(), torch.randint(2048, (2, 20))
    changed = given.clone()
    changed[:, 12:] = (changed[:, 12:] + 7) % 2048
    with torch.no_grad():
        before, after = model(given), model(changed)
    torch.testing.assert_close(before[:, :12], after[:, :12], atol=1e-5, rtol=0)
    assert (before[:, 12:] - after[:, 12:]).abs().max() > 1e-2


def test_each_token_goes_through_its_experts_and_no_other():
    torch.manual_seed(2)
    moe = Moe(replace(SPEAKING, experts=5))
    x = torch.randn(1, 7, SPEAKING.hidden)
    with torch.no_grad():
        weights, chosen = moe.gate(x[0]).softmax(-1).topk(2)
        weights /= weights.sum(-1, keepdim=True)
        want = torch.zeros_like(x[0])
        for t in range(7):
            for e, w in zip(chosen[t], weights[t], strict=True):
                gate, up = (moe.gate_up[e] @ x[0, t]).chunk(2)
                want[t] += w * (moe.down[e] @ (torch.nn.functional.silu(gate) * up))
        torch.testing.assert_close(moe(x)[0], want, atol=1e-4, rtol=1e-4)


def test_quantizing_takes_the_better_of_its_scales():
    weight = torch.randn(2, 4, 64, generator=torch.Generator().manual_seed(0))
    weight[0, 0, 0] = 9.0  # an outlier that is worth cutting, or not: whichever loses less
    from kernels.next_bottleneck.weights import quantize

    def error(codes):
        return ((codes.dense().float() - weight) ** 2).unflatten(-1, (-1, 32)).sum(-1)

    best, plain = error(train.quantized(weight, 32)), error(quantize(weight.half(), 32))
    assert (best <= plain + 1e-3).all() and (best < 0.97 * plain).any()


def test_it_learns_in_a_few_steps_and_what_it_keeps_is_the_model(tmp_path):
    """Two seconds of a text of 64 tokens: the loss falls from that of a guess, and the files are what decoding loads."""
    numbers = np.tile(np.arange(64, dtype=np.uint16), 100 * train.STRETCH // 64)
    model, steps, loss = train.train(numbers, minutes=0.03, rows=1, say=lambda line: None)
    assert steps > 1 and loss < 0.9 * math.log(SPEAKING.vocabulary)
    learned = tokens.learn(TALE, 130)
    train.keep(model, np.array(learned.merges, np.uint16), {"date": "today"}, tmp_path)
    held = kept.weights(tmp_path)
    assert kept.about(tmp_path) == {"date": "today"}
    assert kept.tokenizer(tmp_path).merges == learned.merges
    torch.testing.assert_close(
        held.layers[1].router.float(), model.layers[1].mlp.gate.weight, atol=1e-3, rtol=1e-2
    )
    codes = held.layers[2].down
    assert (codes.dense().float() - model.layers[2].mlp.down).abs().max() < codes.scales.float().max()


def test_every_source_of_the_kept_model_is_named_with_its_licence():
    sources = kept.about()["sources"]
    assert set(sources) <= set(text.SOURCES)
    assert all(one["licence"] and one["characters"] > 0 for one in sources.values())
    assert sum(one["characters"] for one in sources.values()) > 3e6
    assert sum(path.stat().st_size for path in kept.KEPT.iterdir()) < 6e6
    json.dumps(kept.about())


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: tokens.learn(TALE, 5),
        lambda: tokens.Tokenizer([(0, 500)]),
        lambda: tokens.Tokenizer([]).decode([96]),
        lambda: train.train(np.zeros(9, np.uint16), minutes=0, rows=1),
        lambda: train.train(np.zeros(9, np.uint16), minutes=1, rows=0),
        lambda: train.train(np.zeros(9, np.uint16), minutes=1, rows=1, dropout=2),
    ],
)
def test_nonsense_is_refused(wrong):
    with pytest.raises(ValueError, match=REFUSAL):
        wrong()
