"""The builder in Python against Triton's own: the same operations, constants and sentences."""

import itertools
import json
import math
import os
import random
import re
import struct
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import triton
from triton._C.libtriton import ir as native
from triton._C.libtriton import native_specialize_impl

from tilescope.front_end import floats, folding, ir, stand_in
from tilescope.front_end.arguments import specialised
from tilescope.front_end.kinds import I1, type
from tilescope.front_end.nodes import OpState
from tilescope.lowering import generic, prepared
from tilescope.machine import integers  # noqa: F401
from tilescope.machine.meanings import PURE
from tilescope.machine.read import read
from tilescope.machine.tree import Op, Type
from tilescope.proofs import both_ways

from . import kernels_for_tests, kernels_that_fold
from .lower_all import ALL, text
from .lowering_for_tests import every, simplest

HOME = Path(triton.__file__).parent
NAMED = sorted(
    {
        name
        for path in [*HOME.glob("language/**/*.py"), *HOME.glob("compiler/*.py")]
        for name in re.findall(r"builder\.(\w+)", path.read_text(encoding="utf-8"))
    }
)
OF_TYPES = [f"get_{name}" for name in ("int8", "int16", "uint8", "uint16", "uint32", "uint64", "bf16")]
UNCOUNTED = {
    "arith.constant",
    "tt.call",
    "tt.return",
    "cf.br",
    "cf.cond_br",
}  # we put one block in line, Triton all
CELLS = {name: kernels_that_fold if name in kernels_that_fold.FOLDED else kernels_for_tests for name in ALL}


