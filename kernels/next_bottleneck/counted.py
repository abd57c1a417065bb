"""Count each slot's launches and bytes in a step, without a GPU to measure: the waterfall's other half.

The machine that runs a Triton kernel counts its bytes. An operation of PyTorch counts as one launch that
reads its inputs and writes its outputs, as on a GPU when nothing is fused.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from kernels.next_bottleneck.slots import Filling


@dataclass
class Counted:
    launches: int = 0
    loaded: int = 0  # bytes that launches asked for
    stored: int = 0

    @property
    def bytes(self) -> int:
        return self.loaded + self.stored


@dataclass
class Meter:
    """Counts by slot. Anything outside the slots is under "loop"."""

    slots: dict[str, Counted] = field(default_factory=dict)
    here: str = "loop"

    def marked(self, fillings: dict[str, Filling]) -> dict[str, Filling]:
        """Return the fillings, whose calls tell the meter their slot."""
        return {name: Filling(self._making(name, one), one.source) for name, one in fillings.items()}

    def _making(self, name: str, one: Filling) -> Callable:
        def make(weight, shape):
            call = one.make(weight, shape)

            def told(*given):
                before, self.here = self.here, name
                try:
                    return call(*given)
                finally:
                    self.here = before

            return told

        return make

    def add(self, loaded: int, stored: int) -> None:
        one = self.slots.setdefault(self.here, Counted())
        one.launches += 1
        one.loaded += loaded
        one.stored += stored

    def kernel(self, name: str, moved) -> None:
        """Hear of a launch of a Triton kernel."""
        self.add(moved.loaded, moved.stored)

    def operations(self) -> "Operations":
        """Return a context in which PyTorch's operations are counted."""
        return Operations(self)


class Operations(TorchDispatchMode):
    def __init__(self, meter: Meter):
        super().__init__()
        self.meter = meter

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        answer = function(*args, **(kwargs or {}))
        name = function.overloadpacket.__name__
        if not function.is_view and not name.startswith(FREE):
            whole, rest = args[:1], args[1:]
            if name in PICKING:
                self.meter.add(held(rest) + held(answer), held(answer))
            elif name in PLACING:
                self.meter.add(held(rest), held(args[2:]))
            else:
                self.meter.add(held(whole) + held(rest), held(answer))
        return answer


FREE = ("empty", "new_empty", "detach", "_local_scalar")  # no launch
PICKING = (
    "embedding",
    "index",
    "gather",
    "index_select",
)  # of their first argument they read only the indexed part
PLACING = ("index_put", "index_put_")


def held(values) -> int:
    """Bytes of all tensors among them, each memory's part once."""
    tensors = [one for one in tree_leaves(values) if isinstance(one, torch.Tensor)]
    return sum({(t.data_ptr(), t.nbytes): t.nbytes for t in tensors}.values())
