"""What Triton prints is read, held to the lists, printed again and taken by Triton's own parser."""

import numpy as np
import pytest

from tilescope.lowering import text_of
from tilescope.machine.read import read
from tilescope.machine.tree import BadIR, Block, Module
from tilescope.machine.verify import verify
from tilescope.machine.write import write

from .kernels_for_tests import KERNELS, REFUSED
from .lowering_for_tests import compiled, compiled_directly, same_code


def flat(module: Module) -> list:
    """All that a module holds, arrays as what they compare by."""
    found = []
    for function in module.functions.values():
        found.append(
            (function.name, function.public, function.result_types, function.attributes, function.line)
        )
        found.append(function.argument_attributes)
        found += _flat(function.blocks)
    return found


def _flat(blocks: list[Block]) -> list:
    found = []
    for block in blocks:
        found.append((block.label, block.arguments, block.types))
        for op in block.ops:
            attributes = {
                name: (str(value.dtype), value.tobytes())
                if isinstance(value, np.ndarray | np.generic)
                else value
                for name, value in op.attributes.items()
            }
            found.append((op.name, op.results, op.operands, attributes, op.operand_types, op.result_types))
            found.append((op.successors, op.line))
            for region in op.regions:
                found += _flat(region)
    return found


def round_trip(text: str) -> str:
    module = read(text)
    verify(module)
    printed = write(module)
    again = read(printed)
    verify(again)
    assert flat(again) == flat(module)
    return printed


@pytest.mark.parametrize("name", KERNELS)
def test_what_is_read_is_printed_again(name):
    kernel, types, constants = KERNELS[name]
    debug = name != "mapped"  # Triton itself takes no assertion within map_elementwise
    printed = round_trip(text_of(kernel, types, constants, debug=debug))
    assert write(read(printed)) == printed


@pytest.mark.parametrize("name", sorted(set(KERNELS) - {"descriptor_words"}))
def test_what_is_printed_compiles_to_the_same(name):
    kernel, types, constants = KERNELS[name]
    printed = round_trip(text_of(kernel, types, constants))
    assert same_code(compiled(printed, 90), compiled_directly(kernel, types, constants, {}, 90))


def test_a_descriptor_stays_one_so_that_a_hopper_moves_whole_tiles():
    kernel, types, constants = KERNELS["descriptors"]
    attributes = {(place,): [["tt.divisibility", 16]] for place in range(4)}
    printed = round_trip(text_of(kernel, types, constants, attributes))
    assert "cp.async.bulk.tensor" in compiled(printed, 90)


@pytest.mark.parametrize("name, words", [("assembly", "inline"), ("scaled", "tl.dot_scaled")])
def test_what_no_kernel_may_use_is_told_by_its_line(name, words):
    kernel, types, constants = REFUSED[name]
    module = read(text_of(kernel, types, constants), cell=kernel.fn.__code__.co_filename)
    with pytest.raises(BadIR, match=words) as told:
        verify(module)
    source = open(kernel.fn.__code__.co_filename, encoding="utf-8").read().splitlines()
    assert f"line {told.value.line}: " in str(told.value)
    assert words.removeprefix("tl.") in source[told.value.line - 1]
