"""What lines compute, what operands move, and how long a launch takes at least."""

import torch
import triton
import triton.language as tl

from tilescope.command import as_dict, table
from tilescope.floors import BANDWIDTH, in_words
from tilescope.watching import watch


@triton.jit
def halved(x):
    return tl.exp(x) / 2


@triton.jit
def product(a_ptr, b_ptr, c_ptr, M, K, B: tl.constexpr):
    i, j = tl.program_id(0) * B + tl.arange(0, B), tl.arange(0, B)
    acc = tl.zeros((B, B), tl.float32)
    for k in range(0, K, B):
        a = tl.load(a_ptr + i[:, None] * K + (k + j)[None, :])
        b = tl.load(b_ptr + (k + j)[:, None] * B + j[None, :])
        acc += tl.dot(a, b)
    if tl.program_id(0) > 0:
        acc = halved(acc)
    tl.store(c_ptr + i[:, None] * B + j[None, :], acc)


def line_of(kernel, words: str) -> int:
    lines = kernel.src.splitlines()
    return kernel.fn.__code__.co_firstlineno + 1 + next(at for at, line in enumerate(lines) if words in line)


def seen_of(times: int = 1):
    a, b, c = torch.randn(48, 64).half(), torch.randn(64, 16).half(), torch.zeros(48, 16)
    with watch() as seen:
        for _ in range(times):
            product[(3,)](a, b, c, 48, 64, B=16)
    return seen


def test_each_line_counts_its_operations_and_its_dots():
    seen = seen_of()
    flops = {row.line: row.flops for row in seen.work if row.flops}
    assert flops == {line_of(product, "tl.dot"): 2 * 48 * 16 * 64}
    operations = {row.line: row.operations for row in seen.work}
    assert operations[line_of(halved, "tl.exp")] == 2 * 2 * 16 * 16  # of two programs, an exp and a division
    assert operations[line_of(product, "tl.dot")] == 4 * 48 * 16  # acc + the dot, in four turns
    twice = seen_of(2)
    assert [row.operations for row in twice.work] == [2 * row.operations for row in seen.work]


def test_operands_are_counted_in_total_distinct_and_by_wave():
    moved = seen_of().bytes["b_ptr"].load
    assert (moved.requested, moved.unique, moved.wave) == (3 * 64 * 16 * 2, 64 * 16 * 2, 64 * 16 * 2)


def test_a_launch_takes_at_least_what_its_slowest_limit_says():
    for times in (1, 2):
        kernel = seen_of(times).kernels["product"]
        assert (
            kernel.floor == (48 * 64 * 2 + 64 * 16 * 2 + 48 * 16 * 4) / BANDWIDTH and kernel.limit == "memory"
        )
    assert kernel.seconds["dots"] == 2 * 48 * 16 * 64 / 989e12
    kernel.dots["fp16"] += 10**12
    assert kernel.limit == "dots" and in_words(kernel.floor) == "506 µs"


def test_the_tables_and_the_data_have_them():
    seen = seen_of()
    said, data = table(seen), as_dict(seen)
    assert f"{2 * 48 * 16 * 64:,}" in said and "product: a launch takes at least 2.35 ns on an H200" in said
    assert data["bytes"]["b_ptr"]["load"]["unique"] == 2048
    assert (
        data["kernels"]["product"]["limit"] == "memory" and sum(row["flops"] for row in data["work"]) == 98304
    )
