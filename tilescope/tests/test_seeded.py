"""Mistakes that were planted, one a kernel: each is found by its kind, its line, its tensor and its programs, and right twins
of the same kernels are not."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

KERNELS = """
import json
import numpy as np
import torch, triton, triton.language as tl
import tilescope

@triton.jit
def unmasked(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i), mask=i < n)  # unmasked load

@triton.jit
def shifted(x, out, n, BY: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n, other=0.0)
    tl.store(out + i - BY, v, mask=i < n)  # store to the left

@triton.jit
def gathered(x, index, out, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    at = tl.load(index + i)
    tl.store(out + i, tl.load(x + at))  # gather

@triton.jit
def turned(a, out, M, N, stride, B: tl.constexpr):
    r = tl.program_id(0) * B + tl.arange(0, B)
    c = tl.program_id(1) * B + tl.arange(0, B)
    inside = (r[:, None] < M) & (c[None, :] < N)
    tile = tl.load(a + r[:, None] * stride + c[None, :], mask=inside, other=0.0)
    tl.store(out + c[:, None] * M + r[None, :], tl.trans(tile), mask=tl.trans(inside))  # transposed

@triton.jit
def counted(x, total, ATOMIC: tl.constexpr):
    v = tl.load(x + tl.program_id(0))
    if ATOMIC:
        tl.atomic_add(total, v)  # atomic count
    else:
        tl.store(total, tl.load(total) + v)  # lost update

@triton.jit
def overlapping(x, out, STEP: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * STEP + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i) + tl.program_id(0))  # tiles overlap

@triton.jit
def scattered(x, index, out, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + tl.load(index + i), tl.load(x + i))  # scatter

