"""The decode step on the course's kernels is the one in plain PyTorch: logits within a bound, and the same tokens."""

import re
from dataclasses import replace
from pydoc_data.topics import topics

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from kernels import decode_step
from kernels.course_fillings import COURSE
from kernels.next_bottleneck import plain
from kernels.next_bottleneck.cache import PagedCache
from kernels.next_bottleneck.cost_step import FEW, LAUNCHES, step_work
from kernels.next_bottleneck.shapes import QWEN3_30B_A3B, Shape
from kernels.next_bottleneck.slots import Filling
from kernels.next_bottleneck.step import Sampling, Step, generate
from kernels.next_bottleneck.weights import drawn
from kernels.sampling_fusion.plan import config_for
from kernels.speaking_model import kept
from kernels.speaking_model import text as texts
from kernels.speaking_model.tokens import END
from kernels.tests.figures import REFUSAL

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SMALL = Shape(64, 2, 4, 2, 32, experts=4, top_k=2, intermediate=32, vocabulary=96, page=4)
BOUND = 0.02  # of the logits' spread: some hundred roundings to 16 bits lie between tokens and logits


@pytest.fixture(autouse=True)
def one_thread():
    """So small a model is no faster on more, and on a busy machine threads that wait for each other spin."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def weights():
    return drawn(replace(SMALL, layers=1), dtype=torch.float16, device=DEVICE, seed=1)


@pytest.fixture(scope="module")
def deep():
    """Two layers: the first one's norm has no residual to add, every other has."""
    return drawn(SMALL, dtype=torch.float16, device=DEVICE, seed=1)


def step(weights, by="course", sequences=4, most=24, sampling=Sampling(), guard=True, **own):
    cache = PagedCache(
        weights.shape, sequences=sequences, most=most, dtype=weights.dtype, device=weights.device
    )
    return Step(weights, cache, decode_step.fillings(by, **own), sampling, guard=guard)


def apart(a, b) -> float:
    return ((a - b).abs().max() / b.std()).item()


def test_logits_of_prompts_and_of_a_ragged_batch(deep):
    """Sequences of 1 and 9 tokens, one of which crosses pages, and then one more token each."""
    course, plain = step(deep), step(deep, "plain")
    for sequence, length in enumerate((1, 9)):
        given = list(range(sequence, sequence + length))
        assert apart(course.read(sequence, given), plain.read(sequence, given)) < BOUND
    assert apart(*(one.decode([0, 1], [3, 95]) for one in (course, plain))) < BOUND


@pytest.mark.parametrize("by", [pytest.param("course", marks=pytest.mark.slow), "plain"])
def test_a_prompt_read_in_pieces_or_token_by_token_is_the_prompt(weights, by):
    one = step(weights, by)
    whole = one.read(0, [7, 8, 9, 10, 11, 12])
    one.read(1, [7, 8])
    pieces = one.read(1, [9, 10, 11, 12])
    one.read(2, [7])
    for token in (8, 9, 10, 11, 12):
        single = one.decode([2], [token])
    assert apart(pieces, whole) < BOUND and apart(single, whole) < BOUND


def test_a_row_does_not_depend_on_its_batch(weights):
    mixed = step(weights, "plain", attention=COURSE["attention"])
    for sequence in range(3):
        mixed.read(sequence, [sequence, 5])
    alone = step(weights, "plain")
    alone.read(0, [1, 5])
    assert apart(mixed.decode([2, 1, 0], [9, 9, 9])[1:2], alone.decode([0], [9])) < BOUND


def test_generated_tokens_are_those_of_plain_pytorch(weights):
    prompts = [[1, 2, 3], [50]]
    want = generate(step(weights, "plain"), prompts, 3)
    assert generate(step(weights), prompts, 3) == want


@pytest.mark.parametrize("name", COURSE)
def test_each_of_the_course_s_kernels_alone_changes_nothing(weights, name):
    """So a kernel that is wrong is named."""
    steps = step(weights, "plain", **{name: COURSE[name]}), step(weights, "plain")
    assert apart(*(one.read(0, [1, 2, 3]) for one in steps)) < BOUND
    got, want = (one.decode([0], [4]) for one in steps)
    assert apart(got, want) < BOUND
    assert steps[0].next_of(got, [0]) == steps[1].next_of(want, [0])


