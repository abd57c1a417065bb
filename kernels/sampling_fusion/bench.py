"""List the rows of the benchmark: sampling against torch's chains, torch.compile and FlashInfer."""

import os
from concurrent.futures import ThreadPoolExecutor

import torch

from kernels.bench.row import Row
from kernels.sampling_fusion import cases, cost, fused, peers
from kernels.sampling_fusion.accept import acceptable
from kernels.sampling_fusion.reference import Ranking, is_greedy, kept, processed
from kernels.sampling_fusion.requests import Requests
from kernels.sampling_fusion.state import State

SLACK = 1e-4  # of p, because rounding decides the side of a token exactly at the border
TORCH = {"fp32": torch.float32, "bf16": torch.bfloat16}


def rows(device):
    for timed in cases.TIMED:
        case = timed.case()
        elem = TORCH[timed.dtype].itemsize
        yield Row(
            op="sampling",
            case=f"{timed.name} B{timed.batch} {timed.dtype}",
            dtype="bf16",
            flops=0,
            bytes=cost.compulsory_bytes(timed.batch, timed.vocabulary, elem, masks=timed.masks),
            inputs=lambda seed, case=case: draw(case, seed, device),
            ours=ours,
            check=check,
            check_peer=check_peer,
            tolerance=0.0,
            peers=peers.of(timed),
            quick=timed.quick,
        )


def draw(case, seed, device) -> dict:
    rng = torch.Generator(device).manual_seed(seed)
    logits = torch.randn(case.batch, case.vocabulary, device=device, generator=rng) * 3
    requests = cases.requests_of(case, seed)
    return {
        "logits": logits.to(TORCH[case.dtype]),
        "requests": requests,
        "state": State.of(requests, device),
        "filters": (case.ask.get("top_k", 0), case.ask.get("top_p", 1.0), case.ask.get("min_p", 0.0)),
    }


def check(x, tokens) -> float:
    """The share of rows without the token that the reference draws from the same noise, rounding allowed for."""
    return share_outside(x, tokens, "drawn", acceptable)


def check_peer(x, tokens) -> float:
    """Return the share of rows whose token the filters should have removed, because a peer has noise of its own."""
    return share_outside(x, tokens, "may come", may_come)


def share_outside(x, tokens, name: str, right) -> float:
    """Return the share of wrong rows. Every row is checked, and the right tokens are found once and kept with the inputs."""
    if name not in x:
        logits, requests = x["logits"].float().cpu().numpy(), x["requests"]
        with ThreadPoolExecutor(os.cpu_count()) as pool:  # numpy lets other threads run while it sorts
            x[name] = list(pool.map(lambda i: right(logits[i], requests, i), range(requests.batch)))
    tokens = tokens.reshape(-1).tolist()
    if len(tokens) != len(x[name]):
        return float("inf")
    return sum(token not in allowed for token, allowed in zip(tokens, x[name], strict=True)) / len(tokens)


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
