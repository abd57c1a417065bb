"""The figures of quantization_layouts, as its simulators give them; then what else the same documents state."""

import pytest

from kernels.quantization_layouts import cost
from widgets.registry import find


def result(name, **inputs):
    simulator = find(name)
    return simulator.run(**simulator.inputs(inputs))


def payoff(**inputs):
    return result("payoff_accountant", **inputs)


def bits_g64():
    r = payoff(bits=4, group=64, scale_bits=16)
    assert r.bits_per_weight == 4.25
    assert r.metadata_share_of_payload == 0.0625
    assert r.metadata_share_of_dense == pytest.approx(0.016, abs=0.0005)  # 1.5625%, which the source rounds
    halved, sixteen = payoff(group=32), payoff(group=16)
    assert halved.metadata_share_of_payload == 2 * r.metadata_share_of_payload
    assert sixteen.bits_per_weight == 5 and sixteen.metadata_share_of_payload == 0.25
    assert sixteen.metadata_share_of_dense == 0.0625


def bits_int8_g128():
    r = payoff(bits=8, group=128, scale_bits=32)
    assert r.metadata_share_of_payload == pytest.approx(0.03, abs=0.002)  # 3.125%, which the source rounds


def kbit_memory():
    for k, gigabytes in ((2, 17.5), (3, 26.2), (4, 35.0), (5, 43.7)):
        stored = cost.memory_by_bits(70e9)
        assert stored[k] == pytest.approx(gigabytes * 1e9, rel=0.005) and stored[16] == 140e9


def _block(m, micros, speedups):
    for k, micro, speedup in zip((2, 3, 4, 5), micros[:4], speedups, strict=True):
        assert cost.block_us(k, m) == pytest.approx(micro, rel=0.01)
        assert cost.block_speedup(k, m) == pytest.approx(speedup, rel=0.01)
        assert cost.block_us(16, m) == pytest.approx(micros[4], rel=0.01)


def kbit_block_m1():
    _block(1, (57.8, 65.7, 75.1, 82.3, 100.4), (1.74, 1.53, 1.34, 1.22))


def kbit_crossover():
    for users, ratio in ((1, 0.57), (4, 0.76), (8, 0.85), (16, 1.00), (32, 1.17), (64, 1.23)):
        r = result("kbit_dispatch", users=users)
        assert r.time_ratio == ratio and r.break_even_users == 16


def precision_dividend():
    r = result("kv_capacity", weight_bits=4, kv_bits=8)
    assert r.before.request_bytes == pytest.approx(1.34e9, rel=0.005)
    assert (r.before.requests, r.narrow.requests) == (372, 901)
    assert r.gain == pytest.approx(2.4, rel=0.01)
    assert r.before.weight_bytes == 17.5e9 and r.narrow.weight_bytes == pytest.approx(4.4e9, rel=0.01)
    assert r.before.free_bytes == 62.5e9 and r.narrow.free_bytes == pytest.approx(75.6e9, rel=0.001)
    assert r.narrow.request_bytes == pytest.approx(0.67e9, rel=0.005)
    assert r.freed_bytes == pytest.approx(13e9, rel=0.01)


FIGURES = {
    "precision_dividend": precision_dividend,
    "bits_g64": bits_g64,
    "bits_int8_g128": bits_int8_g128,
    "kbit_memory": kbit_memory,
    "kbit_block_m1": kbit_block_m1,
    "kbit_crossover": kbit_crossover,
}


def effective_bandwidth_doubles():
    """Performance Engineering: 17.5 GB become 4.4, and with unpacking the step is about twice as fast."""
    r = payoff(dense_ms=17.5 / 3.35, group=1024)
    assert r.dense_bytes == pytest.approx(17.5e9) and r.quant_bytes == pytest.approx(4.4e9, rel=0.01)
    assert 2 < r.speedup < 2.5


def half_the_bytes_half_the_time():
    """Performance Engineering and Beyond attention: 2 bytes to 1 roughly halves the traffic, and the step."""
    assert payoff(bits=8, dequant_ms=0.0).speedup == pytest.approx(2, rel=0.02)


def weight_only_at_batch_1_weight_and_activation_at_large_batches():
    """Performance Engineering: int4 weights win while memory is the limit, fp8 when arithmetic is."""

    def by_name(**inputs):
        return {f.name: f.speedup for f in payoff(dequant_ms=0.3, **inputs).formats}

    alone, crowd = by_name(batch=1), by_name(batch=512)
    assert alone["int4 W4A16"] > alone["fp8 (E4M3 / E5M2)"] > 1
    assert crowd["fp8 (E4M3 / E5M2)"] > 1 > crowd["int4 W4A16"]


