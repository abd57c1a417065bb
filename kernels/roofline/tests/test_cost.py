"""The roofline formulas against every figure of the sources, and against what must hold for any input."""

import math

import pytest

from kernels.machines import MACHINES, machine
from kernels.roofline import cost
from kernels.tests.figures import KBIT, PERF, REAL, REFUSAL, hold, table
from kernels.tests.properties import given, st

H100 = {"peak_flop_s": 989e12, "bandwidth_byte_s": 3.35e12}
TP8 = {"devices": 8, **H100}
GEMM = cost.gemm(4096, 4096, 4096)
CHAIN = cost.chain_traffic(3, rows=2048, width=4096)
COMPILED = {
    "tokens_s": 120,
    "shares": {"GEMM": 0.50, "element-wise": 0.35, "launches": 0.15},
    "cuts": cost.COMPILE_CUTS,
}


def dividend():
    return cost.compile_dividend(**COMPILED)


def energy_j(level):
    return cost.LEVELS[level].energy_j


FIGURES = [
    (PERF, "V100 ridge", lambda: cost.ridge(125e12, 0.9e12), 139, 1),
    (PERF, "A100 ridge", lambda: cost.ridge(312e12, 2.04e12), 153, 1),
    (PERF, "H100 ridge", lambda: cost.ridge(989e12, 3.35e12), 295.2, 0.1),
    (PERF, "H100 ridge, fp8", lambda: cost.ridge(1979e12, 3.35e12), 590.7, 0.1),
    (PERF, "B200 ridge", lambda: cost.ridge(2250e12, 8e12), 281, 1),
    (
        PERF,
        "ridges of the machines",
        lambda: [machine(m).ridge() for m in ("V100", "A100", "H100", "B200")],
        [139, 153, 295, 281],
        0.6,
    ),
    (PERF, "ridge V100 to B200", lambda: machine("B200").ridge() / machine("V100").ridge(), 2, "2%"),
    (REAL, "FP4 over FP16 peak", lambda: machine("B200").rate("fp4") / machine("B200").rate("fp16"), 4, "1%"),
    (PERF, "FP8 over FP16 peak", lambda: machine("H100").rate("fp8") / machine("H100").rate("fp16"), 2, "1%"),
    (PERF, "GEMM 4096 FLOPs", lambda: GEMM.flops, 137.4e9, "0.1%"),
    (PERF, "GEMM 4096 bytes", lambda: GEMM.bytes_moved, 100.7e6, "0.1%"),
    (PERF, "GEMM 4096 intensity", lambda: GEMM.intensity, 1365.3, 0.05),
    (PERF, "GELU on 4096 x 4096", lambda: cost.elementwise(4096**2, 5).intensity, 1.2, 0.06),
    (PERF, "decode, hidden 4096, batch 1", lambda: cost.decode_operation(1, 4096, 4096).intensity, 1, "1%"),
    (PERF, "I(B) at batch 1", lambda: cost.decode_intensity(1, 70e9, 8192), 1, "1%"),
    (PERF, "I(B) at batch 256", lambda: cost.decode_intensity(256, 70e9, 8192), 256, "1%"),
    (PERF, "prefill of 1024 tokens", lambda: cost.tokens_intensity(1024), 1024, "exact"),
    (PERF, "70B on 8 H100: FLOPs", lambda: cost.decode_step(70e9, **TP8).flops, 17.5e9, "exact"),
    (PERF, "70B on 8 H100: bytes", lambda: cost.decode_step(70e9, **TP8).bytes_moved, 17.5e9, "exact"),
    (PERF, "70B on 8 H100: intensity", lambda: cost.decode_step(70e9, **TP8).intensity, 1, "exact"),
    (PERF, "70B on 8 H100: time", lambda: cost.decode_step(70e9, **TP8).time_s, 5.2e-3, "0.5%"),
    (PERF, "70B on 8 H100: tokens/s", lambda: cost.decode_step(70e9, **TP8).tokens_s, 191.4, 0.05),
    (
        PERF,
        "70B on 8 H100: share of peak",
        lambda: cost.decode_step(70e9, **TP8).compute_share,
        0.003,
        0.0005,
    ),
    (PERF, "weights a GPU, fp16", lambda: cost.weight_bytes_per_device(70e9, 2, 8), 17.5e9, "exact"),
    (PERF, "utilization 5% to 40%", lambda: cost.cost_per_token_ratio(0.05, 0.40), 8, "0.01%"),
    (PERF, "HBM over SRAM energy", lambda: energy_j("HBM") / energy_j("shared memory"), 1280, "0.01%"),
    (PERF, "register file", lambda: cost.LEVELS["registers"].bytes_on_h100 / 2**20, 33, "exact"),
    (PERF, "read all 80 GB", lambda: cost.read_all_s(80e9, 3.35e12), 24e-3, "1%"),
    (PERF, "1e12 accesses of HBM", lambda: cost.memory_power_w(1e12, {"HBM": 1.0}), 640, "0.01%"),
    (PERF, "half moved to SRAM", lambda: cost.power_saved_w(1e12, 0.5), 320, "1%"),
    (
        PERF,
        "left when half moved",
        lambda: cost.memory_power_w(1e12, {"HBM": 0.5, "shared memory": 0.5}),
        320,
        "1%",
    ),
    (PERF, "1000 GPUs", lambda: cost.fleet_power_saved_w(1000, 1e12, 0.5), 320e3, "1%"),
    (PERF, "power of 250 homes", lambda: cost.fleet_power_saved_w(1000, 1e12, 0.5) / 250, 1280, "1%"),
    (PERF, "one intermediate", lambda: CHAIN.one_tensor_bytes, 16.8e6, "0.5%"),
    (PERF, "two intermediates", lambda: CHAIN.materialised_bytes, 33.6e6, "0.5%"),
    (PERF, "their traffic", lambda: CHAIN.intermediate_traffic_bytes, 67.1e6, "0.5%"),
    (PERF, "round trips", lambda: CHAIN.round_trips, (6, 2), "exact"),
    (PERF, "three times less", lambda: CHAIN.ratio, 3, "exact"),
    (
        PERF,
        "80 layers",
        lambda: cost.chain_traffic(3, 2048, 4096, layers=80).intermediate_traffic_bytes,
        5.4e9,
        "1%",
    ),
    (PERF, "50 launches of 10 us", lambda: cost.launch_overhead_s(50, 10e-6), 500e-6, "0.01%"),
    (PERF, "their share of 2.5 ms", lambda: cost.launch_share(50, 10e-6, 2e-3).share, 0.20, "0.01%"),
    (
        PERF,
        "30 kernels a layer",
        lambda: [cost.launch_overhead_s(30, s) for s in (5e-6, 10e-6)],
        [150e-6, 300e-6],
        "0.01%",
    ),
    (
        PERF,
        "70 layers",
        lambda: [cost.launch_overhead_s(30, s, 70) for s in (5e-6, 10e-6)],
        [10.5e-3, 21e-3],
        "0.01%",
    ),
    (PERF, "compiled: before", lambda: sum(dividend().before_s.values()), 8.33e-3, "0.5%"),
    (PERF, "compiled: parts", lambda: dividend().after_s.values(), [4.17e-3, 0.87e-3, 0.25e-3], "0.7%"),
    (PERF, "compiled: after", lambda: sum(dividend().after_s.values()), 5.29e-3, "0.5%"),
    (PERF, "compiled: tokens/s", lambda: dividend().tokens_s, 189, "0.5%"),
    (PERF, "compiled: speedup", lambda: dividend().speedup, 1.58, "0.5%"),
    (PERF, "compiled: GEMM's share", lambda: dividend().bottleneck_share, 0.79, "0.5%"),
    (
        KBIT,
        "graph over two dispatches",
        lambda: cost.launch_overhead_s(2, 14e-6) - cost.graph_pass_s(3e-6),
        25e-6,
        "0.01%",
    ),
]


