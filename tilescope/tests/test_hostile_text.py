"""Whatever a text holds, reading ends soon, in little memory, with a module or BadIR."""

import random
import re
import time
import tracemalloc
from pathlib import Path

import pytest

from tilescope.machine import read as reading
from tilescope.machine.module_size import every_op
from tilescope.machine.read import read
from tilescope.machine.tree import BadIR, Module
from tilescope.machine.verify import verify
from tilescope.machine.write import write

TEXTS = [
    path.read_text(encoding="utf-8") for path in sorted((Path(__file__).parent / "texts").glob("*.ttir"))
]
SEED, ROUNDS = 20261122, 600
SECONDS, BYTES = 20.0, 400 << 20  # for a text of the most characters that are taken; most need a tenth
TYPES = (
    "tensor<1048576x1xf32>",
    "tensor<1x1048576xi32>",
    "tensor<3xf32>",
    "i1",
    "i64",
    "f32",
    "!tt.ptr<f16>",
    "tensor<64x64xf32>",
    "index",
)
NUMBERS = ("0", "1", "-1", "2147483647", "-2147483648", "1099511627776", "7", "1" + "0" * 30)
SIGNS = ("{", "}", "(", ")", '"', "%", "dense<", "loc(", "<{", "^bb0", "\\", "\n#", "", "é", "\x00")


def damaged(text: str, rng: random.Random) -> str:
    """One or a few random edits, of the kinds that a forger or a broken pipe makes."""
    for _ in range(rng.choice((1, 1, 2, 4))):
        kind = rng.randrange(6)
        if kind == 0:
            text = _exchanged(text, r"(?<=[ =<])-?\d+(?= : i)", rng, NUMBERS)
        elif kind == 1:
            text = _exchanged(text, r"%\w+", rng)
        elif kind == 2:
            text = _exchanged(text, r"tensor<[\dx]+x\w+>|\bi32\b|\bf32\b", rng, TYPES)
        elif kind == 3:
            text = _exchanged(text, r'"(?:arith|tt|math|scf|cf)\.[\w.]+"', rng)
        elif kind == 4:
            text = _exchanged(text, r"[a-zA-Z]+ = [^,}]+", rng)
        else:
            at = rng.randrange(len(text))
            text = text[:at] + rng.choice(SIGNS) + text[at + rng.choice((0, 1, 5, 200)) :]
    return text


def _exchanged(text: str, pattern: str, rng: random.Random, others=None) -> str:
    found = list(re.finditer(pattern, text))
    if not found:
        return text
    one = rng.choice(found)
    return text[: one.start()] + (rng.choice(others) if others else rng.choice(found)[0]) + text[one.end() :]


def outcome(text: str) -> str:
    """What became of a text: "bad" or "fine"; anything else that happens is the reader's fault."""
    try:
        module = read(text)
        verify(module)
    except BadIR as error:
        assert str(error) and type(error.line) is int
        return "bad"
    again = write(module)
    verify(read(again))
    assert write(read(again)) == again and lines(read(again)) == lines(module)
    return "fine"


def lines(module: Module) -> list[int]:
    return [op.line for function in module.functions.values() for op in every_op(function.blocks)]


def test_damaged_texts_are_bad_or_fine():
    rng, seen = random.Random(SEED), {"bad": 0, "fine": 0}
    for _ in range(ROUNDS):
        seen[outcome(damaged(rng.choice(TEXTS), rng))] += 1
    assert seen["bad"] > ROUNDS / 3 and seen["fine"] > ROUNDS / 50, seen


def test_what_is_taken_is_taken_by_triton_too():
    """A text that passes our lists after damage is one that Triton's parser verifies."""
    lowering = pytest.importorskip("tilescope.tests.lowering_for_tests")
    rng, wrong, fine = random.Random(SEED + 1), [], 0
    for _ in range(ROUNDS):
        text = damaged(rng.choice(TEXTS), rng)
        try:
            module = read(text)
            verify(module)
        except BadIR:
            continue
        fine += 1
        printed = write(module)
        try:
            if "gpu.barrier" not in printed:
                lowering.parsed(printed, lowering.prepared(90)[2])
        except RuntimeError:
            wrong.append(printed)
    assert fine > ROUNDS / 50 and not wrong, wrong[0]


