"""What a text says arrives in the tree: lines, constants, names, attributes."""

import ml_dtypes
import numpy as np
import pytest

from tilescope.machine.read import read
from tilescope.machine.tree import BadIR, Op, Type

from .test_hostile_text import TEXTS

KERNEL = '"builtin.module"() ({{\n"tt.func"() <{{function_type = () -> (), sym_name = "{name}"}}> ({{\n{body}\n"tt.return"() : () -> ()\n}}) : () -> ()\n}}) : () -> ()\n'


def body(text: str, name: str = "kernel", after: str = "") -> list[Op]:
    module = read(KERNEL.format(body=text, name=name) + after)
    return module.kernel.blocks[0].ops


def constant(value: str, type: str) -> np.ndarray:
    typed = value if type == "i1" else f"{value} : {type}"
    return body(f'%0 = "arith.constant"() <{{value = {typed}}}> : () -> {type}')[0].attributes["value"]


LOCATIONS = {
    "its own": ('loc("<answer>":12:5)', 12),
    "named": ('loc("x"("<answer>":12:5))', 12),
    "a helper's call in the cell": ('loc(callsite("/lib/standard.py":40:1 at "<answer>":12:5))', 12),
    "the innermost of two in the cell": ('loc(callsite("<answer>":3:1 at "<answer>":12:5))', 3),
    "several at once": ('loc(fused["/lib/standard.py":40:1, "<answer>":12:5])', 12),
    "by names": ("loc(#loc7)", 9),
    "unknown": ("loc(unknown)", 0),
    "of another file": ('loc("/lib/standard.py":40:1)', 0),
    "a variable called like the cell": ('loc("<answer>"("/lib/standard.py":40:1))', 0),
    "none": ("", 0),
}
NAMES = '#loc7 = loc(callsite(#loc8 at #loc9))\n#loc8 = loc("/lib/a.py":1:1)\n#loc9 = loc("y"(#loc10))\n#loc10 = loc("<answer>":9:1)\n'


@pytest.mark.parametrize("name", LOCATIONS)
def test_a_line_is_the_innermost_of_the_cell(name):
    location, line = LOCATIONS[name]
    assert body(f'"gpu.barrier"() : () -> () {location}', after=NAMES)[0].line == line


CONSTANTS = [
    ("7", "i32", np.int32(7)),
    ("-1", "i64", np.int64(-1)),
    ("4294967295", "i32", np.int32(-1)),
    ("0x1F", "i32", np.int32(31)),
    ("true", "i1", np.True_),
    ("1.44269502", "f32", np.float32(1.44269502)),
    ("0xFF800000", "f32", np.float32(-np.inf)),
    ("-0.000000e+00", "f32", np.float32(-0.0)),
    ("0x3C00", "f16", np.float16(1)),
    ("0x3F80", "bf16", ml_dtypes.bfloat16(1)),
    ("1.000000e+00", "f8E4M3FN", ml_dtypes.float8_e4m3fn(1)),
    ("dense<0xFF800000>", "tensor<8xf32>", np.float32(-np.inf)),
    ("dense<true>", "tensor<8xi1>", np.True_),
    ("dense<[1, -2]>", "tensor<2xi8>", np.array([1, -2], np.int8)),
    ("dense<[[1.5], [0x7FC00000]]>", "tensor<2x1xf32>", np.array([[1.5], [np.nan]], np.float32)),
    ("dense<[true, false]>", "tensor<2xi1>", np.array([True, False])),
    ('dense<"0x0100000002000000">', "tensor<2xi32>", np.array([1, 2], np.int32)),
    ('dense<"0x01000000">', "tensor<8xi32>", np.int32(1)),
]


@pytest.mark.parametrize("value, type, wanted", CONSTANTS)
def test_a_constant_is_its_bits(value, type, wanted):
    found = constant(value, type)
    assert found.dtype == np.asarray(wanted).dtype and found.shape == np.asarray(wanted).shape
    assert found.tobytes() == np.asarray(wanted).tobytes()


@pytest.mark.parametrize(
    "value, type",
    [
        ("4294967296", "i32"),
        ("1.5", "i32"),
        ("0x1FF80000000", "f32"),
        ("7", "!tt.ptr<f32>"),
        ("2", "i1"),
        ("7", "tensor<8xi32>"),
        ("dense<[1, 2, 3]>", "tensor<2xi32>"),
        ("dense<[[1, 2]]>", "tensor<2xi32>"),
        ("dense<[1, [2]]>", "tensor<2xi32>"),
        ('dense<"0x01">', "tensor<8xi32>"),
        ('dense<"0x0g">', "tensor<1xi8>"),
        ("dense<7>", "i32"),
        ("dense<7>", "tensor<3xi32>"),
        ("dense<>", "tensor<1xi32>"),
        ("word", "i32"),
    ],
)
def test_a_constant_that_is_none_is_bad(value, type):
    with pytest.raises(BadIR):
        constant(value, type)


