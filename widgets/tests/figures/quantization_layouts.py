"""The figures of quantization_layouts, as its simulators give them; then what else the same documents state."""

import pytest

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


FIGURES = {"bits_g64": bits_g64, "bits_int8_g128": bits_int8_g128}


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


MORE = [
    effective_bandwidth_doubles,
    half_the_bytes_half_the_time,
    weight_only_at_batch_1_weight_and_activation_at_large_batches,
    formats_and_their_kernels,
    library_path_never_wins_at_large_m,
]
