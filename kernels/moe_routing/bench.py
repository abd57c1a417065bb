"""List the rows of the benchmark: the whole layer, router included, against PyTorch's ways and other libraries.

The bound counts the weights of the experts that are expected to be picked, the router, and the tokens in and out, once.
"""

import torch

from kernels.bench.row import Row
from kernels.compare import relative_error, spread
from kernels.moe_routing import cases, cost, peers, reference
from kernels.moe_routing.arguments import Experts
from kernels.moe_routing.layer import layer
from kernels.tensors import to_numpy

TORCH = {"bf16": torch.bfloat16, "fp16": torch.float16}
TOLERANCE = 1e-2  # 16-bit rows between the experts' two products and before the sum
CHECKED_WEIGHTS = 2e9  # elements that a check turns into float64 in seconds
MOST_CHECKED = 16  # tokens
BIAS = 0.01  # small, as in a balanced router, since a larger bias leaves experts without a token


def rows(device):
    for case in cases.TIMED:
        bound = layer_cost(case)
        yield Row(
            op="MoE layer",
            case=case.name,
            dtype=case.dtype,
            flops=bound.flops,
            bytes=bound.bytes_moved,
            inputs=lambda seed, case=case: draw(case, seed, device),
            ours=ours,
            check=check,
            tolerance=TOLERANCE,
            peers=peers.LAYERS,
            quick=case.quick,
        )


def layer_cost(case) -> cost.LayerCost:
    active = cost.expected_experts(case.tokens, case.rule.top_k, case.experts) + case.shared
    return cost.layer_cost(
        case.tokens,
        case.slots,
        case.experts + case.shared,
        case.hidden,
        case.intermediate,
        active_experts=active,
    )


def draw(case, seed: int, device) -> dict:
    """Draw on the device, in 16 bits from the start, because the weights of some layers fill a quarter of its memory."""
    rng, dtype = torch.Generator(device).manual_seed(seed), TORCH[case.dtype]

    def normal(*shape, scale=1.0):
        return torch.randn(*shape, device=device, dtype=dtype, generator=rng).mul_(scale)

    count, hidden, wide = case.experts + case.shared, case.hidden, case.intermediate
    bias = torch.rand(case.experts, device=device, generator=rng) * BIAS if case.biased else None
    return {
        "case": case,
        "x": normal(case.tokens, hidden),
        "router": normal(case.experts, hidden, scale=hidden**-0.5),
        "gate_up": normal(count, 2 * wide, hidden, scale=hidden**-0.5),
        "down": normal(count, hidden, wide, scale=wide**-0.5),
        "bias": bias,
    }


def ours(inputs):
    case, x = inputs["case"], inputs["x"]
    experts = Experts(inputs["gate_up"], inputs["down"], case.shared)
    out = torch.full_like(x, float("nan"))
    return lambda: layer(x, inputs["router"], experts, case.rule, bias=inputs["bias"], out=out)


def check(inputs, out) -> float:
    """Check some tokens from every stretch. The whole result must be finite and of the right shape."""
    case = inputs["case"]
    if out.shape != inputs["x"].shape or not out.isfinite().all():
        return float("inf")
    each = case.slots * 3 * case.hidden * case.intermediate
    tokens = spread(max(2, min(MOST_CHECKED, int(CHECKED_WEIGHTS // each))), case.tokens)
    if "expected" not in inputs:
        inputs["expected"] = expected(inputs, tokens)
    return relative_error(to_numpy(out[torch.from_numpy(tokens).to(out.device)]), inputs["expected"])


def expected(inputs, tokens):
    """Return the reference's rows of these tokens. Only the experts of these tokens leave the device."""
    case = inputs["case"]
    x = to_numpy(inputs["x"][torch.from_numpy(tokens).to(inputs["x"].device)]).astype(float)
    logits = x @ to_numpy(inputs["router"]).astype(float).T
    bias = None if inputs["bias"] is None else to_numpy(inputs["bias"])
    topk_ids, topk_weights = reference.route(logits, case.rule, bias, case.shared)
    return reference.direct(x, topk_ids, topk_weights, Fetched(inputs["gate_up"]), Fetched(inputs["down"]))


class Fetched:
    """Hold a stack of matrices on a device, each fetched on request."""

    def __init__(self, stack: torch.Tensor):
        self.stack, self.shape = stack, tuple(stack.shape)

    def __getitem__(self, index):
        return to_numpy(self.stack[int(index)])
