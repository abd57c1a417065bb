"""What is known of a module before it is compiled."""

import pytest

from tilescope.machine.module_size import hopeless, module_size
from tilescope.machine.read import read
from tilescope.machine.tree import Type

LOOP = """"builtin.module"() ({{
  "tt.func"() <{{function_type = (i32) -> (), sym_name = "k", sym_visibility = "public"}}> ({{
  ^bb0(%n: i32):
    %zero = "arith.constant"() <{{value = dense<0> : {carried}}}> : () -> {carried}
    %large = "arith.constant"() <{{value = dense<0> : tensor<512x512xi8>}}> : () -> tensor<512x512xi8>
    %sum = "scf.for"(%n, %n, %n, %zero) ({{
    ^bb1(%i: i32, %a: {carried}):
      "scf.yield"(%a) : ({carried}) -> ()
    }}) : (i32, i32, i32, {carried}) -> {carried}
    "tt.return"() : () -> ()
  }}) : () -> ()
}}) : () -> ()
"""


def test_operations_and_the_largest_tensor_are_counted():
    found = module_size(read(LOOP.format(carried="tensor<64x64xf32>")))
    assert found.operations == 5
    assert found.largest == Type("i8", (512, 512))
    assert found.carried == (Type("f32", (64, 64)),)


@pytest.mark.parametrize(
    "carried, num_warps, registers",
    [
        ("tensor<128x128xf32>", 4, 128),
        ("tensor<128x128xf16>", 4, 64),
        ("tensor<256x256xf32>", 8, 256),
        ("i32", 4, 0),
    ],
)
def test_registers_are_a_threads_share(carried, num_warps, registers):
    text = LOOP.format(carried=carried).replace("dense<0> : i32", "0 : i32")
    assert module_size(read(text)).registers(num_warps) == registers
    assert hopeless(read(text), num_warps) == ""


def test_a_hopeless_tile_is_told_with_its_shape():
    module = read(LOOP.format(carried="tensor<512x256xf32>"))
    assert "512 x 256 takes 1024 registers" in hopeless(module, 4)
    assert hopeless(module, 8) == ""