BODY = '"builtin.module"() ({{\n"tt.func"() <{{function_type = () -> (), sym_name = "k"}}> ({{\n{}"tt.return"() : () -> ()\n}}) : () -> ()\n}}) : () -> ()'
MOST = reading.MOST_CHARACTERS
FLOODS = {
    "one character too many": " " * (MOST + 1),
    "quotes": '"' * MOST,
    "escapes": '"' + '\\"' * (MOST // 2 - 1),
    "escapes in a location": '#loc = loc("' + '\\"' * (MOST // 2 - 30) + ")",
    "quotes in a location": "#loc = loc(" + '"' * (MOST - 30) + ")",
    "names of locations": "".join(f"#loc{n} = loc(#loc{n + 1})\n" for n in range(60_000))
    + BODY.format('"gpu.barrier"() : () -> () loc(#loc0)\n'),
    "a ring of locations": "#loc = loc(#loc1)\n#loc1 = loc(#loc)\n"
    + BODY.format('"gpu.barrier"() : () -> () loc(#loc)\n'),
    "brackets of locations": BODY.format('"gpu.barrier"() : () -> () loc(' + "(" * (MOST - 300) + "\n"),
    "regions": '"builtin.module"() ({' * (MOST // 30),
    "lists": BODY.format('"tt.trans"() <{order = ' + "[" * (MOST - 300)),
    "lists in lists": BODY.format('"tt.trans"() <{order = [' + "[[[[]]]]," * (MOST // 10 - 300)),
    "elements": BODY.format('%0 = "arith.constant"() <{value = dense<[' + "1," * (MOST // 2 - 300)),
    "lists of elements": BODY.format('%0 = "arith.constant"() <{value = dense<' + "[" * (MOST - 300)),
    "digits": BODY.format(
        '%0 = "arith.constant"() <{value = ' + "1" * (MOST - 300) + " : i32}> : () -> i32\n"
    ),
    "digits of a float": BODY.format(
        '%0 = "arith.constant"() <{value = 1.' + "1" * (MOST - 300) + " : f32}> : () -> f32\n"
    ),
    "bytes": BODY.format(
        '%0 = "arith.constant"() <{value = dense<"0x'
        + "0" * (MOST - 300)
        + '"> : tensor<8xi8>}> : () -> tensor<8xi8>\n'
    ),
    "sides": BODY.format('%0 = "ub.poison"() : () -> tensor<' + "1x" * (MOST // 2 - 300) + "i8>\n"),
    "a side": BODY.format('%0 = "ub.poison"() : () -> tensor<' + "1" * (MOST - 300) + "xi8>\n"),
    "elements of a tensor": BODY.format('%0 = "ub.poison"() : () -> tensor<1048576x1048576xi8>\n'),
    "results": BODY.format("%0:256," * (MOST // 8)),
    "a number of results": BODY.format("%0:" + "9" * (MOST - 300)),
    "operands": BODY.format('"tt.print"(' + "%a," * (MOST // 3 - 200)),
    "operations": BODY.format('"gpu.barrier"() : () -> ()\n' * (MOST // 28)),
    "blocks": BODY.format("^a:\n" * (MOST // 5)),
    "labels": BODY.format('"cf.br"()[' + "^a," * (MOST // 4)),
    "comments": "//" * (MOST // 2),
    "many comments": "//\n" * (MOST // 3),
    "attributes": BODY.format('"gpu.barrier"() <{' + "a," * (MOST // 3)),
    "functions": '"builtin.module"() ({'
    + '"tt.func"() <{function_type = () -> (), sym_name = "k"}> ({"tt.return"() : () -> ()}) : () -> ()\n'
    * 15_000
    + "}) : () -> ()",
    "one long name": BODY.format("%" + "a" * (MOST - 300)),
    "nothing": "",
    "no text": "\x00" * 100,
    "half a pair": "\ud800",
}
FINE = ("a ring of locations", "names of locations")


@pytest.mark.parametrize("name", FLOODS)
def test_floods_end_soon_and_small(name):
    text, started = FLOODS[name], time.process_time()
    tracemalloc.start()
    try:
        assert outcome(text) == ("fine" if name in FINE else "bad")
    finally:
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert most < BYTES and time.process_time() - started < SECONDS
