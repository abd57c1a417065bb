"""Sample in other ways, for the benchmark: torch's chains, one launch a rule, FlashInfer. One factory each."""

import torch

from kernels.bench.row import Absent
from kernels.sampling_fusion import naive_chain


def exponential_race(weight):
    return (weight / torch.empty_like(weight).exponential_()).argmax(-1, keepdim=True)


def by_topk(logits, k: int, p: float, m: float):
    """Take top-k by value, then top-p on the k, as most code does when k is small."""
    x, token = torch.topk(logits.float(), k, dim=-1)
    weight = torch.softmax(x, -1)
    weight = torch.where(torch.cumsum(weight, -1) - weight < p, weight, 0.0)
    return token.gather(1, exponential_race(weight))


def by_sort(logits, k: int, p: float, m: float):
    """Run the chain for any k and p: sort, cut, running sum, cut, draw."""
    x, token = logits.float().sort(dim=-1, descending=True)
    if k:
        x[:, k:] = float("-inf")
    weight = torch.softmax(x, -1)
    weight = torch.where(torch.cumsum(weight, -1) - weight < p, weight, 0.0)
    return token.gather(1, exponential_race(weight))


def by_share(logits, k: int, p: float, m: float):
    """Apply min-p alone: a token with a share m of the best's weight stays. Plain sampling is m = 0."""
    weight = torch.softmax(logits.float(), -1)
    if m:
        weight = torch.where(weight >= m * weight.amax(-1, keepdim=True), weight, 0.0)
    return exponential_race(weight)


def one_launch_a_rule(x):
    return lambda: naive_chain.sample(x["logits"], x["state"])


def torch_chain(chain):
    return lambda x: lambda: chain(x["logits"], *x["filters"])


def compiled(chain):
    def factory(x):
        call = torch.compile(chain, mode="max-autotune-no-cudagraphs", dynamic=False)
        return lambda: call(x["logits"], *x["filters"])

    return factory


def flashinfer_sampling():
    try:
        from flashinfer import sampling
    except ImportError as why:
        raise Absent("flashinfer-python is not installed") from why
    return sampling


GIVEN = {"deterministic": True, "seed": 1, "offset": 0}  # a generator's own state can't be part of a graph


def flashinfer_of_logits(x):
    sampling, (k, p, m) = flashinfer_sampling(), x["filters"]
    logits = x["logits"].float()
    if k:
        more = GIVEN | {"filter_apply_order": "top_k_first"}
        return lambda: sampling.top_k_top_p_sampling_from_logits(logits, k, p, **more)
    if p < 1 or m:
        raise Absent("takes probabilities for this filter")
    return lambda: sampling.sampling_from_logits(logits, **GIVEN)


def flashinfer_of_shares(x):
    """Its softmax, then one of its samplers, which take probabilities."""
    sampling, (k, p, m) = flashinfer_sampling(), x["filters"]
    logits = x["logits"].float()
    softmax = getattr(sampling, "softmax", None) or (lambda logits: torch.softmax(logits, -1))
    if k:
        more = GIVEN | {"filter_apply_order": "top_k_first"}
        return lambda: sampling.top_k_top_p_sampling_from_probs(softmax(logits), k, p, **more)
    if m:
        return lambda: sampling.min_p_sampling_from_probs(softmax(logits), m, **GIVEN)
    if p < 1:
        return lambda: sampling.top_p_sampling_from_probs(softmax(logits), p, **GIVEN)
    return lambda: sampling.sampling_from_probs(softmax(logits), **GIVEN)


FLASHINFER = {"FlashInfer": flashinfer_of_logits, "FlashInfer, softmax first": flashinfer_of_shares}


def of(timed) -> dict:
    """Return the libraries that can run a timed case."""
    if timed.ask == {"temperature": 0.0}:
        return {"torch argmax": lambda x: lambda: x["logits"].argmax(-1)}
    if timed.tables or set(timed.ask) - {"top_k", "top_p", "min_p"}:
        return {"naive chain": one_launch_a_rule}
    k, p = timed.ask.get("top_k", 0), timed.ask.get("top_p", 1.0)
    if not k and p == 1:
        return {"torch": torch_chain(by_share), "compiled": compiled(by_share)} | FLASHINFER
    peers = {"naive chain": one_launch_a_rule, "torch sort": torch_chain(by_sort)} | FLASHINFER
    if k:
        peers |= {"torch topk": torch_chain(by_topk), "compiled": compiled(by_topk)}
    return peers
