"""Validate the layer's arguments, once for all kernels. Nothing here waits for a GPU."""

from dataclasses import dataclass
from functools import cached_property

import torch

from kernels.moe_routing.rules import Rule
from kernels.replays import Replays
from kernels.require import must

DTYPES = (torch.bfloat16, torch.float16)
TILES = (1, 16, 32, 64, 128, 192)  # rows, of which 192 is for the copy engine alone
MOST_EXPERTS = 512  # a block's logits stay in registers


@dataclass(frozen=True)
class Experts:
    """Hold the weights of all experts in the layout of linear layers. Shared experts, which every token visits, are last."""

    gate_up: torch.Tensor  # (experts, 2 * intermediate, hidden), the rows of gate, then those of up
    down: torch.Tensor  # (experts, hidden, intermediate)
    shared: int = 0

    def __post_init__(self):
        for name, weight in (("gate_up", self.gate_up), ("down", self.down)):
            must(
                weight.ndim == 3,
                name,
                "3-d: experts, outputs, inputs",
                f"{weight.ndim}-d",
                "stack the experts",
            )
            must(
                weight.dtype in DTYPES,
                name,
                "bf16 or fp16",
                weight.dtype,
                "convert it, or pass calls as Narrow",
            )
            must(
                weight.is_contiguous(), name, "contiguous", f"strides {weight.stride()}", "call .contiguous()"
            )
        (count, twice, hidden), expected = self.gate_up.shape, self.gate_up.shape[1] // 2
        must(twice % 2 == 0, "gate_up", "of an even number of rows", twice, "gate and up have as many")
        must(
            tuple(self.down.shape) == (count, hidden, expected),
            "down",
            f"{(count, hidden, expected)} as gate_up says",
            tuple(self.down.shape),
            "(experts, hidden, intermediate)",
        )
        for name, size in (("hidden", hidden), ("intermediate", expected)):
            must(
                size > 0 and size % 8 == 0,
                name,
                "a multiple of 8",
                size,
                "pad it: rows are read 16 bytes at a time",
            )
        for what in ("dtype", "device"):
            mine, other = getattr(self.gate_up, what), getattr(self.down, what)
            must(mine == other, "down", f"{mine} as gate_up is", other, "make them alike")
        check_shared(self.shared, count)

    @cached_property
    def replays(self) -> Replays:
        """Return calls of the layer with these weights."""
        return Replays()

    @property
    def count(self) -> int:
        return self.gate_up.shape[0]

    @property
    def hidden(self) -> int:
        return self.gate_up.shape[2]

    @property
    def intermediate(self) -> int:
        return self.down.shape[2]

    @property
    def dtype(self) -> torch.dtype:
        return self.gate_up.dtype

    @property
    def device(self) -> torch.device:
        return self.gate_up.device


def check_shared(shared: int, count: int) -> None:
    must(
        isinstance(shared, int) and 0 <= shared < count,
        "shared",
        f"from 0 to {count - 1}",
        shared,
        "some expert is left to route to",
    )


def check_router(x, router, rule: Rule, bias) -> int:
    """Return the number of experts to choose from."""
    must(x.ndim == 2, "x", "2-d: tokens, hidden", f"{x.ndim}-d", "flatten its leading axes")
    must(x.dtype in DTYPES, "x", "bf16 or fp16", x.dtype, "convert it")
    must(
        x.stride(1) == 1 or not x.numel(),
        "x",
        "dense along a row",
        f"a stride of {x.stride(1)}",
        "call .contiguous()",
    )
    must(
        router.ndim == 2 and router.shape[1] == x.shape[1],
        "router",
        f"(experts, {x.shape[1]})",
        tuple(router.shape),
        "a row for each expert",
    )
    must(router.dtype == x.dtype, "router", f"{x.dtype} as x is", router.dtype, "convert one of them")
    must(router.is_contiguous(), "router", "contiguous", f"strides {router.stride()}", "call .contiguous()")
    must(router.device == x.device, "router", f"on x's device {x.device}", router.device, "move it there")
    experts = router.shape[0]
    must(
        experts <= MOST_EXPERTS,
        "router",
        f"of {MOST_EXPERTS} experts at most",
        experts,
        "cut it in two layers",
    )
    must(isinstance(rule, Rule), "rule", "a Rule", type(rule).__name__, "take one of rules.py")
    rule.check(experts)
    if bias is not None:
        must(
            rule.scores == "sigmoid", "bias", "left out for a softmax", rule.scores, "it moves sigmoids alone"
        )
        must(
            tuple(bias.shape) == (experts,) and bias.is_contiguous(),
            "bias",
            f"({experts},)",
            tuple(bias.shape),
            "one number for each routed expert",
        )
        must(bias.device == x.device, "bias", f"on x's device {x.device}", bias.device, "move it there")
    return experts