def test_plain_experts_row_by_row_are_the_experts(weights):
    """What a GPU runs in fp16; one expert has no row."""
    layer = weights.layers[0]
    rows = torch.randn(5, 64, generator=torch.Generator().manual_seed(3)).half().to(DEVICE)
    offsets = torch.tensor([0, 2, 2, 4, 5], dtype=torch.int32, device=DEVICE)
    got = plain.by_row(rows.float(), offsets, layer.gate_up.dense().float(), layer.down.dense().float())
    want = plain.experts((layer.gate_up, layer.down), SMALL)(rows, offsets)
    torch.testing.assert_close(got, want.float(), atol=2e-3, rtol=2e-3)


def test_the_command_says_a_sentence(capsys):
    assert decode_step.main(["The kernel", "--by", "plain", "--tokens", "3"]) == 0
    told = capsys.readouterr()
    assert told.out.startswith("The kernel ") and "3 tokens by plain" in told.err
    with pytest.raises(SystemExit):
        decode_step.main(["\u00e9", "--by", "plain"])
    assert "must hold a letter that the tokenizer knows" in capsys.readouterr().err


def spoken(by: str, prompts: list[str], most: int) -> list[str]:
    held, words = kept.weights().to(DEVICE), kept.tokenizer()
    given = [words.encode(text) for text in prompts]
    one = step(held, by, sequences=len(given), most=most + 16, guard=False)
    return [words.decode(said) for said in generate(one, given, most, END)]


SAID = ["The kernel", "Return the", "If the tensor is", "A graph is"]


@pytest.mark.parametrize(
    "prompts, most", [(SAID[:1], 4), pytest.param(SAID, 24, marks=pytest.mark.slow)], ids=["some", "all"]
)
def test_the_kept_model_says_the_same_on_both(prompts, most):
    assert spoken("course", prompts, most) == spoken("plain", prompts, most)


def test_what_the_kept_model_says_are_words_and_sentences():
    """Words of the lessons and of Python's own documentation: a model of letters alone would meet few of them."""
    known = " ".join([*topics.values(), *texts.of_source("the course's lessons")]).lower()
    known = set(re.findall("[a-z]+", known))
    said = spoken("plain", SAID, 60)
    met = [word for one in said for word in re.findall("[a-z]+", one.lower())]
    assert len(met) > 20 and sum(word in known for word in met) > 0.9 * len(met)
    assert sum(one.endswith((".\n", ":\n", "?\n")) for one in said) >= 3, said


def test_pages_come_back_and_sequences_end(weights):
    one = step(weights, "plain", sequences=2, guard=False)
    free = len(one.cache.free)
    said = generate(one, [[1, 2, 3], [4]], 6)
    end = said[0][2]
    ended = generate(one, [[1, 2, 3], [4]], 6, end=end)
    assert ended == [one[: one.index(end) + 1] if end in one else one for one in said]
    assert len(one.cache.free) == free


def test_without_tuned_kernels_plain_pytorch_stands_in(monkeypatch):
    assert {one.source for one in decode_step.fillings().values()} == {"course"}
    monkeypatch.setattr(decode_step, "find_spec", lambda name: None)
    assert {one.source for one in decode_step.fillings().values()} == {"plain"}


@pytest.mark.parametrize("by", decode_step.BY)
def test_draws_depend_on_the_seed_alone(weights, by):
    own = {} if by == "plain" else {"sample": COURSE["sample"]}
    drawn = [
        generate(step(weights, "plain", sampling=Sampling(2.0, seed), **own), [[1]], 5) for seed in (1, 1, 2)
    ]
    assert drawn[0] == drawn[1] != drawn[2]


def test_a_slot_that_breaks_its_contract_is_named(weights):
    broken = Filling(
        lambda weight, shape: lambda rows, index, weights: rows[index[:, 0].long()].float(), "learner"
    )
    with pytest.raises(ValueError, match="^combine: y must be torch.float16, got torch.float32; "):
        step(weights, "plain", combine=broken).read(0, [1, 2])


