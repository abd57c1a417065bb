"""What a module must hold to, beyond the row of each operation: one edit of a right text, and it is told."""

import pytest

from tilescope.machine.read import read
from tilescope.machine.tree import BadIR
from tilescope.machine.verify import verify

RIGHT = """#loc7 = loc("<answer>":7:1)
"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {}], function_type = (!tt.ptr<f32>, i32) -> (), sym_name = "kernel", sym_visibility = "public"}> ({
  ^bb0(%p: !tt.ptr<f32>, %n: i32):
    %zero = "arith.constant"() <{value = 0.0 : f32}> : () -> f32 loc(#loc7)
    %yes = "arith.cmpi"(%n, %n) <{predicate = 2 : i64}> : (i32, i32) -> i1 loc(#loc7)
    %sum = "scf.for"(%n, %n, %n, %zero) ({
    ^bb0(%i: i32, %a: f32):
      %more = "tt.call"(%a, %i) <{callee = @helper}> : (f32, i32) -> f32 loc(#loc7)
      "scf.yield"(%more) : (f32) -> () loc(#loc7)
    }) {tt.num_stages = 2 : i32} : (i32, i32, i32, f32) -> f32 loc(#loc7)
    %chosen = "scf.if"(%yes) ({
      "scf.yield"(%sum) : (f32) -> () loc(#loc7)
    }, {
      "scf.yield"(%zero) : (f32) -> () loc(#loc7)
    }) : (i1) -> f32 loc(#loc7)
    "scf.if"(%yes) ({
      "scf.yield"() : () -> () loc(#loc7)
    }, {
    }) : (i1) -> () loc(#loc7)
    %done:2 = "scf.while"(%chosen) ({
    ^bb0(%b: f32):
      "scf.condition"(%yes, %b, %n) : (i1, f32, i32) -> () loc(#loc7)
    }, {
    ^bb0(%c: f32, %m: i32):
      "scf.yield"(%c) : (f32) -> () loc(#loc7)
    }) : (f32) -> (f32, i32) loc(#loc7)
    "cf.cond_br"(%yes, %zero)[^bb1, ^bb2] <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (i1, f32) -> () loc(#loc7)
  ^bb1(%d: f32):
    "tt.print"(%d, %sum) <{hex = false, isSigned = array<i32: 0, 0>, prefix = " d"}> : (f32, f32) -> () loc(#loc7)
    "cf.br"()[^bb2] : () -> () loc(#loc7)
  ^bb2:
    "tt.return"() : () -> () loc(#loc7)
  }) {noinline = false} : () -> () loc(#loc7)
  "tt.func"() <{function_type = (f32, i32) -> f32, sym_name = "helper", sym_visibility = "private"}> ({
  ^bb0(%a: f32, %i: i32):
    "tt.return"(%a) : (f32) -> () loc(#loc7)
  }) {noinline = true} : () -> () loc(#loc7)
}) : () -> ()
"""
IF = '    "scf.if"(%yes) ({\n      "scf.yield"() : () -> () loc(#loc7)'
EDITS = {
    "a value of another type": ('"tt.print"(%d, %sum)', '"tt.print"(%d, %n)', "of the types"),
    "a value of a loop outside it": ('"tt.print"(%d, %sum)', '"tt.print"(%d, %more)', "before it is used"),
    "a value of a block that need not come before": (
        '^bb2:\n    "tt.return"()',
        '^bb2:\n    "tt.print"(%d) <{hex = false, isSigned = array<i32: 0>, prefix = ""}> : (f32) -> () loc(#loc7)\n    "tt.return"()',
        "defined before",
    ),
    "a value before it is there": (
        '%yes = "arith.cmpi"(%n, %n)',
        '%yes = "arith.cmpi"(%m2, %n)',
        "before it is used",
    ),
    "an operation's own value": (
        '%yes = "arith.cmpi"(%n, %n) <{predicate = 2 : i64}> : (i32, i32) -> i1',
        '%yes = "arith.andi"(%yes, %yes) : (i1, i1) -> i1',
        "defined before",
    ),
    "a block without an end": ('"cf.br"()[^bb2] : () -> () loc(#loc7)', "", "must not be the last"),
    "an end in the middle": (
        IF,
        IF.replace("({", '({\n      "scf.yield"() : () -> () loc(#loc7)'),
        "must be the last",
    ),
    "a loop that yields another type": (
        '"scf.yield"(%more) : (f32)',
        '"scf.yield"(%i) : (i32)',
        "scf.for must have a region that ends",
    ),
    "a loop that yields nothing": (
        '"scf.yield"(%more) : (f32)',
        '"scf.yield"() : ()',
        "scf.for must have a region that ends",
    ),
    "a loop whose region takes less": (
        "^bb0(%i: i32, %a: f32):\n      %more",
        '^bb0(%i: i32):\n      %a = "ub.poison"() : () -> f32\n      %more',
        "scf.for must have a region that takes",
    ),
    "a loop that counts in two types": (
        "^bb0(%i: i32, %a: f32):",
        "^bb0(%i: i64, %a: f32):",
        "scf.for must have a region that takes",
    ),
    "a loop that counts in floats": (
        '"scf.for"(%n, %n, %n, %zero)',
        '"scf.for"(%zero, %zero, %zero, %zero)',
        "of the types",
    ),
    "a loop with another hint": (
        "tt.num_stages = 2 : i32",
        "tt.num_stages = 2000 : i32",
        "tt.num_stages must be",
    ),
    "a loop with a strange attribute": ("tt.num_stages = 2 : i32", "tt.surprise", "may not carry"),
    "a loop of two blocks": (
        '      "scf.yield"(%more)',
        '      "cf.br"()[^bb9] : () -> ()\n    ^bb9:\n      "scf.yield"(%more)',
        "1 blocks at most|must have a region",
    ),
    "a branch without another": (
        '}, {\n      "scf.yield"(%zero) : (f32) -> () loc(#loc7)\n    }) : (i1) -> f32',
        "}) : (i1) -> f32",
        "second region",
    ),
    "a branch whose other gives nothing": (
        '}, {\n      "scf.yield"(%zero) : (f32) -> () loc(#loc7)\n',
        "}, {\n",
        "scf.if must have a region that ends",
    ),
    "a branch that asks a number": ('%chosen = "scf.if"(%yes)', '%chosen = "scf.if"(%n)', "of the types"),
    "a while that hands on less": (
        "(%yes, %b, %n) : (i1, f32, i32)",
        "(%yes, %b) : (i1, f32)",
        "scf.while must have a region that ends",
    ),
    "a while that goes round with another type": (
        '"scf.yield"(%c) : (f32)',
        '"scf.yield"(%m) : (i32)',
        "scf.while must have a region that ends",
    ),
    "a jump that hands on nothing": (
        "(%yes, %zero)[^bb1, ^bb2] <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (i1, f32)",
        "(%yes)[^bb1, ^bb2] <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (i1)",
        "must hand on",
    ),
    "a jump with other sizes": ("array<i32: 1, 1, 0>", "array<i32: 1, 0, 0>", "one truth value and hand on"),
    "a jump to the first block": ('"cf.br"()[^bb2]', '"cf.br"()[^bb0]', "must hand on"),
    "a block that nothing leads to": (
        "[^bb1, ^bb2] <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (i1, f32)",
        "[^bb2, ^bb2] <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (i1, f32)",
        "must hand on|must be reached",
    ),
    "a return within a loop": (
        '"scf.yield"(%more) : (f32)',
        '"tt.return"() : ()',
        "must stand in|must have a region",
    ),
    "a yield in the kernel": ('"tt.return"() : ()', '"scf.yield"() : ()', "must stand in"),
    "a fold's end in a loop": (
        '"scf.yield"(%more)',
        '"tt.reduce.return"(%more)',
        "must have a region|must stand in",
    ),
    "a function that returns another type": (
        '"tt.return"(%a) : (f32)',
        '"tt.return"(%i) : (i32)',
        "must return what its type says",
    ),
    "a call with other arguments": ('"tt.call"(%a, %i)', '"tt.call"(%i, %a)', "of the types"),
    "a call for another result": ("(f32, i32) -> f32 loc", "(f32, i32) -> f64 loc", "call must have|ends in"),
    "a call of the kernel": ("callee = @helper", "callee = @kernel", "a call must have"),
    "a function that calls itself": (
        '    "tt.return"(%a) : (f32)',
        '    %again = "tt.call"(%a, %i) <{callee = @helper}> : (f32, i32) -> f32\n    "tt.return"(%a) : (f32)',
        "call itself",
    ),
    "two kernels": ('sym_visibility = "private"', 'sym_visibility = "public"', "one public function"),
    "no kernel": ('sym_visibility = "public"', 'sym_visibility = "private"', "one public function"),
    "an argument with another attribute": (
        "tt.divisibility = 16 : i32",
        "tt.surprise = 16 : i32",
        "may not carry",
    ),
    "an argument with another value": (
        "tt.divisibility = 16 : i32",
        "tt.divisibility = 0 : i32",
        "may not carry",
    ),
    "fewer attributes than arguments": ("16 : i32}, {}]", "16 : i32}]", "for each of its arguments"),
    "a function with another attribute": ("noinline = true", "always_inline = true", "may not carry"),
    "an operation that is none": ('"tt.print"', '"tt.surprise"', "tt.surprise is not one of the operations"),
    "inline assembly": ('"tt.print"', '"tt.elementwise_inline_asm"', "inline assembly"),
    "a format in printed words": ('prefix = " d"', 'prefix = "%s"', "prefix must be text"),
    "a module with attributes": ("}) : () -> ()\n", "}) {a} : () -> ()\n", "no attributes|may not carry"),
}


