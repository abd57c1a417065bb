"""What the lesson says of its own experiments, held to the functions that they call."""

import numpy as np
import pytest

from kernels.expert_load_balance import cases, cost, cost_batches, reference
from kernels.expert_load_balance.cases import DEEPSEEK, MIXTRAL, QWEN
from kernels.machines import machine
from kernels.next_bottleneck import cost as links
from kernels.tiny_model import kept
from widgets.expert_load_balance import device_load_model, dispatch
from widgets.registry import find
from widgets.tests.lesson_said import lesson, prose

H200 = machine("H200")
TOY = cases.toy_router
NATS = kept.about()["unseen_nats_a_byte"]
LESSON = lesson("04_expert_load_balance")
PROSE = prose(LESSON)
SAID = PROSE.replace("`", "")
SHAPES = (MIXTRAL, QWEN, DEEPSEEK)


def simulated(**given):
    """How many times an even step the simulator says."""
    start = {control.name: control.default for control in find("device_load").controls}
    return device_load_model.run(**start | given).slowdown


def expert_bytes(shape, experts=1):
    return cost.expert_memory_bytes(experts, shape.hidden, shape.intermediate)


def hot(share, devices=8, experts=16, top_k=2):
    loads = cost.hot_loads(8192, top_k, experts, share)
    return cost.ep_step(loads, cost.contiguous(experts, devices), devices, token_s=1e-9)


def luck(tokens, devices, draws=10):
    """Imbalance of a router without favourites, as the lesson draws it: each size after the others before it."""
    rng, found = np.random.default_rng(0), {}
    for size in (16, 128, 1024, 8192):
        loads = [
            np.bincount(rng.random((size, 256)).argpartition(8, axis=1)[:, :8].reshape(-1), minlength=256)
            for _ in range(draws)
        ]
        found[size] = np.mean([reference.imbalance(one.reshape(devices, -1).sum(1)) for one in loads])
        if size == tokens:
            return found[size]


def loads(way="none", part=slice(None)):
    return reference.loads_of(cases.traced(way)[part], 8).tolist()


def windows(way, shuffled=False):
    chosen = cases.traced(way)
    chosen = np.random.default_rng(0).permutation(chosen) if shuffled else chosen
    return np.median(
        [reference.imbalance(reference.loads_of(chosen[i : i + 128], 8)) for i in range(0, 4096, 128)]
    )


def limited(way, factor):
    """(share dropped, error) of a trained toy router with a capacity factor."""
    x, wanted = TOY.task().draw(4096, np.random.default_rng(9))
    seen = TOY.forward(cases.learned(way).layer, x, 2)
    kept = reference.kept_by_capacity(seen.topk_ids, 8, cost.capacity_limit(4096, 2, 8, factor))
    out = np.einsum("tk,tkh->th", seen.topk_weights * kept, seen.each)
    return 1 - kept.mean(), ((out - wanted) ** 2).mean()


def halves(make, part, copies=4):
    first, second = loads(part=slice(2048)), loads(part=slice(2048, None))
    placed = make(first, 4, copies)
    return cost.imbalance(cost.device_loads((first, second)[part], placed, 4))


def zipf(copies):
    many = cost.expert_loads(8192, 8, 256, skew=1.0)
    return cost.imbalance(cost.device_loads(many, cost.replicate(many, 64, copies), 64))


def greedy(given, devices, copies):
    return cost.greedy(given, devices)


def by_number(devices):
    """Imbalance of Zipf's law with experts by number, shape by shape."""
    loads = {s: cases.loads_of_skew("Zipf", 4096 * devices, s.top_k, s.experts) for s in SHAPES}
    return [
        cost.imbalance(cost.device_loads(many, cost.contiguous(s.experts, devices), devices))
        for s, many in loads.items()
    ]


def left_once(places):
    """Of the rows that 8 independent pairs send out of one of so many places, those left if each place gets a token once."""
    return places * (1 - (1 - 1 / places) ** 8) / 8


DISPATCH = dispatch.run(**dispatch.SIMULATOR.inputs({"way": "node"}))


def two_batches(tokens=32, sms=0, link=50e9):
    """Return the lesson's layer in one piece and in two halves."""
    return cost_batches.overlap(cost_batches.Layer(), H200, tokens, 4096, link, sms)


def published():
    """Return the published times over the formula's, (dispatch, combine) by the number of GPUs."""
    (cell,) = (cell.text for cell in LESSON.cells if "published = {" in cell.text)
    place = {"table": lambda *shown: None}
    exec(cell, place)
    at = {
        gpus: cost_batches.pieces(cost_batches.Layer(ranks=gpus), H200, 128, 4096, 50e9)
        for gpus, *_ in place["checked"]
    }
    assert [row[1] for row in place["checked"]] == pytest.approx(
        [1e6 * one.dispatch_s for one in at.values()]
    )
    return {
        gpus: (out / 1e6 / at[gpus].dispatch_s, home / 1e6 / at[gpus].combine_s)
        for gpus, (out, home) in place["published"].items()
    }