@table(FIGURES)
def test_figures_of_the_sources(source, given, formula, expect, tolerance):
    hold(formula, expect, tolerance)


def test_a_graph_of_any_length_replays_in_under_a_tenth_of_a_millisecond():
    assert cost.graph_pass_s(5e-6) <= cost.graph_pass_s(10e-6) < 0.1e-3
    assert cost.launch_overhead_s(30, 10e-6, 70) - cost.graph_pass_s() > 15e-3
    assert cost.graphs_first(0.5e-3, 2.5e-3) and not cost.graphs_first(0.1e-3, 1e-3)


def test_an_operation_of_200_changes_regime_with_the_generation():
    regime = {name: cost.bound(200, one.ridge()) for name, one in MACHINES.items()}
    assert (regime["V100"], regime["A100"]) == ("compute", "compute")
    assert (regime["H100"], regime["B200"]) == ("memory", "memory")
    assert all(cost.bound(10, one.ridge()) == "memory" for one in MACHINES.values())


def test_the_usual_operations_stand_where_the_table_puts_them():
    """The decode layer also moves its two vectors, so it lies a hair under the 1 FLOP/byte reported."""
    placed = {op.name: op.intensity for op in cost.common_operations()}
    for name, (low, high) in cost.REPORTED_INTENSITY.items():
        assert 0.999 * low <= placed[name] <= high, name
    ridge = machine("H100").ridge()
    assert cost.bound(placed["GEMM 4096"], ridge) == "compute"
    assert cost.bound(placed["prefill, 1024 tokens"], ridge) == "compute"
    assert all(cost.bound(placed[name], ridge) == "memory" for name in list(cost.REPORTED_INTENSITY)[1:])
    assert placed["attention 2048, tiled"] > ridge > placed["attention 2048, scores in HBM"]


