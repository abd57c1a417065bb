"""The figures of roofline, as its simulators give them; then what else the same document states."""

import pytest

from kernels.machines import MACHINES
from widgets.registry import find


def result(name, **inputs):
    simulator = find(name)
    return simulator.run(**simulator.inputs(inputs))


def roof(**inputs):
    return result("roofline", **inputs)


def ridge_v100():
    assert roof(machine_name="V100").ridge_flop_per_byte == pytest.approx(139, abs=1)


def ridge_a100():
    assert roof(machine_name="A100").ridge_flop_per_byte == pytest.approx(153, abs=1)


def ridge_h100():
    assert roof(machine_name="H100").ridge_flop_per_byte == pytest.approx(295.2, abs=0.1)


def ridge_h100_fp8():
    assert roof(machine_name="H100", dtype="fp8").ridge_flop_per_byte == pytest.approx(590.7, abs=0.1)


def gemm_4096():
    r = roof(operation="gemm", batch=4096)
    assert r.flops == pytest.approx(137.4e9, rel=0.001)
    assert r.bytes_moved == pytest.approx(100.7e6, rel=0.001)
    assert r.flop_per_byte == pytest.approx(1365.3, rel=0.001)


def decode_70b_tp8():
    r = roof(operation="decode_70b", batch=1, devices=8, machine_name="H100")
    assert r.flops == pytest.approx(17.5e9, rel=0.005) and r.bytes_moved == pytest.approx(17.5e9, rel=0.005)
    assert r.flop_per_byte == pytest.approx(1, rel=0.005)
    assert r.time_s == pytest.approx(5.2e-3, rel=0.005)
    assert r.rate_per_s == pytest.approx(191.4, rel=0.005)


def decode_intensity():
    for batch in (1, 256):
        assert roof(operation="decode_70b", batch=batch).flop_per_byte == pytest.approx(batch, rel=0.01)


def fusion_tensor():
    r = result("fusion_traffic", width=4096, rows=2048)
    assert r.tensor_bytes == pytest.approx(16.8e6, rel=0.005)
    assert r.materialised_bytes == pytest.approx(33.6e6, rel=0.005)
    assert r.intermediate_traffic_bytes == pytest.approx(67.1e6, rel=0.005)


def launch_share():
    r = result("launch_overhead", kernels=50, launch_us=10.0, work_ms=2.0, layers=1)
    assert r.overhead_s == pytest.approx(500e-6) and r.overhead_share == pytest.approx(0.20)


def graphs_70_layers():
    for launch_us, layer_us, pass_ms in ((5.0, 150, 10.5), (10.0, 300, 21)):
        r = result("launch_overhead", kernels=30, launch_us=launch_us, layers=70)
        assert r.layer_overhead_s == pytest.approx(layer_us * 1e-6)
        assert r.overhead_s == pytest.approx(pass_ms * 1e-3)
        assert r.graph.launches_s < 0.1e-3


def compile_dividend():
    """120 tokens/s: 1.25 ms of launches beside 7.08 ms of work, of which 35/85 are element-wise."""
    total_ms = 1e3 / 120
    r = result(
        "launch_overhead",
        kernels=125,
        launch_us=0.15 * total_ms * 1e3 / 125,
        work_ms=0.85 * total_ms,
        elementwise_percent=100 * 35 / 85,
    )
    assert r.eager.total_s == pytest.approx(8.33e-3, rel=0.005) and r.eager.per_s == pytest.approx(120)
    parts = [r.compiled.gemm_s, r.compiled.elementwise_s, r.compiled.launches_s, r.compiled.total_s]
    for part, ms in zip(parts, (4.17, 0.87, 0.25, 5.29), strict=True):
        assert part == pytest.approx(ms * 1e-3, rel=0.007)  # the source rounds 0.875 to 0.87
    assert r.compiled.per_s == pytest.approx(189, rel=0.005)
    assert r.compiled.speedup == pytest.approx(1.58, rel=0.005)
    assert r.gemm_share_compiled == pytest.approx(0.79, rel=0.005)


def energy_fusion():
    r = result("memory_energy", accesses=1.0, moved_percent=50, gpus=1000)
    assert r.before_w == pytest.approx(640)
    assert r.saved_w == pytest.approx(320, rel=0.01)
    assert r.fleet_saved_w == pytest.approx(320e3, rel=0.01)