def check_order(shared, tile) -> None:
    whole = isinstance(shared, int) and shared >= 0
    must(whole, "shared", "a whole number of at least 0", shared, "count the experts that every token visits")
    must(tile in TILES, "tile", f"one of {', '.join(map(str, TILES))}", tile, "pick a listed one")


def check_layer(x, router, experts, rule: Rule, bias, out) -> None:
    routed = check_router(x, router, rule, bias)
    known = hasattr(experts, "shared")
    must(
        known,
        "experts",
        "Experts or Narrow",
        type(experts).__name__,
        "wrap the weights: Experts(gate_up, down)",
    )
    must(
        experts.count - experts.shared == routed,
        "experts",
        f"{routed} as the router has, and the shared ones",
        f"{experts.count} of which {experts.shared} shared",
        "say with shared= how many stand last",
    )
    _check_rows(x, experts, out)


def check_chosen(x, topk_ids, topk_weights, experts, out) -> None:
    """Check shapes always, and the experts' numbers only on a CPU, because reading them from a GPU would be a wait."""
    must(isinstance(experts, Experts), "experts", "Experts", type(experts).__name__, "Experts(gate_up, down)")
    must(
        experts.shared == 0,
        "shared",
        "0",
        experts.shared,
        "who chooses names every expert of a token, shared ones too",
    )
    must(
        experts.count <= MOST_EXPERTS,
        "experts",
        f"{MOST_EXPERTS} at most",
        experts.count,
        "cut it in two layers",
    )
    must(x.ndim == 2, "x", "2-d: tokens, hidden", f"{x.ndim}-d", "flatten its leading axes")
    dense = x.stride(1) == 1 or not x.numel()
    must(dense, "x", "dense along a row", f"a stride of {x.stride(1)}", "call .contiguous()")
    fits = (
        topk_ids.ndim == 2 and len(topk_ids) == len(x) and topk_ids.shape[1] > 0 and topk_ids.is_contiguous()
    )
    must(
        fits and topk_ids.dtype == torch.int32,
        "topk_ids",
        f"({len(x)}, at least 1) of int32, contiguous",
        f"{tuple(topk_ids.shape)} of {topk_ids.dtype}",
        "name each token's experts",
    )
    must(
        topk_ids.device == x.device, "topk_ids", f"on x's device {x.device}", topk_ids.device, "move it there"
    )
    if topk_weights is not None:
        must(
            topk_weights.shape == topk_ids.shape
            and topk_weights.dtype == torch.float32
            and topk_weights.is_contiguous(),
            "topk_weights",
            f"{tuple(topk_ids.shape)} of fp32, contiguous",
            f"{tuple(topk_weights.shape)} of {topk_weights.dtype}",
            "give one to each pair",
        )
        must(
            topk_weights.device == x.device,
            "topk_weights",
            f"on x's device {x.device}",
            topk_weights.device,
            "move them there",
        )
    if topk_ids.device.type == "cpu" and topk_ids.numel():
        low, high = int(topk_ids.min()), int(topk_ids.max())
        inside = 0 <= low <= high < experts.count
        must(
            inside, "topk_ids", f"from 0 to {experts.count - 1}", f"{low} to {high}", "number experts from 0"
        )
    _check_rows(x, experts, out)


def _check_rows(x, experts, out) -> None:
    must(
        x.shape[1] == experts.hidden,
        "x",
        f"(tokens, {experts.hidden})",
        tuple(x.shape),
        "the experts take that width",
    )
    must(x.dtype == experts.dtype, "x", f"{experts.dtype} as the experts are", x.dtype, "convert it")
    must(
        x.device == experts.device, "experts", f"on x's device {x.device}", experts.device, "move them there"
    )
    if out is not None:
        must(
            tuple(out.shape) == tuple(x.shape),
            "out",
            str(tuple(x.shape)),
            tuple(out.shape),
            "leave it out to have it made",
        )
        must(out.device == x.device, "out", f"on x's device {x.device}", out.device, "make it there")
        must(
            out.stride(1) == 1 or not out.numel(),
            "out",
            "dense along a row",
            f"a stride of {out.stride(1)}",
            "leave it out to have it made",
        )
