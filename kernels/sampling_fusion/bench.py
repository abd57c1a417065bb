"""Rows of the benchmark: sampling beside torch's chains, torch.compile and FlashInfer."""

import numpy as np
import torch

from kernels.bench.row import Absent, Row
from kernels.compare import spread
from kernels.sampling_fusion import cases, cost, fused, naive_chain
from kernels.sampling_fusion.reference import Ranking, is_greedy, kept, processed
from kernels.sampling_fusion.requests import Requests
from kernels.sampling_fusion.state import State

CHECKED_ROWS = 4
SLACK = 1e-4  # of p: on which side of the border a token lies that stands on it is rounding
TORCH = {"fp32": torch.float32, "bf16": torch.bfloat16}


def rows(device):
    for timed in cases.TIMED:
        case = timed.case()
        elem = TORCH[timed.dtype].itemsize
        yield Row(
            op="sampling", case=f"{timed.name} B{timed.batch} {timed.dtype}", dtype="bf16", flops=0,
            bytes=cost.compulsory_bytes(timed.batch, timed.vocabulary, elem, masks=timed.masks),
            inputs=lambda seed, case=case: draw(case, seed, device), ours=ours, check=check, tolerance=0.0,
            peers=peers_of(timed), quick=timed.quick,
        )  # fmt: skip


def draw(case, seed, device) -> dict:
    rng = torch.Generator(device).manual_seed(seed)
    logits = torch.randn(case.batch, case.vocabulary, device=device, generator=rng) * 3
    requests = cases.requests_of(case, seed)
    return {
        "logits": logits.to(TORCH[case.dtype]),
        "requests": requests,
        "state": State.of(requests, device),
        "k": case.ask.get("top_k", 0),
        "p": case.ask.get("top_p", 1.0),
    }


def check(x, tokens) -> float:
    """The share of looked-at rows whose token is not among those that may come."""
    tokens = tokens.reshape(-1).tolist()
    looked_at = spread(CHECKED_ROWS, len(tokens))
    wrong = [
        tokens[i] not in may_come(x["logits"][i].float().cpu().numpy(), x["requests"], i) for i in looked_at
    ]
    return float(np.mean(wrong))


def may_come(logits, requests: Requests, i: int) -> set[int]:
    row = processed(logits, requests, i)
    greedy = is_greedy(requests, i)
    ranking = Ranking.of(row, 1.0 if greedy else float(requests.temperature[i]))
    if greedy:
        return {int(ranking.token[0])}
    top_p = float(requests.top_p[i])
    top_p = top_p if top_p == 1 else min(1.0, top_p * (1 + SLACK))
    keep = kept(ranking, int(requests.top_k[i]), top_p, float(requests.min_p[i]) * (1 - SLACK))
    return set(ranking.token[keep].tolist())


def ours(x):
    batch, vocabulary = x["logits"].shape
    workspace = fused.Workspace.of(batch, vocabulary, x["logits"].device, x["state"].largest_k)
    return lambda: fused.sample(x["logits"], x["state"], workspace).tokens


def exponential_race(weight):
    return (weight / torch.empty_like(weight).exponential_()).argmax(-1, keepdim=True)


def by_topk(logits, k: int, p: float):
    """Top-k by value, then top-p on the k: what one writes when k is small."""
    x, token = torch.topk(logits.float(), k, dim=-1)
    weight = torch.softmax(x, -1)
    weight = torch.where(torch.cumsum(weight, -1) - weight < p, weight, 0.0)
    return token.gather(1, exponential_race(weight))


def by_sort(logits, k: int, p: float):
    """The chain for any k and p: sort, cut, running sum, cut, draw."""
    x, token = logits.float().sort(dim=-1, descending=True)
    if k:
        x[:, k:] = float("-inf")
    weight = torch.softmax(x, -1)
    weight = torch.where(torch.cumsum(weight, -1) - weight < p, weight, 0.0)
    return token.gather(1, exponential_race(weight))


def without_filter(logits, k: int, p: float):
    return exponential_race(torch.softmax(logits.float(), -1))


def peers_of(timed) -> dict:
    if timed.ask == {"temperature": 0.0}:
        return {"torch argmax": lambda x: lambda: x["logits"].argmax(-1)}
    if timed.tables or set(timed.ask) - {"top_k", "top_p"}:
        return {"naive chain": one_launch_a_rule}
    k, p = timed.ask.get("top_k", 0), timed.ask.get("top_p", 1.0)
    if not k and p == 1:
        return {
            "torch": torch_chain(without_filter),
            "compiled": compiled(without_filter),
            "FlashInfer": flashinfer,
        }
    peers = {"naive chain": one_launch_a_rule, "torch sort": torch_chain(by_sort), "FlashInfer": flashinfer}
    if k:
        peers |= {"torch topk": torch_chain(by_topk), "compiled": compiled(by_topk)}
    return peers


def one_launch_a_rule(x):
    return lambda: naive_chain.sample(x["logits"], x["state"])


def torch_chain(chain):
    return lambda x: lambda: chain(x["logits"], x["k"], x["p"])


def compiled(chain):
    def factory(x):
        call = torch.compile(chain, mode="max-autotune-no-cudagraphs", dynamic=False)
        return lambda: call(x["logits"], x["k"], x["p"])

    return factory


def flashinfer(x):
    try:
        from flashinfer import sampling
    except ImportError as why:
        raise Absent("flashinfer-python is not installed") from why
    logits, k, p = x["logits"].float(), x["k"], x["p"]
    if not k and p == 1:
        return lambda: sampling.sampling_from_logits(logits, deterministic=True)
    if not k:
        return lambda: sampling.top_p_sampling_from_probs(torch.softmax(logits, -1), p, deterministic=True)
    return lambda: sampling.top_k_top_p_sampling_from_logits(
        logits, k, p, filter_apply_order="top_k_first", deterministic=True
    )