def test_more_flops_without_bandwidth_decode_no_faster():
    slow = cost.decode_step(70e9, **TP8)
    fast = cost.decode_step(70e9, devices=8, peak_flop_s=2 * 989e12, bandwidth_byte_s=3.35e12)
    assert slow.time_s == fast.time_s and slow.bound == "memory"


def test_an_upgrade_buys_the_bandwidth_ratio():
    """A100 to H100 is 3.2x the FLOP/s; the source reports 15% for batch 1, the bandwidths say 64%."""
    old, new = machine("A100"), machine("H100")
    assert new.rate("fp16") / old.rate("fp16") == pytest.approx(3.17, rel=0.01)
    times = [
        cost.decode_step(7e9, peak_flop_s=m.rate("fp16"), bandwidth_byte_s=m.bandwidth).time_s
        for m in (old, new)
    ]
    assert times[0] / times[1] == pytest.approx(1.64, rel=0.01)


@given(batch=st.integers(1, 4096), width=st.integers(64, 16384), params=st.floats(1e8, 1e12))
def test_decode_intensity_grows_with_the_batch_but_less_than_linearly(batch, width, params):
    one, many = (cost.decode_intensity(b, params, width) for b in (batch, 2 * batch))
    assert one < many <= 2 * one * (1 + 1e-12)


@given(width=st.integers(64, 16384), target=st.floats(1, 500))
def test_the_batch_at_the_ridge_stands_on_the_ridge(width, target):
    params = 70e9
    batch = cost.batch_at_ridge(target, params, width)
    assert 2 * params * batch / (2 * params + 2 * batch * width) == pytest.approx(target, rel=1e-9)


def test_no_batch_reaches_a_ridge_that_activations_forbid():
    assert math.isinf(cost.batch_at_ridge(1e9, 1e6, 4096))


@given(flops=st.floats(1, 1e15), moved=st.floats(1, 1e12), overhead=st.floats(0, 1))
def test_the_iron_law_lies_between_its_largest_term_and_their_sum(flops, moved, overhead):
    law = cost.iron_law(flops, moved, overhead, efficiency=0.5, **H100)
    terms = (law.memory_s, law.compute_s, law.overhead_s)
    assert max(terms) <= law.overlapped_s <= law.serial_s == pytest.approx(sum(terms))
    assert {"memory": terms[0], "compute": terms[1], "overhead": terms[2]}[law.binding] == max(terms)
    roof = cost.attainable_flop_s(cost.intensity(flops, moved), **H100)
    assert flops / roof == pytest.approx(max(flops / 989e12, moved / 3.35e12))


@given(operations=st.integers(1, 30), layers=st.integers(1, 100))
def test_fusing_saves_exactly_the_intermediates(operations, layers):
    chain = cost.chain_traffic(operations, 64, 128, layers=layers)
    assert chain.unfused_bytes - chain.fused_bytes == chain.intermediate_traffic_bytes
    assert chain.ratio == operations
    assert chain.time_saved_s(1e9) * 1e9 == pytest.approx(chain.intermediate_traffic_bytes)


def test_weights_are_read_either_way():
    """Two tensors of weights beside six passes and two: three times fewer become (6 + 2) / (2 + 2)."""
    weights = cost.gemm_weights_bytes(4096)
    assert weights == 4096 * 4096 * 2 == 2 * CHAIN.one_tensor_bytes
    assert CHAIN.ratio_with(weights) == 2 and CHAIN.ratio_with(0) == CHAIN.ratio
    assert cost.gemm_weights_bytes(256, 1, layers=80) == 256 * 256 * 80
    one_row = cost.chain_traffic(6, 1, 4096)
    assert 1 < one_row.ratio_with(weights) < 1.01


def test_a_row_kernel_reads_once_and_writes_once():
    assert cost.row_kernel_bytes(2048, 4096) == 2 * 2048 * 4096 * 2 + 2 * 4096 * 2