def lowered(folder: Path, **environment) -> dict:
    """What another process makes of all test kernels."""
    command = [sys.executable, "-m", "tilescope.tests.lower_all", str(folder / "texts.json")]
    done = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, cwd=Path.cwd()
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads((folder / "texts.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def in_python(tmp_path_factory) -> dict:
    found = lowered(tmp_path_factory.mktemp("texts"), **{stand_in.WISH: "python"})
    assert found["in Python"] and found["libraries"] == []
    return found["texts"]


def test_a_shift_whose_sign_is_cut_off_is_unsigned_both_ways(in_python):
    ours, theirs = in_python["shifts"], text("shifts")
    assert [one.count('"arith.shrui"') for one in (ours, theirs)] == [3, 3]
    assert [one.count('"arith.shrsi"') for one in (ours, theirs)] == [2, 2]


@pytest.mark.parametrize("debug", [False, True], ids=["", "debug"])
@pytest.mark.parametrize("name", ALL)
def test_both_ways_give_the_same_operations(in_python, name, debug):
    if name == "mapped" and debug:
        pytest.skip("Triton itself takes no assertion within map_elementwise")
    ours, theirs = in_python[name + " in debug" * debug], text(name, debug)
    assert simplest(ours) == simplest(theirs)
    cell = CELLS[name].__file__
    ours, theirs = (list(every(one, cell)) for one in (ours, theirs))
    counted = Counter(op.name for op in ours if op.name not in UNCOUNTED)
    assert counted == Counter(op.name for op in theirs if op.name not in UNCOUNTED)
    assert sorted((op.name, op.line) for op in ours if acts(op)) == sorted(
        (op.name, op.line) for op in theirs if acts(op)
    )


def acts(op) -> bool:
    return op.name.startswith(
        ("tt.load", "tt.store", "tt.atomic", "tt.d", "tt.print", "tt.assert", "tt.reduce")
    )


def test_nothing_is_there_of_what_folds_away(in_python):
    """The kernels that fold are a test only if something of them goes."""
    loads = {name: in_python[name].count('"tt.load"') for name in kernels_that_fold.FOLDED}
    assert loads == {
        "unused": 0,
        "carried": 2,
        "branches": 2,
        "sides": 2,
        "turns": 2,
        "masks": 2,
        "numbers": 1,
        "shifts": 1,
        "idle": 2,
    }


def test_triton_without_its_library_is_lowered_in_python(tmp_path, in_python):
    """All of Triton's Python, and not its compiled library: as its wheel is unpacked on another system."""
    (tmp_path / "triton").mkdir()
    for path in HOME.iterdir():
        if path.name != "_C":
            (tmp_path / "triton" / path.name).symlink_to(path)
    code = "import sys; sys.path.insert(0, sys.argv.pop(1))\nfrom tilescope.tests.lower_all import main; main(sys.argv[1])"
    command = [sys.executable, "-c", code, str(tmp_path), str(tmp_path / "texts.json")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path.cwd())
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads((tmp_path / "texts.json").read_text(encoding="utf-8"))
    assert found["in Python"] and found["libraries"] == []
    assert {name: simplest(one) for name, one in found["texts"].items() if name in ("loops", "casts")} == {
        name: simplest(in_python[name]) for name in ("loops", "casts")
    }


@pytest.mark.parametrize("name", [*NAMED, *OF_TYPES])
def test_every_word_of_the_front_end_is_built(name):
    if hasattr(native.builder, name):
        assert name in dir(ir.builder)


OF_IR = sorted(
    {
        name
        for path in [*HOME.glob("language/**/*.py"), HOME / "compiler/code_generator.py"]
        for name in re.findall(r"\b_?ir\.([A-Za-z]\w+)", path.read_text(encoding="utf-8"))
        if hasattr(native, name)
    }
)


def test_every_name_of_the_front_end_is_there():
    assert len(OF_IR) >= 10 and len([name for name in NAMED if hasattr(native.builder, name)]) >= 150
    assert [name for name in OF_IR if not hasattr(ir, name)] == []


def test_a_word_that_is_not_built_is_told():
    with pytest.raises(NotImplementedError, match="warp_specialize must be .* got one that does not"):
        ir.builder(None).create_warp_specialize()
    with pytest.raises(AttributeError):
        ir.builder(None).nothing_of_the_kind  # noqa: B018
    with pytest.raises(NotImplementedError, match="compiling must have"):
        ir.pass_manager(None)


def test_it_must_be_asked_for_before_triton_is_there(monkeypatch):
    monkeypatch.setenv(stand_in.WISH, "python")
    with pytest.raises(RuntimeError, match="before Triton is imported"):
        stand_in.where_needed()
    monkeypatch.setenv(stand_in.WISH, "perl")
    with pytest.raises(ValueError, match="must be python or nothing"):
        stand_in.is_needed()


def test_enumerations_have_tritons_numbers():
    for name in (
        "ATOMIC_OP CACHE_MODIFIER DESCRIPTOR_REDUCE_KIND EVICTION_POLICY INPUT_PRECISION MEM_SEMANTIC".split()
    ):
        assert_same_numbers(name)
    for name in "MEM_SYNC_SCOPE PADDING_OPTION PROPAGATE_NAN ROUNDING_MODE ScaleDotElemTypeTY".split():
        assert_same_numbers(name)


def assert_same_numbers(name: str) -> None:
    theirs = {word: int(number) for word, number in getattr(native, name).__members__.items()}
    assert {one.name: int(one) for one in getattr(ir, name)} == theirs


def test_constants_have_the_bits_that_triton_gives_them():
    drawn = random.Random(3)
    floats = [struct.unpack("<d", drawn.randbytes(8))[0] for _ in range(60)]
    floats += [drawn.uniform(-9, 9) * 10.0 ** drawn.randint(-12, 9) for _ in range(200)]
    floats += [0.0, -0.0, 1.0, 65504.0, 65520.0, 1e-8, 5e-7, 1e39, 3.3895e38, math.inf, -math.inf, math.nan]
    makers = [(f"get_{name}", v) for v in floats for name in ("bf16", "fp16", "fp32", "fp64")]
    makers += [
        ("get_uint8", 255),
        ("get_int8", -1),
        ("get_int64", -5),
        ("get_uint64", 2**64 - 1),
        ("get_int1", 1),
    ]

    context = prepared(90)[2]
    builder = native.builder(context)
    module = builder.create_module()
    empty = builder.get_function_ty([], [])
    function = builder.get_or_insert_function(module, "f", empty, "public", False)
    module.push_back(function)
    builder.set_insertion_point_to_start(function.add_entry_block())
    for name, v in makers:
        getattr(builder, name)(v)
    builder.ret([])
    theirs = [
        op.attributes["value"] for op in every(generic(module, context, "f")) if op.name == "arith.constant"
    ]

    ours = ir.builder(None)
    texts = [getattr(ours, name)(v).owner for name, v in makers]
    rows = [
        f'%{i} = "arith.constant"() <{{value = {op.attrs["value"]}}}> : () -> {op.results[0].type}'
        for i, op in enumerate(texts)
    ]
    body = "\n".join(
        ['"tt.func"() <{function_type = () -> (), sym_name = "f", sym_visibility = "public"}> ({', *rows]
    )
    module = read(f'"builtin.module"() ({{\n{body}\n"tt.return"() : () -> ()\n}}) : () -> ()\n}}) : () -> ()')
    ours = [op.attributes["value"] for op in module.kernel.blocks[0].ops[:-1]]
    wrong = [
        (makers[i], a, b)
        for i, (a, b) in enumerate(zip(ours, theirs, strict=True))
        if a.tobytes() != b.tobytes()
    ]
    assert not wrong


INTEGERS = [*folding.SIGNED, *folding.NATURAL]


@pytest.mark.parametrize("bits", [1, 8, 32, 64])
@pytest.mark.parametrize("name", INTEGERS)
def test_integers_fold_to_what_the_machine_computes(name, bits):
    drawn, kind = random.Random(name), type(f"i{bits}")
    ends = [-(1 << bits - 1), (1 << bits - 1) - 1, -1, 0]
    numbers = [
        drawn.choice([folding.signed(drawn.getrandbits(bits), bits), *ends, drawn.randint(-9, 9)])
        for _ in range(400)
    ]
    numbers = [folding.signed(number, bits) for number in numbers]
    op = OpState(name, [], [kind])
    for a, b in zip(numbers, reversed(numbers), strict=True):
        found = folding.folded(op, [kind, kind], [a, b])
        if found is not None:
            assert found == on_the_machine(name, bits, a, b), (a, b)


def on_the_machine(name: str, bits: int, *operands: int) -> int:
    one = Type(f"i{bits}", (1,))
    run = PURE[name](Op(name, ["r"], ["a", "b"], {}, [], [one, one], [one]))
    result = run(*(np.array([n], one.dtype) if bits > 1 else np.array([n != 0]) for n in operands))
    return int(result[0]) if bits > 1 else -int(result[0])


@pytest.mark.parametrize("name", floats.TWO)
@pytest.mark.parametrize("kind, width", [("f32", np.float32), ("f16", np.float16), ("f64", np.float64)])
def test_floats_fold_to_what_numpy_computes(name, kind, width):
    drawn = np.random.default_rng(5)
    bits = drawn.integers(0, 1 << 16, (300, 2)).astype(np.uint16).view(np.float16).astype(width)
    functions = {"addf": np.add, "subf": np.subtract, "mulf": np.multiply, "divf": np.divide}
    functions |= {"maximumf": np.maximum, "minimumf": np.minimum, "maxnumf": np.fmax, "minnumf": np.fmin}
    op = OpState(name, [], [type(kind)])
    with np.errstate(all="ignore"):
        for a, b in bits:
            known = [floats.text_of(float(v), kind) for v in (a, b)]
            found = floats.folded(op, [kind, kind], known, kind)
            wanted = width(functions[name.split(".")[1]](a, b))
            if found is not None and a != b:
                assert int(found, 16) == int.from_bytes(wanted.tobytes(), "little"), (a, b)


def test_a_truth_value_is_true_where_a_comparison_holds():
    less = OpState("arith.cmpi", [], [I1], {"predicate": "2 : i64"})
    below = OpState("arith.cmpi", [], [I1], {"predicate": "6 : i64"})
    kinds = [type("i32")] * 2
    assert folding.folded(less, kinds, [-1, 1]) == -1 and folding.folded(below, kinds, [-1, 1]) == 0


class Pair(NamedTuple):
    first: int
    second: object


def given() -> dict:
    """Arguments of every kind that a launch may have."""
    import torch
    from triton.tools.tensor_descriptor import TensorDescriptor

    kinds = (
        "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 float8_e4m3fn float8_e5m2".split()
    )
    tensors = {name: torch.zeros(64, dtype=getattr(torch, name)) for name in kinds}
    block = torch.zeros(32, 32)
    numbers = [
        0,
        1,
        -1,
        2,
        16,
        17,
        -32,
        2**31 - 1,
        2**31,
        -(2**31),
        -(2**31) - 1,
        2**63 - 1,
        2**63,
        2**64 - 16,
    ]
    plain = {repr(one): one for one in [None, True, False, 0.0, 1.0, 2.5, *numbers]}
    return (
        tensors
        | plain
        | {
            "off by one": tensors["float32"][1:],
            "off by four": tensors["float32"][4:],
            "tuple": (1, 16, tensors["int32"], None, 2.0),
            "named": Pair(1, (32, tensors["float16"])),
            "nothing": (),
            "constant": triton.language.constexpr(3),
            "function": triton.language.standard.sum,
            "descriptor": TensorDescriptor.from_tensor(block, [16, 32]),
        }
    )


@pytest.mark.parametrize("name", given())
def test_an_argument_is_specialised_as_tritons_library_does(name):
    backend = prepared(90)[0]
    for how in itertools.product([False, True], repeat=3):
        ours, theirs = (way(backend, given()[name], *how) for way in (specialised, native_specialize_impl))
        assert repr(ours) == repr(theirs), how


def test_an_argument_of_no_known_kind_is_refused():
    with pytest.raises(TypeError, match="got dict"):
        specialised(prepared(90)[0], {}, False, True, True)


def test_tilescope_runs_a_script_without_the_library(tmp_path):
    """The launcher, not the lowering alone."""
    script = tmp_path / "one.py"
    script.write_text(
        "import torch, triton, triton.language as tl\n"
        "@triton.jit\ndef twice(x, n, B: tl.constexpr):\n"
        "    i = tl.arange(0, B)\n    tl.store(x + i, 2 * tl.load(x + i, mask=i < n, other=0), mask=i < n)\n"
        "x = torch.ones(8)\ntwice[(1,)](x, 5, B=8)\nprint(x.tolist())\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "tilescope", str(script)]
    done = subprocess.run(
        command, env={**os.environ, stand_in.WISH: "python"}, capture_output=True, text=True
    )
    assert "[2.0, 2.0, 2.0, 2.0, 2.0, 1.0, 1.0, 1.0]" in done.stdout, done.stderr


def test_other_people_s_kernels_are_lowered_alike():
    """What `python -m tilescope.proofs.libraries liger_kernel fla --front-end FILE` recorded."""
    path = Path(both_ways.__file__).parent / "records/both_ways.json"
    for row in json.loads(path.read_text(encoding="utf-8"))["packages"].values():
        assert row["specialised"] == row[both_ways.SAME] + row[both_ways.SAME_BITS]  # so none was not run
        assert row[both_ways.SAME] >= row["specialised"] / 2
        assert [bits for other in row["others"].values() for bits in other["bits"] if bits] == []
