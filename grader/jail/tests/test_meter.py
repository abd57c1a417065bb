"""Counted traffic equals the arithmetic to the byte, and what leaves a tensor or races is said."""

import numpy as np
import pytest

from grader.jail.tests.test_interpreter import tensor
from grader.jailer import jail
from kernels.gemm_tiling import cost

COPY = """
@triton.jit
def kernel(x_ptr, o_ptr, N, stride_xm, B: tl.constexpr, STEP: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    x = tl.load(x_ptr + {load}, mask={mask}, other=0.0)
    tl.store(o_ptr + {store}, x, mask=i < N)

def launch(p):
    return {{"steps": [{{"kernel": kernel, "grid": (triton.cdiv(p.N, 64),), "constexprs": {{"B": 64, "STEP": 1}}}}]}}
"""


def copy(load="i", mask="i < N", store="i", n=200, size=None, sm_count=2):
    size = size or n
    x = np.arange(size, dtype=np.float32)
    source = COPY.format(load=load, mask=mask, store=store)
    task = {
        "source": source,
        "sizes": {"N": n},
        "sm_count": sm_count,
        "tensors": [tensor("x", "fp32", (size,)), tensor("o", "fp32", (size,), "out")],
    }
    return jail("interpret").ask(task, {"x": x})


@pytest.mark.parametrize(
    "load, n, size, want",
    [
        ("i", 200, 200, {"requested": 800, "dedup": 800, "sectors": 800, "wave": 800, "unique": 800}),
        ("i // 2", 128, 128, {"requested": 512, "dedup": 256, "sectors": 256, "wave": 256, "unique": 256}),
        ("i * 8", 64, 512, {"requested": 256, "dedup": 256, "sectors": 2048, "wave": 256, "unique": 256}),
        (
            "tl.arange(0, B)",
            256,
            256,
            {"requested": 1024, "dedup": 1024, "sectors": 1024, "wave": 512, "unique": 256},
        ),
    ],
)
def test_counts_of_one_read(load, n, size, want):
    counts = copy(load, n=n, size=size).header["launches"][0]["tensors"]["x"]["load"]
    assert {k: counts[k] for k in want} == want


@pytest.mark.parametrize("condition", ["N > 0", "tl.program_id(0) >= 0", "N < 0"])
def test_a_scalar_condition_masks_lanes_and_is_no_place(condition):
    outcome = copy(mask=f"(i < N) & ({condition})")
    loads = outcome.header["launches"][0]["tensors"]["x"].get("load", {"requested": 0})
    assert loads["requested"] == (0 if condition == "N < 0" else 800)


def test_out_of_bounds_names_tensor_program_and_element():
    error = copy(load="i + 8").error
    assert error["kind"] == "OutOfBounds"
    detail = error["detail"]
    assert (detail["tensor"], detail["program"], detail["last"], detail["extent"]) == (
        "x",
        [3, 0, 0],
        207,
        200,
    )


def test_out_of_bounds_before_the_first_element():
    assert copy(load="i - 4").error["detail"]["first"] == -4


def test_two_programs_on_one_element_are_a_race():
    races = copy(store="i % 64").header["races"]
    assert races and races[0]["how"] == "write after write" and races[0]["tensor"] == "o"


def test_the_same_value_written_twice_is_no_race():
    outcome = copy(load="i * 0", store="i % 64")
    assert outcome.header["races"] == []


@pytest.mark.parametrize(
    "m, n, k, bm, bn", [(128, 128, 64, 32, 64), (100, 70, 50, 32, 64), (1, 200, 96, 16, 64)]
)
def test_gemm_moves_what_the_model_says(m, n, k, bm, bn, gemm_source):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((m, k)).astype(np.float16), rng.standard_normal((k, n)).astype(np.float16)
    tensors = [tensor("a", "fp16", (m, k)), tensor("b", "fp16", (k, n)), tensor("c", "fp16", (m, n), "out")]
    tensors[0]["axes"], tensors[1]["axes"], tensors[2]["axes"] = "mk", "kn", "mn"
    source = gemm_source.replace(
        "BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M = 64, 64, 32, 8",
        f"BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M = {bm}, {bn}, 32, 4",
    )
    task = {"source": source, "sizes": {"M": m, "N": n, "K": k}, "sm_count": 4, "tensors": tensors}
    outcome = jail("interpret").ask(task, {"a": a, "b": b})
    counts = outcome.header["launches"][0]["tensors"]
    moved = (
        counts["a"]["load"]["requested"]
        + counts["b"]["load"]["requested"]
        + counts["c"]["store"]["requested"]
    )
    assert moved == cost.gemm_bytes(m, n, k, bm, bn, 2)