FIGURES = {
    "energy_fusion": energy_fusion,
    "launch_share": launch_share,
    "graphs_70_layers": graphs_70_layers,
    "compile_dividend": compile_dividend,
    "fusion_tensor": fusion_tensor,
    "ridge_v100": ridge_v100,
    "ridge_a100": ridge_a100,
    "ridge_h100": ridge_h100,
    "ridge_h100_fp8": ridge_h100_fp8,
    "gemm_4096": gemm_4096,
    "decode_70b_tp8": decode_70b_tp8,
    "decode_intensity": decode_intensity,
}


def ridges_over_the_generations():
    """139 to 281, about twice; the B200's stands slightly below the H100's."""
    ridges = {m.machine: m.flop_per_byte for m in roof().machines}
    assert ridges["B200"] == pytest.approx(281, abs=1) and ridges["B200"] < ridges["H100"]
    assert ridges["B200"] / ridges["V100"] == pytest.approx(2, rel=0.02)


def two_hundred_changes_regime():
    """200 FLOP per byte: compute-bound on V100 and A100, memory-bound on H100 and B200; 10 is memory-bound on all."""
    ridges = {m.machine: m.flop_per_byte for m in roof().machines}
    assert max(ridges["V100"], ridges["A100"]) < 200 < min(ridges["H100"], ridges["B200"])
    assert min(ridges.values()) > 10 and set(ridges) == set(MACHINES)


def where_workloads_fall():
    """The table of operations on an H100; LayerNorm and GELU 1 to 3, decode about 1, attention 50 to 200."""
    usual = {p.name: p for p in roof().usual}
    assert usual["GEMM 4096"].bound == "compute"
    assert 50 <= usual["attention 2048, scores in HBM"].flop_per_byte <= 200
    for name in ("GELU", "LayerNorm"):
        assert 1 <= usual[name].flop_per_byte <= 3 and usual[name].bound == "memory"
    assert usual["decode, batch 1"].flop_per_byte == pytest.approx(1, rel=0.001)


def a_third_of_a_percent_of_the_peak():
    assert roof().peak_share == pytest.approx(0.003, abs=0.0005)


def prefill_is_compute_bound_and_decode_is_not():
    """The source counts the weights alone (1,024 FLOP per byte); with activations it is 683, still beyond the ridge."""
    r = roof(operation="prefill", batch=1024)
    assert r.bound == "compute" and r.ridge_flop_per_byte < r.flop_per_byte < 1024


def flops_alone_decode_no_faster():
    """H100 and H200 differ in bandwidth alone, and decode by just that."""
    old, new = roof(machine_name="H100"), roof(machine_name="H200")
    assert old.peak_flop_s == new.peak_flop_s
    assert old.time_s / new.time_s == pytest.approx(4.8 / 3.35)


def six_passes_to_two():
    r = result("fusion_traffic")
    assert (r.unfused_passes, r.fused_passes, r.ratio) == (6, 2, 3)


def eighty_layers_of_intermediates():
    assert result("fusion_traffic", layers=80).intermediate_traffic_bytes == pytest.approx(5.4e9, rel=0.01)


def fewer_launches_give_the_time_back():
    """50 operations in 5 to 10 kernels; a graph reclaims about 15 ms of 70 layers."""
    for kernels in (5, 10):
        assert not result("launch_overhead", kernels=kernels).try_graphs_first
    r = result("launch_overhead", kernels=30, launch_us=7.5, layers=70, work_ms=0.3)
    assert r.eager.total_s - r.graph.total_s == pytest.approx(15.7e-3, rel=0.01)


def levels_of_the_hierarchy():
    """Registers about 33 MB and 0.01 pJ, SRAM 0.5 pJ and 20 ns, L2 50 MB, HBM 80 GB and 640 pJ: 1,280 times."""
    levels = {rung.name: rung for rung in result("memory_energy").rungs}
    assert levels["registers"].bytes_on_h100 / 2**20 == 33 and levels["L2"].bytes_on_h100 == 50e6
    assert levels["registers"].energy_j == pytest.approx(0.01e-12)
    assert levels["shared memory"].times_hbm == pytest.approx(1280)
    assert levels["shared memory"].latency_s == 20e-9 and levels["HBM"].latency_s == 300e-9
    assert levels["HBM"].bytes_on_h100 == 80e9


def two_hundred_and_fifty_homes():
    assert result("memory_energy").homes == pytest.approx(250, rel=0.01)


MORE = [
    levels_of_the_hierarchy,
    two_hundred_and_fifty_homes,
    fewer_launches_give_the_time_back,
    six_passes_to_two,
    eighty_layers_of_intermediates,
    ridges_over_the_generations,
    two_hundred_changes_regime,
    where_workloads_fall,
    a_third_of_a_percent_of_the_peak,
    prefill_is_compute_bound_and_decode_is_not,
    flops_alone_decode_no_faster,
]
