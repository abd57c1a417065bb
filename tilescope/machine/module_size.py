"""Measure a module's amount of code, and the values that its loops carry round, before LLVM compiles it."""

from collections.abc import Iterator
from math import prod
from typing import NamedTuple

from .rules_of_numbers import bits
from .tree import Block, Module, Op, Type

THREADS = 32  # of a warp
HOPELESS_REGISTERS = 512  # 32-bit registers for one value. A thread has 255, and LLVM would spend minutes


class ModuleSize(NamedTuple):
    operations: int
    largest: Type  # the tensor with the most elements
    carried: tuple[Type, ...]  # the tensors that loops and branches hand on

    def registers(self, num_warps: int) -> int:
        """Registers of a thread that the largest of the carried tensors takes."""
        return max((registers(type, num_warps) for type in self.carried), default=0)


def module_size(module: Module) -> ModuleSize:
    ops = [op for function in module.functions.values() for op in every_op(function.blocks)]
    types = [type for op in ops for type in op.result_types if type.scalar != "desc"]
    carried = [type for op in ops if op.name.startswith("scf.") for type in op.result_types]
    for function in module.functions.values():
        carried += [type for block in function.blocks[1:] for type in block.types]
    largest = max(types, key=lambda type: prod(type.shape), default=Type("i32"))
    return ModuleSize(
        len(ops), largest, tuple(type for type in carried if type.shape and type.scalar != "desc")
    )


def every_op(blocks: list[Block]) -> Iterator[Op]:
    for op in (op for block in blocks for op in block.ops):
        yield op
        for region in op.regions:
            yield from every_op(region)


def registers(type: Type, num_warps: int) -> int:
    return prod(type.shape) * bits(type) // (32 * THREADS * num_warps)


def hopeless(module: Module, num_warps: int) -> str:
    """Return a complaint if a running tile could not nearly fit in registers, else nothing."""
    found = module_size(module)
    needed = found.registers(num_warps)
    if needed <= HOPELESS_REGISTERS:
        return ""
    tile = next(type for type in found.carried if registers(type, num_warps) == needed)
    return (
        f"a running tile of {' x '.join(map(str, tile.shape))} takes {needed} registers a thread, "
        "and a thread has 255: smaller tiles or more num_warps"
    )
