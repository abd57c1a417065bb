"""What the lesson says of its own experiments, held to the functions that they call."""

import numpy as np
import pytest

from kernels.expert_load_balance import cases, cost, reference
from kernels.expert_load_balance.cases import DEEPSEEK, MIXTRAL, QWEN
from kernels.machines import machine
from kernels.next_bottleneck import cost as links

H200 = machine("H200")
TOY = cases.toy_router


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
    kept = reference.kept_by_capacity(seen.chosen, 8, cost.capacity_limit(4096, 2, 8, factor))
    out = np.einsum("tk,tkh->th", seen.weights * kept, seen.each)
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


CLAIMS = {  # sentence: (what the functions say, from, to)
    "22.5 GB a layer": (lambda: expert_bytes(DEEPSEEK, 256) / 1e9, 22.45, 22.55),
    "1.3 TB in 58": (lambda: 58 * expert_bytes(DEEPSEEK, 256) / 1e12, 1.25, 1.35),
    "a copy is 88 MB": (lambda: expert_bytes(DEEPSEEK) / 1e6, 87.5, 88.5),
    "5.1 GB over 58 layers": (lambda: 58 * expert_bytes(DEEPSEEK) / 1e9, 5.05, 5.15),
    "0.2 ms to move it": (lambda: expert_bytes(DEEPSEEK) / H200.link_bandwidth * 1e3, 0.19, 0.21),
    "11.3 GB on each of two": (lambda: expert_bytes(DEEPSEEK, 128) / 1e9, 11.25, 11.35),
    "a pick takes 89 ns": (lambda: DEEPSEEK.pick_flops / H200.rate("bf16") * 1e9, 88.5, 89.5),
    "the link's ridge is 2198": (lambda: H200.rate("bf16") / H200.link_bandwidth, 2197.5, 2198.5),
    "a network's 19,780": (lambda: H200.rate("bf16") / 50e9, 19_779.5, 19_780.5),
    "FLOP per byte: 1.5 times the columns": (
        lambda: max(abs(s.pick_flops / (4 * s.hidden) / s.intermediate - 1.5) for s in (MIXTRAL, QWEN)),
        0,
        1e-9,
    ),
    "36 ns": (lambda: links.activation_message(8192, 1, 900e9).transfer_s * 1e9, 36.3, 36.5),
    "starting takes over a hundred times": (
        lambda: links.activation_message(8192, 1, 900e9).latency_over_transfer,
        100,
        150,
    ),
    "2.3 us at batch 64": (lambda: links.activation_message(8192, 64, 900e9).transfer_s * 1e6, 2.25, 2.35),
    "64 KB on 64 GPUs: a tree is 8 times as fast": (
        lambda: (
            links.all_reduce(64e3, 64, 450e9, hop_s=1e-6).total_s
            / links.all_reduce(64e3, 64, 450e9, algorithm="tree", hop_s=1e-6).total_s
        ),
        7.5,
        8.0,
    ),
    "1 GB on 8: the ring wins by 14%": (
        lambda: (
            links.all_reduce(1e9, 8, 450e9, algorithm="tree", hop_s=1e-6).total_s
            / links.all_reduce(1e9, 8, 450e9, hop_s=1e-6).total_s
        ),
        1.135,
        1.145,
    ),
    "60% hot: 2.77": (lambda: hot(0.6).slowdown, 2.765, 2.775),
    "all of them: four times": (lambda: hot(1.0).slowdown, 4.0, 4.3),
    "half, one pick, a device each: 4": (lambda: hot(0.5, experts=8, top_k=1).slowdown, 3.99, 4.01),
    "luck: 1.6 at 128 tokens": (lambda: luck(128, 64), 1.55, 1.65),
    "and 1.07 at 8192": (lambda: luck(8192, 64), 1.065, 1.075),
    "two experts do two thirds": (lambda: sum(sorted(loads())[-2:]) / sum(loads()), 0.63, 0.69),
    "three hardly any": (lambda: sorted(loads())[2] / sum(loads()), 0.0, 0.04),
    "a window is less even than the shuffled text": (
        lambda: windows("none") - windows("none", shuffled=True),
        0.1,
        1.0,
    ),
    "also where the router was balanced": (
        lambda: windows("bias") - windows("bias", shuffled=True),
        0.05,
        1.0,
    ),
    "unbalanced, f = 1.25: a quarter is dropped": (lambda: limited("none", 1.25)[0], 0.22, 0.28),
    "and the error more than doubles": (
        lambda: limited("none", 1.25)[1] / limited("none", 8.0)[1],
        2.0,
        2.5,
    ),
    "balanced: a few in a hundred": (
        lambda: max(limited(way, 1.25)[0] for way in ("auxiliary loss", "bias")),
        0.0,
        0.05,
    ),
    "and nothing of the answers": (
        lambda: max(limited(way, 1.25)[1] / limited(way, 8.0)[1] for way in ("auxiliary loss", "bias")),
        0.99,
        1.02,
    ),
    "three experts with no token": (lambda: (cases.learned("none").fresh_loads == 0).sum(), 3, 3),
    "the error falls from 0.25": (lambda: cases.learned("none").fresh_loss, 0.245, 0.255),
    "to 0.15 by the loss": (lambda: cases.learned("auxiliary loss").fresh_loss, 0.145, 0.155),
    "to 0.17 by the bias": (lambda: cases.learned("bias").fresh_loss, 0.16, 0.175),
    "strength 10: nearly all of the gain is gone": (
        lambda: TOY.train("auxiliary loss", strength=10.0).fresh_loss,
        0.235,
        0.25,
    ),
    "four devices, greedy: 1.42": (lambda: halves(greedy, 0), 1.415, 1.425),
    "with copies 1.10": (lambda: halves(cost.replicate, 0), 1.095, 1.105),
    "searched 1.03": (lambda: halves(cost.searched, 0), 1.02, 1.035),
    "the optimum on what came: 1.21": (lambda: halves(cost.optimum, 1), 1.2, 1.215),
    "the search on what came: 1.15": (lambda: halves(cost.searched, 1), 1.145, 1.155),
    "64 GPUs under Zipf's law: 8.1": (lambda: zipf(0), 8.05, 8.15),
    "with 64 copies 1.02": (lambda: zipf(64), 1.015, 1.03),
    "an eighth of the work and slower: 10.5 ms": (
        lambda: cost.sparse_layer_s(10, 1 / 8, 2.77, 7),
        10.4,
        10.5,
    ),
    "a capacity of 160": (lambda: cost.capacity_limit(4096, 8, 256, 1.25), 160, 160),
    "235 MB leave": (lambda: cost.alltoall_bytes(4096, 8, 7168, 2) / 1e6, 234.5, 235.5),
}


@pytest.mark.parametrize("sentence", CLAIMS)
def test_the_lesson_says_what_comes_out(sentence):
    found, low, high = CLAIMS[sentence]
    assert low <= found() <= high


def test_the_copy_goes_to_a_27_and_not_to_the_37():
    given = [27, 19, 27, 37, 27, 3]
    first, best = (cost.device_loads(given, make(given, 4, 1), 4) for make in (cost.replicate, cost.optimum))
    assert max(first) == 45.5 and max(best) == 37 == max(
        cost.device_loads(given, cost.searched(given, 4, 1), 4)
    )
    assert len(cost.optimum(given, 4, 1)[3]) == 1