@triton.jit
def smoothed(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    right = tl.load(x + i + 1, mask=i + 1 < n, other=0.0)  # neighbour read
    tl.store(out + i, right, mask=i < n)

@triton.jit
def locked(lock, total, FREE: tl.constexpr):
    while tl.atomic_cas(lock, 0, 1) == 1:  # lock taken
        pass
    tl.store(total, tl.load(total) + 1)
    if FREE:
        tl.atomic_xchg(lock, 0)

@triton.jit
def chained(flag, out, count, BACKWARDS: tl.constexpr):
    me = tl.program_id(0)
    other = (me + 1) % count if BACKWARDS else me - 1
    if other >= 0:
        while tl.atomic_add(flag + other, 0) == 0:  # waits for another
            pass
    tl.store(out + me, me + 1.0)
    tl.atomic_xchg(flag + me, 1)

@triton.jit
def row_end(x, out, N, stride, B: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, B)
    v = tl.load(x + row * stride + i, mask=i < N, other=-1.0)
    tl.store(out + row * N + i, v)  # mask forgotten

@triton.jit
def row_sum(x, out, N, GIVEN: tl.constexpr, B: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, B)
    if GIVEN:
        v = tl.load(x + row * N + i, mask=i < N, other=0.0)
    else:
        v = tl.load(x + row * N + i, mask=i < N)  # undefined lanes
    tl.store(out + row, tl.sum(v, 0))

@triton.jit
def product(a, b, out, K, B: tl.constexpr):
    i, k = tl.arange(0, B), tl.arange(0, B)
    x = tl.load(a + i[:, None] * K + k[None, :], mask=k[None, :] < K)  # undefined in a dot
    y = tl.load(b + k[:, None] * B + i[None, :], mask=k[:, None] < K, other=0.0)
    tl.store(out + i[:, None] * B + i[None, :], tl.dot(x, y))

@triton.jit
def squared(a, b, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(a + i, mask=i < n)  # one of two undefined
    y = tl.load(b + i, mask=i < n)
    tl.store(out, tl.sum(x * y, 0))

@triton.jit
def looked_up(x, index, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    at = tl.load(index + i, mask=i < n)  # undefined index
    tl.store(out + i, tl.load(x + at), mask=i < n)

@triton.jit
def promised(x, out, n, W: tl.constexpr, B: tl.constexpr):
    i = (tl.program_id(0) * B + tl.arange(0, B)) % n
    i = tl.max_contiguous(tl.multiple_of(i, W), W)  # hint
    tl.store(out + tl.program_id(0) * B + tl.arange(0, B), tl.load(x + i))

@triton.jit
def stepped(x, out, count, by, W: tl.constexpr, B: tl.constexpr):
    i, sums = tl.arange(0, B), tl.zeros((B,), tl.float32)
    at = 0
    for _ in range(count):
        at = tl.multiple_of(at, W)  # hint in a loop
        sums += tl.load(x + at + i)
        at += by
    tl.store(out + i, sums)

@triton.jit
def by_rows(x, out, stride, W: tl.constexpr, B: tl.constexpr):
    stride = tl.multiple_of(stride, W)  # hint of an argument
    x = tl.multiple_of(x, 16)  # hint of a pointer
    i = tl.arange(0, B)
    tl.store(out + tl.program_id(0) * B + i, tl.load(x + tl.program_id(0) * stride + i))

@triton.jit
def assumed(x, out, n, B: tl.constexpr):
    first = tl.program_id(0) * B
    tl.assume(first + B <= n)  # assumption
    i = first + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i, mask=i < n, other=0.0), mask=i < n)

@triton.jit
def far(x, out, stride, WIDE: tl.constexpr):
    row = tl.program_id(0)
    if WIDE:
        row = row.to(tl.int64)
    at = row * stride  # product of two int32
    tl.store(out + tl.program_id(0), tl.load(x + at % 64 if WIDE else x + at))

@triton.jit
def wrapping(x, out, stride, B: tl.constexpr):
    at = tl.program_id(0) * stride + tl.arange(0, B)  # wraps to a place inside
    tl.store(out + tl.program_id(0) * B + tl.arange(0, B), tl.load(x + at))

@triton.jit
def spread(x, out, stride, n, B: tl.constexpr):
    rows = tl.program_id(0) * B + tl.arange(0, B)
    at = rows * stride  # overflows in every other direction
    tl.store(out + rows, tl.load(x + at, mask=rows < n, other=0.0), mask=rows < n)

@triton.jit
def hashed(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    h = (i * 40503 * 65537) & 63
    tl.store(out + i, tl.load(x + h))

@triton.jit
def asserted(x, out, n):
    me = tl.program_id(0)
    tl.device_assert(me < n, "one program too many")  # assertion
    tl.store(out + me, tl.load(x + me))

ones, zeros, arange, randn = torch.ones, torch.zeros, torch.arange, torch.randn
"""
# name -> the launch; what it asks for; (kind, line, tensor, programs); where programs is None any will do
BUGS = {
    "a load past the end": (
        "unmasked[(4,)](ones(1000), zeros(1024), 1024, B=256)",
        "",
        ("bounds", "unmasked load", "x", [[3, 0, 0]]),
    ),
    "a load past the end of a numpy array": (
        "unmasked[(4,)](np.ones(1000, np.float32), np.zeros(1024, np.float32), 1024, B=256)",
        "",
        ("bounds", "unmasked load", "x", [[3, 0, 0]]),
    ),
    "a store before the beginning": (
        "shifted[(4,)](ones(64), zeros(64), 64, BY=2, B=16)",
        "",
        ("bounds", "store to the left", "out", [[0, 0, 0]]),
    ),
    "an index that was not checked": (
        "index = arange(64); index[37] = 64; gathered[(4,)](ones(64), index, zeros(64), B=16)",
        "",
        ("bounds", "gather", "x", [[2, 0, 0]]),
    ),
    "rows and columns exchanged": (
        "turned[(2, 1)](ones(24, 16), zeros(16, 16), 24, 16, 16, B=16)",
        "",
        ("bounds", "transposed", "out", None),
    ),
    "a lost update": (
        "counted[(5,)](ones(5), zeros(1), ATOMIC=False)",
        "",
        ("race", "lost update", "total", None),
    ),
    "tiles that overlap": (
        "overlapping[(4,)](ones(65), zeros(65), STEP=15, B=16)",
        "",
        ("race", "tiles overlap", "out", None),
    ),
    "a scatter that meets itself": (
        "index = arange(64); index[21] = 20; scattered[(4,)](arange(64.0), index, zeros(64), B=16)",
        "",
        ("race", "scatter", "out", [[1, 0, 0]]),
    ),
    "an update in place that reads its neighbour": (
        "x = arange(64.0); smoothed[(4,)](x, x, 64, B=16)",
        "",
        ("race", None, "x/out", None),
    ),
    "a lock that is not freed": (
        "locked[(4,)](zeros(1, dtype=torch.int32), zeros(1), FREE=False)",
        "",
        ("deadlock", "lock taken", "lock", None),
    ),
    "a ring in which each waits for the next": (
        "chained[(4,)](zeros(4, dtype=torch.int32), zeros(4), 4, BACKWARDS=True)",
        "",
        ("deadlock", "waits for another", "flag", [[p, 0, 0] for p in range(4)]),
    ),
    "a store without its mask": (
        "row_end[(3,)](ones(3, 20), zeros(3, 20), 20, 20, B=32)",
        "",
        ("bounds", "mask forgotten", "out", None),
    ),
    "the race of a store without its mask": (
        "row_end[(3,)](ones(3, 20), zeros(3, 20), 20, 20, B=32)",
        "",
        ("race", "mask forgotten", "out", None),
    ),
    "undefined lanes in a sum": (
        "row_sum[(2,)](ones(2, 20), zeros(2), 20, GIVEN=False, B=32)",
        "",
        ("mask", "undefined lanes", "x", [[0, 0, 0]]),
    ),
    "undefined lanes in a dot": (
        "product[(1,)](randn(16, 12), randn(12, 16), zeros(16, 16), 12, B=16)",
        "",
        ("mask", "undefined in a dot", "a", [[0, 0, 0]]),
    ),
    "undefined lanes on both sides of a product": (
        "squared[(1,)](ones(20), ones(20), zeros(1), 20, B=32)",
        "",
        ("mask", "one of two undefined", "a", [[0, 0, 0]]),
    ),
    "undefined lanes as an index": (
        "looked_up[(2,)](ones(32), arange(32), zeros(32), 20, B=16)",
        "",
        ("mask", "undefined index", "index", [[1, 0, 0]]),
    ),
    "a hint that does not hold": (
        "promised[(3,)](ones(40), zeros(48), 40, W=16, B=16)",
        "",
        ("hint", "hint", "", [[2, 0, 0]]),
    ),
    "a hint of what a loop carries that does not hold": (
        "stepped[(1,)](ones(64), zeros(16), 4, 12, W=16, B=16)",
        "",
        ("hint", "hint in a loop", "", [[0, 0, 0]]),
    ),
    "a hint of a kernel's argument that does not hold": (
        "by_rows[(3,)](ones(64), zeros(48), 20, W=16, B=16)",
        "",
        ("hint", "hint of an argument", "", [[0, 0, 0]]),
    ),
    "a hint of a kernel's pointer that does not hold": (
        "by_rows[(3,)](ones(65)[1:], zeros(48), 16, W=16, B=16)",
        "",
        ("hint", "hint of a pointer", "", [[0, 0, 0]]),
    ),
    "an assumption that does not hold": (
        "assumed[(4,)](ones(60), zeros(60), 60, B=16)",
        "",
        ("hint", "assumption", "", [[3, 0, 0]]),
    ),
    "an offset that overflows and leaves the tensor": (
        "far[(4,)](ones(64), zeros(4), 1 << 30, WIDE=False)",
        "overflow",
        ("overflow", "product of two int32", "", [[2, 0, 0]]),
    ),
    "an offset that overflows and comes back": (
        "wrapping[(5,)](ones(64), zeros(80), 1 << 30, B=16)",
        "overflow",
        ("overflow", "wraps to a place inside", "", [[2, 0, 0]]),
    ),
    "offsets that overflow in opposite directions": (
        "spread[(2,)](ones(64), zeros(8), 1 << 29, 8, B=4)",
        "overflow",
        ("overflow", "overflows in every other direction", "", [[1, 0, 0]]),
    ),
    "atomic additions of floats": (
        "counted[(5,)](randn(5), zeros(1), ATOMIC=True)",
        "atomics",
        ("atomics", "atomic count", "total", None),
    ),
    "an assertion": (
        "asserted[(5,)](ones(5), zeros(5), 4, debug=True)",
        "",
        ("failed", "assertion", "", [[4, 0, 0]]),
    ),
}
RIGHT = {
    "a load inside": ("unmasked[(4,)](ones(1024), zeros(1024), 1024, B=256)", ""),
    "numpy arrays": ("unmasked[(4,)](np.ones(64, np.float32), np.zeros(64, np.float32), 64, B=16)", ""),
    "an atomic update": ("counted[(5,)](ones(5), zeros(1), ATOMIC=True)", "overflow"),
    "integers added atomically": (
        "counted[(5,)](ones(5, dtype=torch.int32), zeros(1, dtype=torch.int32), ATOMIC=True)",
        "atomics",
    ),
    "tiles side by side": ("overlapping[(4,)](ones(64), zeros(64), STEP=16, B=16)", ""),
    "a scatter that meets itself with equal values": (
        "index = arange(64); index[21] = 20; scattered[(4,)](ones(64), index, zeros(64), B=16)",
        "",
    ),
    "a scatter of all places": ("scattered[(4,)](arange(64.0), arange(64).flip(0), zeros(64), B=16)", ""),
    "another tensor for the result": ("smoothed[(4,)](arange(64.0), zeros(64), 64, B=16)", ""),
    "a lock that is freed": ("locked[(4,)](zeros(1, dtype=torch.int32), zeros(1), FREE=True)", ""),
    "a chain": ("chained[(4,)](zeros(4, dtype=torch.int32), zeros(4), 4, BACKWARDS=False)", ""),
    "a sum with other": ("row_sum[(2,)](ones(2, 20), zeros(2), 20, GIVEN=True, B=32)", ""),
    "a hint that holds": ("promised[(3,)](ones(48), zeros(48), 48, W=16, B=16)", ""),
    "a hint of what a loop carries": ("stepped[(1,)](ones(64), zeros(16), 4, 16, W=16, B=16)", ""),
    "hints of a kernel's arguments": ("by_rows[(3,)](ones(80)[16:], zeros(48), 16, W=16, B=16)", ""),
    "an int64 offset": ("far[(4,)](ones(64), zeros(4), 1 << 30, WIDE=True)", "overflow"),
    "a hash that is meant to wrap": ("hashed[(1,)](ones(64), zeros(64), 64, B=64)", "overflow"),
    "an assertion without debug": ("asserted[(5,)](ones(5), zeros(5), 4)", ""),
}
ASKED = """
found = {{}}
for name, (code, asks, *_) in {scenes!r}.items():
    with tilescope.watch(**dict.fromkeys(asks.split(), True)) as seen:
        exec(code)
    found[name] = [f.as_dict() for f in seen.findings]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> dict:
    """What a watch around every launch saw, all in one process of their own."""
    script = tmp_path_factory.mktemp("seeded") / "seeded.py"
    script.write_text(KERNELS + ASKED.format(scenes={**BUGS, **RIGHT}))
    root = str(Path(__file__).parents[2])
    env = {**os.environ, "PYTHONPATH": root}
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, cwd=root, env=env)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def line(words: str) -> int:
    (number,) = [n for n, row in enumerate(KERNELS.splitlines(), 1) if row.endswith(f"# {words}")]
    return number


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_mistake_is_found(found, name):
    kind, words, tensor, programs = BUGS[name][2]
    fitting = [f for f in found[name] if f["kind"] == kind]
    assert fitting, found[name]
    finding = fitting[0]
    assert finding["tensor"] == tensor
    if words is not None:
        assert finding["line"] == line(words)
    if programs is not None:
        assert finding["programs"] == programs
    assert finding["programs"], finding


@pytest.mark.parametrize("name", RIGHT)
def test_its_right_twin_has_no_finding(found, name):
    assert found[name] == []
