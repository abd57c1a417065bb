"""How many neighbours one instruction may move, against the instructions that Triton's compiler chooses."""

import re

import pytest
import triton
import triton.language as tl

from tilescope.lowering import text_of
from tilescope.machine.contiguity import accesses
from tilescope.machine.read import read

LOAD = re.compile(r"ld\.global(?:\.(?!v\d|b\d|u\d)\w+)*(?:\.v(\d))?\.[bu](\d+)")
BLOCK = 1024  # eight numbers of 16 bits for each lane of four warps


@triton.jit
def copied(x, y, n, z, WAY: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    mask = i < n
    if WAY == "straight":
        i = i + tl.program_id(0) * BLOCK
        mask = i < n
    if WAY == "from an odd place":
        i = i + z
    if WAY == "from a known odd place":
        i = i - 1
    if WAY == "pairs":
        i = i + 2
    if WAY == "an xor":
        i = i ^ 1
    if WAY == "an xor with a number of the run":
        i = i ^ z
    if WAY == "reversed":
        i = BLOCK - 1 - i
    if WAY == "a remainder":
        i = i % z
    if WAY == "a remainder by whole rows":
        i = i % n
    if WAY == "a mask":
        i = i & 63
    if WAY == "every second":
        i = i * 2
    if WAY == "eight alike":
        i = i // 8
    if WAY == "rows by hand":
        i = i // 64 * n + i % 64
    if WAY == "an odd mask":
        mask = i < z
    if WAY == "a mask that jumps":
        mask = (i ^ 1) < n
    if WAY == "no mask":
        mask = i < BLOCK
    if WAY == "a promise":
        i = tl.max_contiguous(tl.multiple_of(i ^ z, 4), 4)
    if WAY == "a shift":
        i = (i >> 4 << 4) + i % 16
    if WAY == "a while loop":
        while tl.sum(i) < n:
            i = i + BLOCK
    if WAY == "a for loop":
        for start in range(0, n, 64):
            i = i + start
    if WAY == "a branch":
        if z > 3:
            i = i + 8
        else:
            i = i + 4
    if WAY == "a choice":
        i = tl.where(i < n, i, i + n)
    tl.store(y + tl.arange(0, BLOCK), tl.load(x + i, mask=mask))


WAYS = re.findall(r'if WAY == "([^"(]+)"', open(__file__).read())


def text(way: str) -> str:
    types = {"x": "*fp16", "y": "*fp16", "n": "i32", "z": "i32"}
    divides = {(place,): [["tt.divisibility", 16]] for place in range(3)}
    return text_of(copied, types, {"WAY": way, "BLOCK": BLOCK}, divides)


def by_the_compiler(text: str) -> int:
    """Return the fewest bits that one of the compiler's loads moves."""
    compiled = pytest.importorskip("tilescope.tests.lowering_for_tests").compiled
    return min(int(many or 1) * int(size) for many, size in LOAD.findall(compiled(text, 90)))


@pytest.mark.parametrize("way", WAYS)
def test_the_compiler_moves_as_many_numbers(way):
    said = text(way)
    (load, _) = accesses(read(said))
    found = load.bits * load.neighbours
    assert load.kind == "load" and load.parameter == 0
    assert found == by_the_compiler(said)
