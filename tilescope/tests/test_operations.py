"""Each row of the list: texts that are right pass and are Triton's own; one thing wrong, and it is told."""

import re

import pytest

from tilescope.lowering import prepared
from tilescope.machine import device_functions, libdevice, program
from tilescope.machine.meanings import BOUND, PURE
from tilescope.machine.operations import CONTROL, ENDS, MANY, OPERATIONS
from tilescope.machine.read import read
from tilescope.machine.run import *  # noqa: F403  every meaning is bound
from tilescope.machine.tree import BadIR
from tilescope.machine.verify import verify
from tilescope.machine.write import write

from .lowering_for_tests import parsed
from .texts_of_operations import EXAMPLES

TYPE = re.compile(r"!tt\.\w+<(?:tensor<[^>]*>|[^>]*)>|tensor<(?:[^<>]|<[^>]*>)*>|\w+")
WRONG_VALUES = (
    "-1 : i32",
    "99999 : i32",
    '"word"',
    "array<i32: 7, 7, 7, 7, 7>",
    "#arith.overflow<nsw>",
    "{}",
    "[]",
    "@name",
)

LEGAL = {  # values that some attributes may have
    "message": ('"word"', "@name", "#arith.overflow<nsw>"),
    "prefix": ('"word"', "@name", "#arith.overflow<nsw>"),
    "maxNumImpreciseAcc": ("99999 : i32",),
    "value": WRONG_VALUES,
}


def module(name: str, signature: str, attributes: str, regions: str = "") -> str:
    """A kernel and a function in whose body the operation stands, on line 7 of the cell."""
    operands, results = (TYPE.findall(side) for side in signature.split(" -> "))
    arguments = ", ".join(f"%a{place}: {type}" for place, type in enumerate(operands))
    head = f"%r:{len(results)} = " if results else ""
    used = ", ".join(f"%a{place}" for place in range(len(operands)))
    carried = f"<{{{attributes}}}>" if attributes else ""
    return f"""#loc1 = loc("<answer>":7:3)
"builtin.module"() ({{
  "tt.func"() <{{function_type = () -> (), sym_name = "kernel", sym_visibility = "public"}}> ({{
    "tt.return"() : () -> ()
  }}) : () -> ()
  "tt.func"() <{{function_type = ({", ".join(operands)}) -> (), sym_name = "f", sym_visibility = "private"}}> ({{
  ^bb0{f"({arguments})" if arguments else ""}:
    {head}"{name}"({used}) {carried} {f"({regions})" if regions else ""} : {signature} loc(#loc1)
    "tt.return"() : () -> ()
  }}) : () -> ()
}}) : () -> ()
"""


def checked(text: str):
    found = read(text)
    verify(found)
    return found


def told(name: str, text: str) -> str:
    with pytest.raises(BadIR) as error:
        checked(text)
    assert name.split(".")[-1] in str(error.value) or "constant" in name
    assert error.value.line == 7, str(error.value)
    return str(error.value)


def shorter(signature: str, side: int, left: int) -> str:
    sides = [TYPE.findall(one) for one in signature.split(" -> ")]
    sides[side] = sides[side][:left]
    return " -> ".join(f"({', '.join(types)})" for types in sides)


def longer(signature: str, side: int, by: int) -> str:
    sides = [TYPE.findall(one) for one in signature.split(" -> ")]
    sides[side] += ["i32"] * by
    return " -> ".join(f"({', '.join(types)})" for types in sides)


def test_every_row_has_an_example():
    assert set(EXAMPLES) | {row.name for row in (*CONTROL, *ENDS)} == set(OPERATIONS)


def test_every_row_has_a_meaning():
    ends = {row.name for row in ENDS}
    assert set(OPERATIONS) - ends <= set(BOUND) | set(PURE) | set(program.STRUCTURE)
    assert set(libdevice.SYMBOLS) <= set(device_functions.SYMBOLS)


@pytest.mark.parametrize("name", EXAMPLES)
def test_right_types_pass_and_triton_takes_what_is_printed(name):
    example = EXAMPLES[name]
    for signature in example.right:
        text = write(checked(module(name, signature, example.attributes, example.regions)))
        if name == "gpu.barrier":
            continue  # Triton 3.6's own
        parsed(text, prepared(90)[2])


@pytest.mark.parametrize("name", EXAMPLES)
def test_wrong_types_are_told(name):
    example = EXAMPLES[name]
    for signature in example.wrong:
        told(name, module(name, signature, example.attributes, example.regions))


@pytest.mark.parametrize("name", EXAMPLES)
def test_another_number_of_operands_or_results_is_told(name):
    example, row = EXAMPLES[name], OPERATIONS[name]
    signature = example.right[0]
    for side, wanted in ((0, row.operands), (1, row.results)):
        least, most = wanted if isinstance(wanted, tuple) else (wanted, wanted)
        if most < MANY:
            told(name, module(name, longer(signature, side, most + 1), example.attributes, example.regions))
        if least:
            told(name, module(name, shorter(signature, side, least - 1), example.attributes, example.regions))


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_attribute_is_held_to_its_values(name):
    example, row = EXAMPLES[name], OPERATIONS[name]
    parts = re.findall(r"\w+(?: = (?:\"(?:[^\"\\]|\\.)*\"|[^,<\[]+(?:<[^>]*>)?))?", example.attributes)
    assert {part.split(" = ")[0] for part in parts} == set(row.attributes) - {"efficient_layout"}
    told(name, module(name, example.right[0], ", ".join([*parts, "surprise = 1 : i32"]), example.regions))
    for place, part in enumerate(parts):
        key, others = part.split(" = ")[0], parts[:place] + parts[place + 1 :]
        if not row.attributes[key].optional:
            told(name, module(name, example.right[0], ", ".join(others), example.regions))
        for value in WRONG_VALUES:
            if value in LEGAL.get(key, ()):
                continue
            told(
                name,
                module(name, example.right[0], ", ".join([*others, f"{key} = {value}"]), example.regions),
            )


@pytest.mark.parametrize("name", EXAMPLES)
def test_another_number_of_regions_is_told(name):
    example = EXAMPLES[name]
    empty = "{\n}"
    told(
        name,
        module(
            name,
            example.right[0],
            example.attributes,
            f"{example.regions}, {empty}" if example.regions else empty,
        ),
    )
    if example.regions:
        told(name, module(name, example.right[0], example.attributes))