def test_tensor_cores_want_multiples_of_sixteen_bytes():
    assert cost.tensor_core_aligned(8, 4096, element_bits=16)
    assert not cost.tensor_core_aligned(4097, 4096, element_bits=16)
    assert not cost.tensor_core_aligned(8, element_bits=8) and cost.tensor_core_aligned(16, element_bits=8)


def test_compiling_is_paid_back_by_enough_calls():
    """Ten minutes of compiling over 3.04 ms saved a token: about two hundred thousand tokens."""
    after_s = sum(dividend().after_s.values())
    assert cost.calls_to_amortise(600, 1 / 120, after_s) == pytest.approx(197_000, rel=0.01)
    assert math.isinf(cost.calls_to_amortise(600, 1e-3, 1e-3))


def test_a_year_of_the_fleet_saving_is_nearly_three_gigawatt_hours():
    assert cost.annual_energy_j(320e3) / 3.6e6 == pytest.approx(2.80e6, rel=0.01)


def test_a_step_at_a_batch_by_hand():
    """10 weights of 2 bytes on 2 devices, 1 byte/s and 4 FLOP/s: 10 s of bytes, 2.5 s of FLOPs a request."""
    one = cost.decode_step(
        10, peak_flop_s=4, bandwidth_byte_s=1, devices=2, batch=8, kv_bytes=1, overhead_s=3
    )
    assert (one.flops, one.bytes_moved, one.memory_s, one.compute_s) == (80, 11, 11, 20)
    assert (one.time_s, one.bound, one.compute_share) == (23, "compute", 20 / 23)
    assert one.tokens_s == 8 / 23
    assert cost.weight_bytes_per_device(10) == 20


def test_half_the_efficiency_doubles_the_arithmetic():
    law = cost.iron_law(8, 6, 1, peak_flop_s=4, bandwidth_byte_s=2, efficiency=0.5)
    assert (law.memory_s, law.compute_s, law.serial_s, law.overlapped_s) == (3, 4, 8, 5)
    assert law.binding == "compute"
    assert cost.iron_law(8, 6, 1, peak_flop_s=4, bandwidth_byte_s=2).compute_s == 2


def test_attention_moves_four_tensors_and_four_squares():
    kept, tiled = (cost.attention(10, 4, scores_in_hbm=hbm) for hbm in (True, False))
    assert kept.flops == tiled.flops == 4 * 100 * 4
    assert (kept.bytes_moved, tiled.bytes_moved) == (2 * (160 + 400), 2 * 160)


def test_levels_rise_in_time_and_energy_with_distance():
    levels = [cost.LEVELS[name] for name in ("registers", "shared memory", "L2", "HBM")]
    assert [one.latency_s for one in levels] == sorted(one.latency_s for one in levels)
    assert cost.latency_ratio() == pytest.approx(15)
    assert cost.latency_ratio() < cost.REPORTED_HBM_OVER_SRAM[0]
    energy = [one.energy_j for one in levels if one.energy_j is not None]
    assert energy == sorted(energy) == [pytest.approx(x) for x in (0.01e-12, 0.5e-12, 640e-12)]


@pytest.mark.parametrize(
    "refused",
    [
        lambda: cost.ridge(0, 1e12),
        lambda: cost.ridge(1e12, math.nan),
        lambda: cost.intensity(1, 0),
        lambda: cost.attainable_flop_s(-1, 1e12, 1e12),
        lambda: cost.iron_law(1, 1, 1, efficiency=1.2, **H100),
        lambda: cost.gemm(0, 1, 1),
        lambda: cost.gemm(1.5, 1, 1),
        lambda: cost.decode_step(70e9, devices=0, **H100),
        lambda: cost.decode_step(70e9, batch=-1, **H100),
        lambda: cost.decode_intensity(1, -70e9, 8192),
        lambda: cost.cost_per_token_ratio(0.0, 0.4),
        lambda: cost.energy_per_access_j({"HBM": 0.5}),
        lambda: cost.energy_per_access_j({"L2": 1.0}),
        lambda: cost.latency_ratio("disk"),
        lambda: cost.power_saved_w(1e12, 1.5),
        lambda: cost.chain_traffic(0, 1, 1),
        lambda: cost.launch_share(10, -1e-6, 1e-3),
        lambda: cost.compile_dividend(120, {"GEMM": 0.5}, {}),
        lambda: cost.compile_dividend(120, {"GEMM": 1.0}, {"GEMM": 1.0}),
        lambda: cost.tensor_core_aligned(8, element_bits=7),
    ],
)
def test_nonsense_is_refused(refused):
    with pytest.raises(ValueError, match=REFUSAL):
        refused()
