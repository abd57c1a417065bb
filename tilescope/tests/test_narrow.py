"""bf16 and fp8 without ml_dtypes: bit for bit what ml_dtypes gives, over all patterns, under its types and under our own."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import triton
import triton.language as tl

from tilescope.lowering import text_of
from tilescope.machine import narrow

ml_dtypes = pytest.importorskip("ml_dtypes")
KINDS = {"bf16": narrow.BF16, "e4m3": narrow.E4M3, "e5m2": narrow.E5M2}
ON_NUMPY_ALONE = """
import sys
sys.modules["ml_dtypes"] = None
import numpy as np
from tilescope.machine import narrow
given = np.load(sys.argv[1])
found = {}
for name, to in (("bf16", narrow.BF16), ("e4m3", narrow.E4M3), ("e5m2", narrow.E5M2)):
    assert to.names == (name,)
    found[name] = narrow.converted(given, to).view(f"u{to.itemsize}")
    patterns = np.arange(1 << 8 * to.itemsize).astype(f"u{to.itemsize}").view(to)
    found["wide " + name] = narrow.widened(patterns)
np.savez(sys.argv[2], **found)
"""


RUN = """
import json, sys
if sys.argv[1] == "alone":
    sys.modules["ml_dtypes"] = None
import numpy as np
from tilescope.machine.dtypes import DTYPES
from tilescope.machine.read import read
from tilescope.machine.run import Launching, run
from tilescope.machine.storage import Storage
from tilescope.machine.verify import verify
text = open(sys.argv[2], encoding="utf-8").read()
given = np.random.default_rng(4).integers(0, 1 << 16, 32 * 32).astype(np.uint16)
given[(given & 0x7FFF) > 0x7F00] = 0x3F80  # no NaN, so that products agree
stored = [Storage("x", 0, given.view(DTYPES["bf16"]), "in"), Storage("o", 1, np.zeros(64 * 32, np.float32), "out")]
stored.append(Storage("s", 2, np.zeros(4, np.uint16).view(DTYPES["bf16"]), "inout"))
module = read(text)
verify(module)
arguments = [("place", (name, 0)) for name in ("x", "o", "s")]
report = run([Launching(module, (2, 1, 1), arguments)], stored, wave=2, repeatable=False)
assert report.error is None, report.error
print(json.dumps([one.elements.tobytes().hex() for one in stored] + [[p["text"] for p in report.prints]]))
"""


@triton.jit
def in_bf16(x, o, s, B: tl.constexpr):
    rows, columns = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
    at = rows * B + columns
    a = tl.load(x + at)
    b = (a * 1.5 + a / 3) - tl.maximum(a, -a)
    c = tl.where(a < b, a, b) + tl.exp(tl.minimum(tl.abs(a), 1).to(tl.float32)).to(tl.bfloat16)
    narrow = a.to(tl.float8e4nv).to(tl.float32) + a.to(tl.float8e5).to(tl.float32)
    whole = tl.minimum(tl.maximum(a, -100), 100).to(tl.int32).to(tl.bfloat16)
    held = tl.minimum(tl.maximum(c, -4), 4)
    tl.atomic_add(s + tl.program_id(0), tl.sum(tl.sum(held, 1), 0).to(tl.bfloat16))
    tl.device_print("held", held)
    wide = tl.dot(held, held) + tl.cumsum(held.to(tl.float32), 1)
    tl.store(o + tl.program_id(0) * B * B + at, wide + narrow + whole.to(tl.float32))


def patterns(to: np.dtype) -> np.ndarray:
    return np.arange(1 << 8 * to.itemsize).astype(f"u{to.itemsize}").view(to)


def raw(x: np.ndarray) -> np.ndarray:
    return x.view(f"u{x.dtype.itemsize}")


def numbers() -> np.ndarray:
    """fp32 of every kind: drawn bits, every fp16, every narrow number, what lies halfway between two and just beside."""
    drawn = (
        np.random.default_rng(8).integers(0, 1 << 32, 200_000, np.uint64).astype(np.uint32).view(np.float32)
    )
    found = [drawn, np.arange(1 << 16).astype(np.uint16).view(np.float16).astype(np.float32)]
    for to in KINDS.values():
        known = patterns(to).astype(np.float32).astype(np.float64)
        known = np.unique(known[np.isfinite(known)])
        middle = ((known[1:] + known[:-1]) / 2).astype(np.float32)
        up, down = np.nextafter(middle, np.float32(np.inf)), np.nextafter(middle, np.float32(-np.inf))
        found += [known.astype(np.float32), middle, up, down]
    return np.concatenate(
        [*found, np.float32([np.inf, -np.inf, np.nan, 463.9, 464, 465, 61439, 61440, -61440])]
    )


@pytest.mark.parametrize("kind", KINDS)
def test_every_pattern_means_the_same(kind):
    every = patterns(KINDS[kind])
    assert np.array_equal(raw(narrow.widened(every)), raw(every.astype(np.float32)))


@pytest.mark.parametrize("kind", KINDS)
def test_every_number_rounds_to_the_same(kind):
    with np.errstate(all="ignore"):
        assert np.array_equal(
            raw(narrow.converted(numbers(), KINDS[kind])), raw(numbers().astype(KINDS[kind]))
        )


@pytest.mark.parametrize("one", KINDS)
@pytest.mark.parametrize("other", KINDS)
def test_each_narrow_type_becomes_each_other_one_alike(one, other):
    every = patterns(KINDS[one])
    with np.errstate(all="ignore"):
        wanted = every.astype(np.float32).astype(KINDS[other])
    assert np.array_equal(raw(narrow.converted(every, KINDS[other])), raw(wanted))


def test_numpy_alone_gives_the_same(tmp_path):
    given = numbers()
    np.save(tmp_path / "given.npy", given)
    command = [sys.executable, "-c", ON_NUMPY_ALONE, tmp_path / "given.npy", tmp_path / "found.npz"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path.cwd())
    assert done.returncode == 0, done.stderr[-2000:]
    found = np.load(tmp_path / "found.npz")
    for name, to in KINDS.items():
        assert np.array_equal(found[name], raw(narrow.converted(given, to))), name
        assert np.array_equal(raw(found[f"wide {name}"]), raw(narrow.widened(patterns(to)))), name


def test_a_kernel_in_bf16_runs_alike_on_numpy_alone(tmp_path):
    types = {"x": "*bf16", "o": "*fp32", "s": "*bf16", "B": "constexpr"}
    (tmp_path / "kernel.ttir").write_text(text_of(in_bf16, types, {"B": 32}), encoding="utf-8")
    found = {}
    for way in ("alone", "with"):
        command = [sys.executable, "-c", RUN, way, tmp_path / "kernel.ttir"]
        done = subprocess.run(command, capture_output=True, text=True, cwd=Path.cwd())
        assert done.returncode == 0, done.stderr[-2000:]
        found[way] = json.loads(done.stdout)
    assert found["alone"] == found["with"] and len(found["with"][3]) == 2
