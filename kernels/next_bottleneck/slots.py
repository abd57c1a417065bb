"""Define the operations of one decode step as slots: inputs and outputs, the question that fills each, and its
substitutes.

A slot is filled by a call of the course, by plain PyTorch, or by the learner's own. Its contract names every argument
with its axes, its dtype and whether the call writes it, so that a wrong filling is refused with a sentence and not
found in the text that the model speaks. Axes are one letter each:

    T rows of this step (batch when decoding, tokens when a prompt is read)   H hidden   V vocabulary
    W columns of q, k and v together   O columns of the attention's output    D head dim   A query heads   G key heads
    E experts   K experts of a token   R rows of all pairs, T x K             P pages     S tokens of a page
    L pages of a sequence              B keys of a sequence                   1 more than E, in expert_offsets, is X
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from kernels.next_bottleneck.shapes import Shape
from kernels.require import must

DTYPES = {
    "16": (torch.float16, torch.bfloat16),
    "fp32": (torch.float32,),
    "int32": (torch.int32,),
}


@dataclass(frozen=True)
class Arg:
    """One tensor of a contract. `axes` are letters of the module's table. Weights are in the filling's own form."""

    name: str
    axes: str
    dtype: str = "16"
    written: bool = False
    may_be_none: bool = False


@dataclass(frozen=True)
class Slot:
    name: str
    asks: str
    takes: tuple[Arg, ...]
    gives: tuple[Arg, ...]
    question: (
        str | None
    )  # of the labs or of this topic's capstone, or None where the course's kernel fills the slot
    origin: str  # "lab", "capstone" or "course"
    weight: str | None = None  # the weight that is bound before the first call
    why: str = ""  # why no lab fills it, or what the adapter adds


SLOTS = (
    Slot(
        "embed",
        "x[t] = embedding[tokens[t]]",
        (Arg("tokens", "T", "int32"),),
        (Arg("x", "TH"),),
        None,
        "course",
        "embedding",
        "a lookup, and the launch after which the step's inputs are at rest",
    ),
    Slot(
        "norm",
        "residual += x where x is given, and then y = residual / rms(residual) * weight",
        (Arg("x", "TH", may_be_none=True), Arg("residual", "TH", written=True)),
        (Arg("y", "TH"),),
        "next_bottleneck.residual_norm",
        "capstone",
        "norm",
        "lab 00 writes LayerNorm with GELU, which this model does not have",
    ),
    Slot(
        "qkv",
        "y = x @ w.T, the columns of q before those of k and v",
        (Arg("x", "TH"),),
        (Arg("y", "TW"),),
        "gemm_tiling.tiled_gemm",
        "lab",
        "qkv",
    ),
    Slot(
        "rotary",
        "norm q and k by head, turn them by their position, and put k and v into the page of their position",
        (
            Arg("qkv", "TW"),
            Arg("lens", "T", "int32"),
            Arg("table", "TL", "int32"),
            Arg("k_cache", "PGSD", written=True),
            Arg("v_cache", "PGSD", written=True),
        ),
        (Arg("q", "TAD"),),
        "next_bottleneck.rotary_cache",
        "capstone",
        "qk_norm",
        "no lab writes a cache",
    ),
    Slot(
        "attention",
        "each row's query over the keys of its own sequence, whose pages the table names",
        (
            Arg("q", "TAD"),
            Arg("k_cache", "PGSD"),
            Arg("v_cache", "PGSD"),
            Arg("lens", "T", "int32"),
            Arg("table", "TL", "int32"),
        ),
        (Arg("y", "TAD"),),
        "flash_attention.split_decode",
        "lab",
        None,
        "the lab's cache is contiguous: the adapter gathers each sequence's pages first, which moves them twice more",
    ),
    Slot(
        "prompt",
        "causal attention of one sequence's T newest queries over its B keys",
        (Arg("q", "TAD"), Arg("k", "GBD"), Arg("v", "GBD")),
        (Arg("y", "TAD"),),
        "flash_attention.forward",
        "lab",
    ),
    Slot(
        "out",
        "y = x @ w.T",
        (Arg("x", "TO"),),
        (Arg("y", "TH"),),
        "gemm_tiling.tiled_gemm",
        "lab",
        "out",
    ),
    Slot(
        "router",
        "the K experts with the largest x @ w.T, best first, and their softmax among the chosen",
        (Arg("x", "TH"),),
        (Arg("topk_ids", "TK", "int32"), Arg("topk_weights", "TK", "fp32")),
        None,
        "course",
        "router",
        "lab 03 routes in numpy and writes no kernel for it",
    ),
    Slot(
        "order",
        "rows of x by expert, with each expert's first row, each row's (token, slot) pair, and each pair's row",
        (Arg("x", "TH"), Arg("topk_ids", "TK", "int32")),
        (
            Arg("rows", "RH"),
            Arg("expert_offsets", "X", "int32"),
            Arg("inv_permuted_idx", "TK", "int32"),
        ),
        "moe_routing.order",
        "lab",
        None,
        "the lab writes the tables: the adapter gathers the rows",
    ),
    Slot(
        "experts",
        "each expert's rows through its 4-bit gate, up and down: down(SiLU(gate) * up)",
        (Arg("rows", "RH"), Arg("expert_offsets", "X", "int32")),
        (Arg("y", "RH"),),
        "quantization_layouts.grouped_kbit",
        "lab",
        "experts",
        "the lab multiplies: the adapter calls it twice, and takes SiLU in between",
    ),
    Slot(
        "combine",
        "y[t] = the sum over a token's k pairs of topk_weights * rows[inv_permuted_idx]",
        (Arg("rows", "RH"), Arg("inv_permuted_idx", "TK", "int32"), Arg("topk_weights", "TK", "fp32")),
        (Arg("y", "TH"),),
        "moe_routing.fused_combine",
        "lab",
    ),
    Slot(
        "head",
        "logits = x @ w.T, in fp32: 16 bits would make ties of near neighbours",
        (Arg("x", "TH"),),
        (Arg("logits", "TV", "fp32"),),
        "gemm_tiling.tiled_gemm",
        "lab",
        "head",
    ),
    Slot(
        "sample",
        "the token with the largest logit (of equals the first), or a draw where the temperature is above 0",
        (Arg("logits", "TV", "fp32"), Arg("lens", "T", "int32")),
        (Arg("tokens", "T", "int32"),),
        "sampling_fusion.draw",
        "lab",
        "sampling",
    ),
)
# Calls that do the work of several slots together. A step uses one where it is filled, and otherwise the slots.
FUSIONS = (
    Slot(
        "routed",
        "router and order in one",
        (Arg("x", "TH"),),
        (
            Arg("topk_ids", "TK", "int32"),
            Arg("topk_weights", "TK", "fp32"),
            Arg("rows", "RH"),
            Arg("expert_offsets", "X", "int32"),
            Arg("inv_permuted_idx", "TK", "int32"),
        ),
        None,
        "course",
        "router",
    ),
)
BY_NAME = {slot.name: slot for slot in (*SLOTS, *FUSIONS)}


@dataclass(frozen=True)
class Filling:
    """A slot's code: `make(weight, shape)` is called once for each layer, and returns the call.

    The call gets the slot's arguments in their order. `weight` is what weights.py holds for the slot, or None.
    """

    make: Callable
    source: str  # "course", "plain" or "learner"

    def __post_init__(self):
        must(callable(self.make), "make", "a function", type(self.make).__name__, "pass the function itself")
        sources = ("course", "plain", "learner")
        must(self.source in sources, "source", f"one of {', '.join(sources)}", repr(self.source), "name it")


def filled(base: dict[str, Filling], **own: Filling) -> dict[str, Filling]:
    """Return fillings of every slot: `own` where given, those of `base` elsewhere.

    A fusion of the base makes room for a filling of one of its slots alone.
    """
    for name, one in own.items():
        must(name in BY_NAME, "slot", f"one of {', '.join(BY_NAME)}", repr(name), "pick a listed one")
        kind = type(one).__name__
        must(isinstance(one, Filling), name, "a Filling", kind, "wrap it: Filling(make, 'learner')")
    found = {**base, **own}
    if {"router", "order"} & own.keys() and "routed" not in own:
        found.pop("routed", None)
    missing = [slot.name for slot in SLOTS if slot.name not in found]
    must(not missing, "fillings", "there for every slot", f"none for {', '.join(missing)}", "take plain ones")
    return found


def sizes_of(shape: Shape) -> dict[str, int]:
    """Return the letters that a shape fixes. T, R, P, L, S and B come with the call."""
    return {
        "H": shape.hidden,
        "V": shape.vocabulary,
        "W": shape.qkv_width,
        "O": shape.q_width,
        "D": shape.head_dim,
        "A": shape.q_heads,
        "G": shape.kv_heads,
        "K": shape.top_k,
        "X": shape.experts + 1,
        "S": shape.page,
    }


def check(slot: Slot, what: str, args: tuple[Arg, ...], values: tuple, sizes: dict[str, int]) -> None:
    """Refuse values that break the contract. Letters met for the first time are written into `sizes`."""
    given = len(values)
    must(given == len(args), f"{slot.name}: {what}", f"{len(args)} in number", given, "see the contract")
    for arg, value in zip(args, values, strict=True):
        if value is None and arg.may_be_none:
            continue
        name = f"{slot.name}: {arg.name}"
        must(isinstance(value, torch.Tensor), name, "a tensor", type(value).__name__, "see the contract")
        for axis, size in zip(arg.axes, value.shape, strict=False):
            sizes.setdefault(axis, size)
        if "T" in sizes and "K" in sizes:
            sizes.setdefault("R", sizes["T"] * sizes["K"])
        wanted = tuple(sizes.get(axis) for axis in arg.axes)
        must(
            tuple(value.shape) == wanted,
            name,
            f"{wanted}, axes {' '.join(arg.axes)},",
            tuple(value.shape),
            "see the slot's contract",
        )
        if arg.dtype == "16" and "dtype" in sizes:
            fits, said = value.dtype == sizes["dtype"], str(sizes["dtype"])
        else:
            fits, said = value.dtype in DTYPES[arg.dtype], " or ".join(map(str, DTYPES[arg.dtype]))
        must(fits, name, said, value.dtype, "convert it, or round once at the end")
        if arg.dtype == "16":
            sizes.setdefault("dtype", value.dtype)


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor's bytes, in which a NaN equals itself."""
    return tensor.reshape(-1).contiguous().view(torch.uint8)


def guarded(slot: Slot, call: Callable, shape: Shape) -> Callable:
    """Return the call with its arguments and answers held to the contract, every time.

    It also sees to it that nothing is written but what the contract names. That costs copies, so a step that is timed
    runs unguarded.
    """

    def held(*values):
        sizes = sizes_of(shape)
        check(slot, "arguments", slot.takes, values, sizes)
        before = [
            None if arg.written or value is None else value.clone()
            for arg, value in zip(slot.takes, values, strict=True)
        ]
        answer = call(*values)
        check(slot, "answers", slot.gives, answer if isinstance(answer, tuple) else (answer,), sizes)
        for arg, old, now in zip(slot.takes, before, values, strict=True):
            same = old is None or torch.equal(bits(old), bits(now))
            must(same, f"{slot.name}: {arg.name}", "left as it was", "another one", "write to an output")
        return answer

    return held