CLAIMS = {  # a sentence of the lesson: (what it speaks of, from, to)
    "With 64 GPUs or more, the published times are 1.1": (
        lambda: min(min(published()[gpus]) for gpus in (64, 128, 256)),
        1.05,
        1.15,
    ),
    "1.1x to 1.3x the formula's": (lambda: max(max(one) for one in published().values()), 1.25, 1.35),
    "With 16 GPUs they are shorter": (lambda: max(published()[16]), 0.5, 0.99),
    "nearly half of the rows go to a GPU of the same node": (lambda: 7 / 15, 0.45, 0.49),
    "the step takes 1.25x as long on two GPUs": (lambda: simulated(devices=2), 1.245, 1.255),
    "and 4.6x as long on sixteen": (lambda: simulated(devices=16), 4.55, 4.65),
    "Placing experts by load changes nothing here": (
        lambda: simulated(placement="load") / simulated(),
        0.99,
        1.0,
    ),
    "In the simulator the whole step takes only 2.72x as long": (lambda: simulated(), 2.71, 2.725),
    "A Qwen3-like row spends twice as long on the link as in its expert": (
        lambda: 4 * QWEN.hidden / H200.link_bandwidth / (QWEN.pair_flops / H200.rate("bf16")),
        1.85,
        2.0,
    ),
    "An expert with intermediate 768 leaves 96 columns to each of 8 GPUs": (
        lambda: QWEN.intermediate / 8,
        96,
        96,
    ),
    "TP sends eight times the bytes of EP on 64": (
        lambda: links.ring_factor(64) * 64 / (2 * 8 * 63 / 64),
        8,
        8,
    ),
    "With 32 experts per token the exchange carries 16 times the bytes that it carries with 2": (
        lambda: cost.alltoall_bytes(128, 32, 7168, 64) / cost.alltoall_bytes(128, 2, 7168, 64),
        16,
        16,
    ),
    "so each token sends 1.75x the bytes": (lambda: (7 / 8) / (1 / 2), 1.75, 1.75),
    "by number, the imbalance is 2.9": (lambda: min(by_number(8)), 2.9, 2.95),
    "the imbalance is 2.9 to 5.2 instead": (lambda: max(by_number(8)), 5.15, 5.2),
    "instead of 1.5": (lambda: min(by_number(2)), 1.5, 1.55),
    "instead of 1.5 to 1.8": (lambda: max(by_number(2)), 1.75, 1.8),
    "sending once per rank instead of once per pair cuts the bytes by three quarters": (
        lambda: 1 - left_once(2),
        0.745,
        0.755,
    ),
    "With 64 ranks it saves hardly anything": (lambda: left_once(64), 0.94, 0.96),
    "cuts the bytes on the network, the slower link, by a third": (lambda: 1 - left_once(8), 0.325, 0.355),
    "than the layer's arithmetic in a decode step (some 0.1 ms": (
        lambda: 128 * 8 * DEEPSEEK.pair_flops / H200.rate("bf16") * 1e3,
        0.085,
        0.1,
    ),
    "(b) would be the factor on four GPUs": (lambda: 0.5 * 4 / 1, 2, 2),
    "starting takes over 100x as long as sending": (
        lambda: links.activation_message(8192, 1, 900e9).latency_over_transfer,
        100,
        150,
    ),
    "If every token picks the hot expert, the step takes 4x as long as an even one": (
        lambda: hot(1.0).slowdown,
        4.0,
        4.3,
    ),
    "The popular expert's load is T / 2, and the mean load is T / 8": (
        lambda: hot(0.5, experts=8, top_k=1).slowdown,
        3.99,
        4.01,
    ),
    "the imbalance over 64 GPUs is 1.6 at 128 tokens": (lambda: luck(128, 64), 1.55, 1.65),
    "and still 1.07 at 8192 tokens": (lambda: luck(8192, 64), 1.065, 1.075),
    "two experts do two thirds of the work": (lambda: sum(sorted(loads())[-2:]) / sum(loads()), 0.63, 0.69),
    "and three do almost none": (lambda: sorted(loads())[2] / sum(loads()), 0.0, 0.04),
    "a window of the running text is more uneven than the same tokens shuffled": (
        lambda: windows("none") - windows("none", shuffled=True),
        0.1,
        1.0,
    ),
    "the same tokens shuffled, in both lines": (
        lambda: windows("bias") - windows("bias", shuffled=True),
        0.05,
        1.0,
    ),
    "loses a quarter of its pairs at f = 1.25": (lambda: limited("none", 1.25)[0], 0.22, 0.28),
    "and its error more than doubles": (
        lambda: limited("none", 1.25)[1] / limited("none", 8.0)[1],
        2.0,
        2.5,
    ),
    "The balanced routers lose a few pairs in a hundred": (
        lambda: max(limited(way, 1.25)[0] for way in ("auxiliary loss", "bias")),
        0.0,
        0.05,
    ),
    "and their errors don't grow": (
        lambda: max(limited(way, 1.25)[1] / limited(way, 8.0)[1] for way in ("auxiliary loss", "bias")),
        0.99,
        1.02,
    ),
    "three of the eight experts end with no token at all": (
        lambda: (cases.learned("none").fresh_loads == 0).sum(),
        3,
        3,
    ),
    "the error falls from 0.25": (lambda: cases.learned("none").fresh_loss, 0.245, 0.255),
    "from 0.25 to 0.15 with the auxiliary loss": (
        lambda: cases.learned("auxiliary loss").fresh_loss,
        0.145,
        0.155,
    ),
    "and to 0.17 with the bias": (lambda: cases.learned("bias").fresh_loss, 0.16, 0.175),
    "nearly all of the gain is gone": (
        lambda: TOY.train("auxiliary loss", strength=10.0).fresh_loss,
        0.235,
        0.25,
    ),
    "the imbalance of the measured half falls from 1.42": (lambda: halves(greedy, 0), 1.415, 1.425),
    "from 1.42 to 1.10 with greedy": (lambda: halves(cost.replicate, 0), 1.095, 1.105),
    "1.03 with the search": (lambda: halves(cost.searched, 0), 1.02, 1.035),
    "it has an imbalance of 1.21 on the second half": (
        lambda: halves(cost.optimum, 1),
        1.2,
        1.215,
    ),
    "a little worse on the first half, has an imbalance of only 1.15": (
        lambda: halves(cost.searched, 1),
        1.145,
        1.155,
    ),
    "this saves a quarter of the rows on the network": (
        lambda: 1 - DISPATCH.rank.network_rows / DISPATCH.pair.network_rows,
        0.235,
        0.265,
    ),
    "The slow link then carries little more than a third": (
        lambda: DISPATCH.node.network_rows / DISPATCH.pair.network_rows,
        0.34,
        0.4,
    ),
    "the surplus of one expert would have to be 17 times the mean load": (
        lambda: cost.break_even_pairs(989e12, 450e9) / 256,
        16.5,
        17.5,
    ),
    "Computation takes 116 µs for the whole batch in one piece and 201 µs for the two halves together": (
        lambda: 2e6 * two_batches().half.compute_s,
        200.5,
        201.5,
    ),
    "because the 108 µs of exchange is hidden": (lambda: 1e6 * two_batches().whole.exchange_s, 107.5, 108.5),
    "reading all weights in both halves takes 85 µs more than reading them once": (
        lambda: 1e6 * (2 * two_batches().half.compute_s - two_batches().whole.compute_s),
        84.5,
        85.5,
    ),
    "The gain turns into a loss": (lambda: two_batches(sms=24).faster, 0.85, 0.95),
    "over half of the gain is left": (
        lambda: (two_batches(sms=6).faster - 1) / (two_batches().faster - 1),
        0.51,
        0.7,
    ),
    "Two halves take 1.5x as long": (lambda: 1 / two_batches(tokens=8).faster, 1.45, 1.52),
    "less than its 867 µs of exchange": (lambda: 1e6 * two_batches(256).whole.exchange_s, 866.5, 867.5),
    "the link is hardly ever idle": (
        lambda: two_batches(256).halves_s / two_batches(256).whole.exchange_s,
        1.0,
        1.05,
    ),
    "splitting pays off only above some 150 users": (
        lambda: two_batches(152, link=450e9).faster,
        1.0,
        1.02,
    ),
}


@pytest.mark.parametrize("sentence", CLAIMS)
def test_the_lesson_says_what_comes_out(sentence):
    found, low, high = CLAIMS[sentence]
    assert sentence in SAID, "the lesson no longer says this; say it anew here or take it out"
    assert low - 1e-9 <= found() <= high + 1e-9


def test_runs_on_more_gpus_would_be_shown():
    """Any h200_x*.json beside the one that stands there, with the command that makes it."""
    assert any('folder.glob("h200_x*.json")' in cell.text for cell in LESSON.cells)
    assert (
        "for n in 4 8; do" in PROSE
        and "--ranks $n --json kernels/expert_load_balance/results/h200_x$n.json" in PROSE
    )


def test_the_copy_goes_to_a_27_and_not_to_the_37():
    given = [27, 19, 27, 37, 27, 3]
    first, best = (cost.device_loads(given, make(given, 4, 1), 4) for make in (cost.replicate, cost.optimum))
    assert max(first) == 45.5 and max(best) == 37 == max(
        cost.device_loads(given, cost.searched(given, 4, 1), 4)
    )
    assert len(cost.optimum(given, 4, 1)[3]) == 1