def test_a_constant_must_be_of_its_results_type():
    with pytest.raises(BadIR, match="result's type"):
        body('%0 = "arith.constant"() <{value = 7 : i32}> : () -> i64')


def test_strings_come_back_as_they_were_written():
    op = body(
        '"tt.print"() <{hex = false, isSigned = array<i32>, prefix = "a \\22b\\22\\0A\\C3\\A9\\\\"}> : () -> ()'
    )[0]
    assert op.attributes == {"hex": False, "isSigned": (), "prefix": 'a "b"\né\\'}


def test_attributes_are_plain_values():
    op = body(
        '%0 = "ub.poison"() <{a = 3 : i32, b, c = array<i32: 1, 0>, d = #arith.overflow<none>, e = [{f = 1 : i8}]}> '
        "{tt.divisibility = dense<[16, 1]> : tensor<2xi32>, tt.constancy = dense<8> : tensor<2xi32>} : () -> i32"
    )[0]
    assert op.attributes == {
        "a": 3,
        "b": True,
        "c": (1, 0),
        "d": "none",
        "e": [{"f": 1}],
        "tt.divisibility": (16, 1),
        "tt.constancy": (8, 8),
    }


def test_a_name_means_one_value_of_its_function():
    """Triton prints the same name in two regions side by side."""
    branch = '"scf.if"(%c) ({{\n  %x = "ub.poison"() : () -> i32\n  "tt.print"(%x) : (i32) -> ()\n  "scf.yield"() : () -> ()\n}}, {{\n}}) : (i1) -> ()\n'
    ops = body('%c = "ub.poison"() : () -> i1\n' + 2 * branch.format())
    first, second = (op.regions[0][0].ops for op in ops[1:3])
    assert first[0].results != second[0].results
    assert first[1].operands == first[0].results and second[1].operands == second[0].results


def test_results_are_told_apart():
    ops = body('%x:2 = "tt.split"() : () -> (i32, i64)\n"tt.print"(%x#1, %x#0) : (i64, i32) -> ()')
    assert ops[1].operands == ops[0].results[::-1]
    assert ops[0].result_types == [Type("i32"), Type("i64")]


def test_a_value_may_be_defined_further_down_in_another_block():
    text = '"cf.br"()[^later] : () -> ()\n^first:\n"tt.print"(%x) : (i32) -> ()\n"tt.return"() : () -> ()\n^later:\n%x = "ub.poison"() : () -> i32\n"cf.br"()[^first] : () -> ()\n^last:\n'
    blocks = read(KERNEL.format(body=text, name="kernel")).kernel.blocks
    assert blocks[1].ops[0].operands == blocks[2].ops[0].results
    assert blocks[0].ops[0].successors == [blocks[2].label]


@pytest.mark.parametrize(
    "name, kept",
    [
        ("gemm", "gemm"),
        ("_gemm", "kernel"),
        ("vprintf", "kernel"),
        ("\\C3\\A9", "kernel"),
        ("a b", "kernel"),
        ("x" * 65, "kernel"),
    ],
)
def test_a_kernel_keeps_a_plain_name(name, kept):
    assert read(KERNEL.format(body="", name=name)).kernel.name == kept


@pytest.mark.parametrize(
    "text",
    [
        '%0 = "a"() : () -> i32\n%0 = "a"() : () -> i32',
        '"a"(%9) : (i32) -> ()',
        '"cf.br"()[^no] : () -> ()',
        '"tt.call"() <{callee = @no}> : () -> ()',
        '"a"() : (i32) -> ()',
        '%0 = "a"() : () -> ()',
        '"a"() {b = 1 : i32, b = 2 : i32} : () -> ()',
        '"a"() : () -> tensor<3xf32>',
        '"a"() : () -> !tt.ptr<tensor<8xf32>>',
        '"a"() : () -> f8E4M3FNUZ',
    ],
)
def test_what_does_not_hold_together_is_bad(text):
    with pytest.raises(BadIR):
        body(text)


def test_texts_of_both_versions_are_here():
    assert len(TEXTS) == 8 and any("gpu.barrier" in text for text in TEXTS)