def test_the_right_text_is_right():
    verify(read(RIGHT))


@pytest.mark.parametrize("name", EDITS)
def test_one_thing_wrong_is_told(name):
    before, after, words = EDITS[name]
    assert RIGHT.count(before) >= 1
    with pytest.raises(BadIR, match=words):
        verify(read(RIGHT.replace(before, after, 1)))


def test_a_line_is_said_where_one_is_known():
    with pytest.raises(BadIR) as told:
        verify(read(RIGHT.replace('"tt.print"', '"tt.elementwise_inline_asm"')))
    assert told.value.line == 7
    assert str(told.value) == (
        "line 7: inline assembly (tt.elementwise_inline_asm) is not one of the operations that a kernel may use here; "
        "write it with tl operations"
    )


@pytest.mark.parametrize(
    "types, words",
    [
        ("(tensor<8xf32>)", "numbers and pointers"),
        ("(!tt.tensordesc<tensor<8x8xf32>>)", "numbers and pointers"),
    ],
)
def test_a_kernel_takes_numbers_and_pointers(types, words):
    text = f'"builtin.module"() ({{\n"tt.func"() <{{function_type = {types} -> (), sym_name = "k"}}> ({{\n^bb0(%0: {types[1:-1]}):\n"tt.return"() : () -> ()\n}}) : () -> ()\n}}) : () -> ()\n'
    with pytest.raises(BadIR, match=words):
        verify(read(text))


def test_a_store_may_not_stand_in_the_function_of_a_reduction():
    text = '"builtin.module"() ({\n"tt.func"() <{function_type = (!tt.ptr<f32>) -> (), sym_name = "k"}> ({\n^bb0(%p: !tt.ptr<f32>):\n%v = "ub.poison"() : () -> tensor<8xf32>\n%r = "tt.reduce"(%v) <{axis = 0 : i32}> ({\n^bb1(%a: f32, %b: f32):\nSTORE"tt.reduce.return"(%a) : (f32) -> ()\n}) : (tensor<8xf32>) -> f32\n"tt.return"() : () -> ()\n}) : () -> ()\n}) : () -> ()\n'
    verify(read(text.replace("STORE", "")))
    store = '"tt.store"(%p, %a) <{boundaryCheck = array<i32>, cache = 1 : i32, evict = 1 : i32}> : (!tt.ptr<f32>, f32) -> ()\n'
    with pytest.raises(BadIR, match="must not stand in the function of a reduce"):
        verify(read(text.replace("STORE", store)))
