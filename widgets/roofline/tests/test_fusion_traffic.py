"""The chain's traffic against arrays that are really passed along."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.machines import MACHINES
from widgets.registry import find

FUSION = find("fusion_traffic")


def fusion(**inputs):
    return FUSION.run(**FUSION.inputs(inputs))


@given(
    st.integers(1, 6),
    st.sampled_from([1, 64, 2048]),
    st.sampled_from([256, 4096]),
    st.sampled_from([1, 2, 4]),
)
def test_every_operation_reads_one_array_and_writes_one(operations, rows, width, element_bytes):
    r = fusion(operations=operations, rows=rows, width=width, element_bytes=element_bytes)
    x = np.empty((rows, width), {1: np.int8, 2: np.float16, 4: np.float32}[element_bytes])
    moved = sum(x.nbytes + np.empty_like(x).nbytes for _ in range(operations))
    assert r.unfused_bytes == moved and r.fused_bytes == 2 * x.nbytes
    assert r.unfused_bytes - r.fused_bytes == r.intermediate_traffic_bytes
    assert r.ratio == pytest.approx(operations)
    assert r.unfused_passes == 2 * operations and r.fused_passes == 2


@given(st.integers(1, 128))
def test_layers_multiply_traffic_and_not_what_is_alive(layers):
    one, many = fusion(), fusion(layers=layers)
    assert many.intermediate_traffic_bytes == layers * one.intermediate_traffic_bytes
    assert many.materialised_bytes == one.materialised_bytes


def test_time_is_bytes_over_bandwidth():
    r = fusion(machine_name="B200")
    assert r.saved_s == pytest.approx(r.intermediate_traffic_bytes / MACHINES["B200"].bandwidth)
    assert r.unfused_s - r.fused_s == pytest.approx(r.saved_s)


def test_one_operation_has_nothing_to_fuse():
    r = fusion(operations=1)
    assert r.ratio == 1 and r.intermediate_traffic_bytes == 0
    assert not any("waste" in mark["id"] for mark in FUSION.scene(r).marks)


def test_a_measured_kernel_stands_beside_the_fused_bytes():
    r = fusion()
    scene = FUSION.scene(r, {"bytes_moved": 1.5 * r.fused_bytes})
    assert "1.5× the model" in scene.beside[0]
