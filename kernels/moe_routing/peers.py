"""Call other people's ways to the same layer, for the benchmark, with one factory each, absent where not installed.

Every peer routes by itself, with scores in fp32, and takes the weights in our layout.
"""

import torch
import torch.nn.functional as F

from kernels import torch_grouped
from kernels.bench.row import Absent


def routed(inputs):
    """Return (topk_ids int64, topk_weights fp32), both (tokens, k), by PyTorch's own operations."""
    case, rule = inputs["case"], inputs["case"].rule
    logits = scores(inputs["x"], inputs["router"])
    if rule.scores == "sigmoid":
        each = logits.sigmoid()
        topk_ids = by_groups(each if inputs["bias"] is None else each + inputs["bias"], rule)
        topk_weights = each.gather(1, topk_ids)
    elif rule.scores == "softmax of all":
        topk_weights, topk_ids = logits.softmax(-1).topk(rule.top_k)
    else:
        best, topk_ids = logits.topk(rule.top_k)
        topk_weights = best.softmax(-1)
    if rule.renormalise:
        topk_weights = topk_weights / topk_weights.sum(-1, keepdim=True)
    topk_weights = topk_weights * rule.scale
    if case.shared:
        last = torch.arange(case.experts, case.experts + case.shared, device=topk_ids.device)
        topk_ids = torch.cat([topk_ids, last.expand(len(topk_ids), -1)], 1)
        topk_weights = torch.cat([topk_weights, topk_weights.new_ones(len(topk_weights), case.shared)], 1)
    return topk_ids, topk_weights


def scores(x, router):
    """Return scores in fp32, because in 16 bits different experts would tie."""
    try:
        return torch.mm(x, router.t(), out_dtype=torch.float32)
    except (TypeError, RuntimeError):  # a PyTorch that lacks it
        return x.float() @ router.float().t()


def by_groups(by, rule):
    if rule.groups > 1:
        each = by.view(len(by), rule.groups, -1)
        best = each.topk(2, -1).values.sum(-1).topk(rule.groups_kept).indices
        closed = torch.ones(len(by), rule.groups, dtype=torch.bool, device=by.device).scatter_(1, best, False)
        by = each.masked_fill(closed[..., None], float("-inf")).view_as(by)
    return by.topk(rule.top_k).indices


def loop(inputs):
    """Loop over the experts, with the tokens of each known beforehand. A real loop must wait for the GPU to learn
    them."""
    case, x = inputs["case"], inputs["x"]
    topk_ids, _ = routed(inputs)
    mine = [torch.nonzero(topk_ids == e, as_tuple=True) for e in range(len(inputs["down"]))]
    mine = [(e, token, slot) for e, (token, slot) in enumerate(mine) if len(token)]
    gate_up, down = inputs["gate_up"], inputs["down"]

    def call():
        _, topk_weights = routed(inputs)
        out = torch.zeros(len(x), case.hidden, device=x.device)
        for e, token, slot in mine:
            gate, up = F.linear(x[token], gate_up[e]).chunk(2, -1)
            y = F.linear(F.silu(gate) * up, down[e])
            out.index_add_(0, token, y * topk_weights[token, slot, None])
        return out.to(x.dtype)

    return call


def grouped_mm(inputs):
    """Sort the pairs, run torch's grouped GEMM twice, put the rows back and add."""
    product = torch_grouped.product()
    if product is None:
        raise Absent("this PyTorch has no grouped_mm")
    x, count = inputs["x"], len(inputs["down"])
    gate_up, down = inputs["gate_up"].transpose(1, 2), inputs["down"].transpose(1, 2)
    every = torch.arange(count, device=x.device)

    def call():
        topk_ids, topk_weights = routed(inputs)
        flat, order = topk_ids.flatten().sort(stable=True)
        ends = torch.searchsorted(flat, every, right=True).to(torch.int32)
        rows = x[order // topk_ids.shape[1]]
        gate, up = product(rows, gate_up, offs=ends).chunk(2, -1)
        y = product(F.silu(gate) * up, down, offs=ends)
        back = torch.empty_like(y).index_copy_(0, order, y).view(*topk_ids.shape, -1)
        return torch.einsum("tkh,tk->th", back, topk_weights.to(back.dtype))

    return call


def vllm(inputs):
    """vLLM's fused Triton experts, with its own softmax top-k where the rule is one."""
    from vllm.model_executor.layers.fused_moe import fused_experts, fused_topk

    case, x, rule = inputs["case"], inputs["x"], inputs["case"].rule
    by_softmax = rule.scores != "sigmoid" and rule.scale == 1 and not case.shared
    renormalise = rule.renormalise or rule.scores == "softmax of chosen"

    def call():
        if by_softmax:
            topk_weights, topk_ids = fused_topk(x, scores(x, inputs["router"]), rule.top_k, renormalise)[:2]
        else:
            topk_ids, topk_weights = routed(inputs)
        return fused_experts(
            x, inputs["gate_up"], inputs["down"], topk_weights.float(), topk_ids.to(torch.int32)
        )

    return call


def triton_kernels(inputs):
    """Run Triton's own matmul_ogs, with SiLU by PyTorch, because its fused activation is another function."""
    from triton_kernels.matmul_ogs import matmul_ogs
    from triton_kernels.routing import routing

    case, x, rule = inputs["case"], inputs["x"], inputs["case"].rule
    if rule.scores == "sigmoid" or case.shared or (rule.scores == "softmax of all" and not rule.renormalise):
        raise Absent("it routes by the softmax of the chosen, without shared experts")
    gate_up, down = inputs["gate_up"].transpose(1, 2), inputs["down"].transpose(1, 2)

    def call():
        data, gather, scatter = routing(scores(x, inputs["router"]), rule.top_k)
        gate, up = matmul_ogs(x, gate_up, None, data, gather_indx=gather).chunk(2, -1)
        return matmul_ogs(F.silu(gate) * up, down, None, data, scatter_indx=scatter, gammas=data.gate_scal)

    return call


LAYERS = {"torch loop": loop, "torch grouped_mm": grouped_mm, "vLLM": vllm, "triton_kernels": triton_kernels}
