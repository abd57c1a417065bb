"""List the rows of the benchmark, the work of the busiest of several devices between the two exchanges, by placement.

All other devices wait for the busiest one, so its time with the experts is their time as well. It holds the experts of
its placement and is given the rows that eight (or two) ranks would send. Ours are the fused kernels of the topic
moe_routing, handed over as a call. The exchanges themselves need GPUs that talk to each other, and a command of their
own, kernels.expert_load_balance.measure.
"""

import numpy as np
import torch

from kernels.bench.row import Row
from kernels.compare import relative_error, spread
from kernels.expert_load_balance import cases, cost, peers, reference
from kernels.expert_load_balance.busiest import busiest
from kernels.tensors import to_numpy

DTYPE = torch.bfloat16
TOLERANCE = 1e-2  # 16-bit rows between the experts' two products
CHECKED_WEIGHTS = 2e8  # elements that a check turns into float64 in a second
MOST_CHECKED = 16  # rows
FEW = 256  # tokens of a rank, below which a quick run has the setting


def rows(device, *, fused):
    """`fused(gate_up, down)` gives a call (x, slots, out) that fills out: each row through the expert of its slot."""
    for setting in cases.BUSIEST:
        given, shape = busiest(setting), setting.shape
        work = cost.device_work(given.rows, given.read, shape.hidden, shape.intermediate)
        yield Row(
            op="busiest device",
            case=f"{shape.name} {setting.skew} {setting.ranks}x{setting.tokens} {setting.placement}",
            dtype="bf16",
            flops=work.flops,
            bytes=work.bytes_moved,
            inputs=lambda seed, setting=setting: draw(setting, seed, device),
            ours=lambda inputs: ours(inputs, fused),
            check=check,
            tolerance=TOLERANCE,
            peers=peers.EXPERTS,
            quick=setting.tokens < FEW,
            facts=facts(setting, given),
        )


def below(gpus: int) -> str:
    """Return what the command says under the table."""
    if gpus < 2:
        return ""
    command = f"python -m kernels.expert_load_balance.measure --ranks {gpus}"
    return f"expert_load_balance: {gpus} GPUs are here. {command} measures the exchange itself"


def facts(setting, given) -> dict:
    return {
        "shape": setting.shape.name,
        "ranks": setting.ranks,
        "tokens": setting.tokens,
        "skew": setting.skew,
        "placement": setting.placement,
        "rows": given.rows,
        "experts": len(given.held),
        "read": given.read,
        "imbalance": given.imbalance,
    }


def draw(setting, seed: int, device) -> dict:
    """Draw rows and the held experts' weights on the device, in 16 bits, and slots as int32 (rows, 1) in their order."""
    rng, given, shape = torch.Generator(device).manual_seed(seed), busiest(setting), setting.shape

    def normal(*sizes, scale=1.0):
        return torch.randn(*sizes, device=device, dtype=DTYPE, generator=rng).mul_(scale)

    count, hidden, wide = len(given.held), shape.hidden, shape.intermediate
    return {
        "x": normal(given.rows, hidden),
        "slots": torch.from_numpy(given.slots.astype(np.int32)[:, None]).to(device),
        "gate_up": normal(count, 2 * wide, hidden, scale=hidden**-0.5),
        "down": normal(count, hidden, wide, scale=wide**-0.5),
    }


def ours(inputs, fused):
    call, out = fused(inputs["gate_up"], inputs["down"]), torch.full_like(inputs["x"], float("nan"))
    return lambda: call(inputs["x"], inputs["slots"], out)


def check(inputs, out) -> float:
    """Check some rows, of experts from the first to the last. All must be finite and of the right shape."""
    if out.shape != inputs["x"].shape or not out.isfinite().all():
        return float("inf")
    if "expected" not in inputs:
        inputs["checked"] = chosen_rows(inputs)
        inputs["expected"] = expected(inputs, inputs["checked"])
    return relative_error(to_numpy(out[inputs["checked"]]), inputs["expected"])


def chosen_rows(inputs) -> torch.Tensor:
    by_expert = torch.argsort(inputs["slots"][:, 0], stable=True)
    count = max(2, min(MOST_CHECKED, int(CHECKED_WEIGHTS // (3 * inputs["down"][0].numel()))))
    return by_expert[torch.from_numpy(spread(count, len(by_expert))).to(by_expert.device)]


def expected(inputs, rows):
    """Return the reference's results for these rows. Only the weights of the rows' own experts leave the device."""
    whose = inputs["slots"][rows, 0].long()
    needed, among = torch.unique(whose, return_inverse=True)
    gate, up = inputs["gate_up"][needed].transpose(1, 2).chunk(2, -1)
    stacks = (to_numpy(one.contiguous()) for one in (gate, up, inputs["down"][needed].transpose(1, 2)))
    topk_ids = to_numpy(among)[:, None]
    return reference.moe_of_experts(to_numpy(inputs["x"][rows]), topk_ids, np.ones(topk_ids.shape), *stacks)