def formats_and_their_kernels():
    """The table of Beyond attention: bytes a weight, and who runs it fast."""
    formats = {f.name: f for f in payoff().formats}
    for name, family, activation in (
        ("bf16", "cuBLAS", 16),
        ("fp8 (E4M3 / E5M2)", "CUTLASS", 8),
        ("int8 W8A8", "SmoothQuant", 8),
        ("int8 W8A16", "Marlin", 16),
        ("int4 W4A16", "Machete", 16),
        ("2-bit, mixed", "specialised", 16),
    ):
        assert family in formats[name].kernels and formats[name].activation_bits == activation


def library_path_never_wins_at_large_m():
    """k-bit deployment: dequantization and a library GEMM is slower than fp16 at every M from 64 on."""
    for batch in (64, 128, 256, 512):
        assert payoff(batch=batch, placement="separate", machine_name="RTX 4090").speedup < 1


def kbit_block_m4():
    _block(4, (69.2, 77.7, 86.4, 94.7, 126.6), (1.83, 1.63, 1.46, 1.34))


def kbit_times_smaller():
    for k, smaller in ((2, 8.0), (3, 5.3), (4, 4.0), (5, 3.2)):
        stored = cost.memory_by_bits(70e9)
        assert stored[16] / stored[k] == pytest.approx(smaller, abs=0.05)


def kbit_shapes():
    """k-bit deployment, k = 4: Q and moe_dn gain little or nothing, the small KV the most; large M always loses."""
    small = [(name, m) for m, row in cost.kbit_tables.BEST_US.items() for name in row]
    by = {(name, m): cost.best_kernel(name, m)[2] for name, m in (*small, *cost.kbit_tables.LARGE_M_US)}
    for shape, speedup in (
        (("gateup", 1), 1.47),
        (("Q", 4), 1.06),
        (("O", 4), 2.35),
        (("moe_dn", 4), 1.00),
        (("moe_gu", 64), 0.47),
        (("moe_dn", 128), 0.47),
        (("moe_gu", 512), 0.70),
        (("gateup", 64), 0.34),
        (("gateup", 128), 0.51),
        (("gateup", 512), 0.73),
    ):
        assert by[shape] == pytest.approx(speedup, abs=0.01), shape
    assert by[("Q", 1)] < 1 < by[("KV", 1)] and all(speed < 1 for (_, m), speed in by.items() if m >= 64)


def kbit_dispatch_rule():
    """k-bit deployment: scalar GEMV for 1 to 4 rows, tensor cores for 5 to 16, the library from 17 on."""
    for users, family in (
        (1, "scalar GEMV"),
        (4, "scalar GEMV"),
        (5, "MMA"),
        (16, "MMA"),
        (17, "dequant + library"),
    ):
        r = result("kbit_dispatch", users=users)
        assert r.decode_family == family and r.prefill_family == "dequant + library"


def one_scale_wastes_precision_and_blocks_contain_it():
    """Performance Engineering: with an outlier of 20x one scale spoils the near-zero values; blocks confine it."""
    r = result("block_scales", numbers="bell", format_name="int8", group=16, outlier=20)
    hurt = [i for i, error in enumerate(r.blocks.block_errors) if error > 0.5 * max(r.blocks.block_errors)]
    assert hurt == [1]  # the outlier's own
    assert r.one.error_share > 1.5 * r.blocks.error_share


def formats_of_real_kernels():
    """Real kernels: MXFP4 shares a scale over 32, NVFP4 over 16; finer blocks are more accurate."""
    rivals = {v.name: v for v in result("block_scales").rivals}
    micro, nv = rivals["mxfp4"], rivals["nvfp4"]
    assert (micro.group, nv.group) == (32, 16) and nv.error_share < micro.error_share
    assert (micro.bits_per_weight, nv.bits_per_weight) == (4.25, 4.5)


def fragmentation():
    """Performance Engineering: 4,096 reserved and 500 used waste 88%; by arithmetic pages then hold 8 times as many.

    The source reports 2 to 4 times for pages, and 8 to 16 with a narrower cache.
    """
    r = result("kv_capacity", tokens=4096, mean_tokens=500)
    assert r.waste_share == pytest.approx(0.88, abs=0.005)
    assert r.paged_gain == pytest.approx(8.1, abs=0.1)
    both = result("kv_capacity", weight_bits=16, kv_bits=8)
    assert both.paged.requests / both.before.requests == pytest.approx(16, rel=0.02)


MORE = [
    fragmentation,
    one_scale_wastes_precision_and_blocks_contain_it,
    formats_of_real_kernels,
    kbit_block_m4,
    kbit_times_smaller,
    kbit_shapes,
    kbit_dispatch_rule,
    effective_bandwidth_doubles,
    half_the_bytes_half_the_time,
    weight_only_at_batch_1_weight_and_activation_at_large_batches,
    formats_and_their_kernels,
    library_path_never_wins_at_large_m,
]