class Counted(TorchDispatchMode):
    """Operations of PyTorch that compute or copy."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.count = getattr(self, "count", 0) + (not function.is_view and "empty" not in str(function))
        return function(*args, **(kwargs or {}))


def test_plain_pytorch_takes_as_many_operations_as_the_cost_says(weights):
    one = step(weights, "plain", guard=False)
    one.read(0, [1, 2])
    one.cache.grow(0, 1)
    layer, table = one.layers[0], one.cache.table[:1]
    token, lens = (torch.tensor([n], dtype=torch.int32, device=DEVICE) for n in (4, 3))
    x = one.embed(token)
    qkv = layer.qkv(x)
    topk_ids, topk_weights = layer.router(x)
    rows, _, inv_permuted_idx = layer.order(x, topk_ids)
    calls = {
        "norm": lambda: layer.input_norm(x.clone(), x),
        "rotary": lambda: layer.rotary(qkv, lens, table, one.cache.keys[0], one.cache.values[0]),
        "order": lambda: layer.order(x, topk_ids),
        "combine": lambda: layer.combine(rows, inv_permuted_idx, topk_weights),
    }
    for name, call in calls.items():
        with Counted() as counted:
            call()
        given = counted.count - (name == "norm")  # the clone is the test's
        assert given == LAUNCHES[name]["plain"], name


def counts(weights, by):
    """Of one decoded token, after a prompt of five."""

    def made(mark):
        cache = PagedCache(weights.shape, sequences=1, most=24, dtype=weights.dtype)
        one = Step(weights, cache, mark(decode_step.fillings(by)))
        return one

    def run(one):
        lens, token = (torch.tensor([n], dtype=torch.int32) for n in (6, 4))
        one.sample(one.logits(token, lens, table), lens)

    table = torch.arange(1, 7, dtype=torch.int32)[None]
    return decode_step.counted(made, run)


@pytest.mark.skipif(DEVICE != "cpu", reason="bytes are counted on the machine")
def test_launches_and_bytes_are_counted_slot_by_slot(weights):
    """The course's launches are those that the cost names, and no slot moves less than it must."""
    found = {by: counts(weights, by) for by in decode_step.BY}
    must = step_work(weights.shape, 1, 6)
    for name in ("norm", "qkv", "rotary", "attention", "out", "experts", "combine", "head", "sample"):
        launches = must[name].launches + (must["last norm"].launches if name == "norm" else 0)
        assert found["course"][name].launches == launches, name
        needed = must[name].bytes + (must["last norm"].bytes if name == "norm" else 0)
        assert found["course"][name].bytes > 0.7 * needed, name
    assert found["course"]["routed"].launches == 2 and "router" not in found["course"]
    assert "loop" not in found["course"], "whatever is launched belongs to a slot"
    sums = {by: sum(one.launches for one in slots.values()) for by, slots in found.items()}
    assert sums["plain"] > 5 * sums["course"]


def test_a_few_rows_are_sampled_in_one_launch_and_more_in_two():
    for rows in (1, FEW, FEW + 1, 64):
        said = step_work(QWEN3_30B_A3B, rows, 4096)["sample"].launches
        for kind in ("ranked", "plain"):
            assert said == 1 + bool(config_for(rows, kind).finish_warps), (rows, kind)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda w: decode_step.fillings("magic"),
        lambda w: step(w, "plain").read(0, []),
        lambda w: step(w, "plain").read(9, [1]),
        lambda w: step(w, "plain").read(0, [96]),
        lambda w: step(w, "plain").read(0, [1] * 25),
        lambda w: step(w, "plain").decode([0, 0], [1, 1]),
        lambda w: step(w, "plain").decode([0], [1, 1]),
        lambda w: generate(step(w, "plain"), [], 3),
        lambda w: generate(step(w, "plain"), [[1]] * 5, 3),
        lambda w: generate(step(w, "plain"), [[1]], 0),
        lambda w: Sampling(-1.0),
        lambda w: Step(w, PagedCache(w.shape, sequences=1, most=4, dtype=w.dtype, device=w.device), {}),
        lambda w: PagedCache(w.shape, sequences=2, most=8, pages=1, dtype=w.dtype).grow(0, 8),
    ],
)
def test_nonsense_is_refused(weights, wrong):
    with pytest.raises(ValueError, match=REFUSAL):
        wrong(weights)
