"""Codes go to and fro without loss, weights within their bound, and each format agrees with a second way to it."""

import numpy as np
import pytest

from kernels.quantization_layouts import checkpoints, cost, reference
from kernels.tensors import DTYPES
from kernels.tests.figures import REFUSAL
from kernels.tests.properties import given, st

ROWS, BITS, GROUPS, DTYPE = (
    st.integers(1, 5),
    st.sampled_from((2, 3, 4, 5)),
    st.sampled_from(reference.GROUPS),
    st.sampled_from(("fp16", "bf16")),
)
SEED, COUNT = st.integers(0, 999), st.integers(1, 3)


def drawn(n, k, seed, dtype="fp32", size=1.0):
    w = np.random.default_rng(seed).standard_normal((n, k)) * size
    return w.astype(DTYPES[dtype])


@given(
    n=ROWS,
    count=COUNT,
    group=GROUPS,
    zero_points=st.booleans(),
    dtype=DTYPE,
    seed=SEED,
    power=st.integers(-8, 8),
)
def test_int4_misses_by_half_a_step_at_most(n, count, group, zero_points, dtype, seed, power):
    w = drawn(n, count * group, seed, size=2.0**power)
    q = reference.quantize_int4(w, group, zero_points, dtype)
    assert q.codes.max() < 16 and q.scales.dtype == DTYPES[dtype] and q.scales.shape == (n, count)
    assert (np.abs(reference.values(q) - w) <= reference.error_bound(q)).all()


@given(n=ROWS, count=COUNT, group=GROUPS, bits=BITS, dtype=DTYPE, seed=SEED, power=st.integers(-8, 8))
def test_a_codebook_misses_by_half_its_widest_gap_at_most(n, count, group, bits, dtype, seed, power):
    w = drawn(n, count * group, seed, size=2.0**power)
    q = reference.quantize_kbit(w, bits, group, dtype)
    assert q.codes.max() < 2**bits and len(q.codebook) == 2**bits
    assert (np.abs(reference.values(q) - w) <= reference.error_bound(q)).all()


@given(n=ROWS, count=COUNT, bits=BITS, seed=SEED)
def test_bit_planes_hold_every_code(n, count, bits, seed):
    codes = np.random.default_rng(seed).integers(0, 2**bits, (n, 32 * count)).astype(np.uint8)
    planes = reference.bit_planes(codes, bits)
    assert planes.shape == (n, count, bits) and planes.nbytes * 8 == codes.size * bits
    assert np.array_equal(reference.from_bit_planes(planes), codes)
    i, j, b = n - 1, 32 * count - 3, bits - 1
    assert planes[i, count - 1, b] >> 29 & 1 == codes[i, j] >> b & 1


@pytest.mark.parametrize("order", checkpoints.ORDERS)
@given(n=st.sampled_from((8, 16, 40)), count=COUNT, group=GROUPS, zero_points=st.booleans(), seed=SEED)
def test_checkpoints_of_both_orders_read_back(order, n, count, group, zero_points, seed):
    q = reference.quantize_int4(drawn(n, count * group, seed), group, zero_points)
    stored = checkpoints.write(q, order)
    back = checkpoints.read(**stored, group=group, order=order)
    assert np.array_equal(back.codes, q.codes) and np.array_equal(back.scales, q.scales)
    assert np.array_equal(reference.values(back), reference.values(q))


def test_a_word_of_each_order_nibble_by_nibble():
    codes = np.arange(8, dtype=np.uint8)[None]
    assert checkpoints.packed_words(codes, checkpoints.GPTQ_ORDER).view(np.uint32)[0, 0] == 0x76543210
    assert checkpoints.packed_words(codes, checkpoints.AWQ_ORDER).view(np.uint32)[0, 0] == 0x75316420


@pytest.mark.parametrize(
    ("name", "quantize"),
    [
        ("int4", lambda w: reference.quantize_int4(w, 32)),
        ("int4 with zero point", lambda w: reference.quantize_int4(w, 32, True)),
        ("mxfp4", reference.quantize_mxfp4),
        ("nvfp4", reference.quantize_nvfp4),
        *(
            (f"codebook, {k} bits", lambda w, k=k: reference.quantize_kbit(w, k, 32, codebook=None))
            for k in (2, 3, 4, 5)
        ),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_the_simulators_quantizer_says_the_same(name, quantize):
    """cost.quantize is written number by number, in plain Python; levels are stored in 16 bits here alone."""
    w = drawn(1, 128, 5)
    ours, theirs = reference.values(quantize(w))[0], np.array(cost.quantize(w[0].tolist(), name, 32).values)
    close = np.abs(ours - theirs) <= 1e-3 * np.abs(w).max()
    assert close.mean() > 0.97, "but for a weight half-way between two levels"


@given(n=ROWS, count=COUNT, seed=SEED)
def test_eight_bits_by_hand(n, count, seed):
    w, x = drawn(n, 16 * count, seed), drawn(3, 16 * count, seed + 1)
    a, b = reference.quantize_int8(x), reference.quantize_int8(w)
    assert np.abs(reference.values(b) - w).max() <= np.abs(w).max() / 127 * 0.5001
    by_sums = reference.linear(reference.values(a), reference.values(b))
    np.testing.assert_allclose(reference.linear_w8a8(a, b), by_sums, rtol=1e-12, atol=1e-12)
    for per_row in (True, False):
        f = reference.quantize_fp8(w, per_row)
        assert f.numbers.dtype == DTYPES["fp8"]
        missed = np.abs(reference.values(f) - w)
        assert (missed <= np.abs(w) * 2.0**-4 + f.scales * 2.0**-10).all()


@given(n=ROWS, count=COUNT, seed=SEED, power=st.integers(-6, 6))
def test_fp4_formats_keep_their_scales_small(n, count, seed, power):
    w = drawn(n, 32 * count, seed, size=2.0**power)
    mx, nv = reference.quantize_mxfp4(w), reference.quantize_nvfp4(w)
    assert (np.log2(mx.scales) % 1 == 0).all() and mx.scales.shape == (n, count)
    assert nv.scales.shape == (n, 2 * count)
    for q in (mx, nv):
        assert set(np.abs(q.numbers).ravel()) <= set(reference.E2M1)
        top = reference.along_k(q.scales, q.group) * 6
        inside = np.abs(w) <= top
        assert (np.abs(reference.values(q) - w)[inside] <= top[inside] / 6 + 1e-12).all()


def test_groups_of_zeros_stay_zero():
    w = np.zeros((2, 128))
    for q in (
        reference.quantize_int4(w),
        reference.quantize_int4(w, zero_points=True),
        reference.quantize_kbit(w, 3),
        reference.quantize_int8(w),
        reference.quantize_fp8(w),
        reference.quantize_mxfp4(w),
        reference.quantize_nvfp4(w),
    ):
        assert not reference.values(q).any()


GOOD = checkpoints.write(reference.quantize_int4(drawn(64, 256, 0)), "gptq")
BAD = drawn(2, 128, 0)
BAD[1, 7] = np.nan


@pytest.mark.parametrize(
    ("refused", "name"),
    [
        (lambda: reference.quantize_int4(drawn(2, 100, 0)), "group must be a divisor of K = 100"),
        (lambda: reference.quantize_int4(drawn(2, 100, 0), 50), "group must be one of"),
        (lambda: reference.quantize_kbit(drawn(2, 33, 0), 4), "group must be a divisor of K = 33"),
        (lambda: reference.quantize_kbit(drawn(2, 32, 0), 6), "bits must be one of"),
        (lambda: reference.quantize_kbit(drawn(2, 32, 0), 2, codebook=(1, 0, 2, 3)), "codebook must be 4"),
        (lambda: reference.quantize_int4(BAD), "w must be finite, got nan at row 1, column 7"),
        (lambda: reference.quantize_nvfp4(BAD * np.inf), "w must be finite"),
        (lambda: reference.quantize_int4(BAD[0]), r"w must be \(N, K\)"),
        (lambda: reference.quantize_kbit(drawn(2, 32, 0), 4, dtype="fp8"), "dtype must be one of"),
        (lambda: reference.bit_planes(np.full((1, 32), 4, np.uint8), 2), "codes must be below 4"),
        (lambda: reference.bit_planes(np.zeros((1, 31), np.uint8), 2), "K must be a multiple of 32"),
        (lambda: checkpoints.read(**GOOD, group=128, order="awq"), "qweight must be .* packed as gptq does"),
        (lambda: checkpoints.read(**GOOD, group=64, order="gptq"), "qweight must be .* check the group"),
        (lambda: checkpoints.read(**GOOD, group=128, order="exl2"), "order must be one of"),
        (
            lambda: checkpoints.read(**GOOD | {"scales": GOOD["scales"][:, :-8]}, group=128, order="gptq"),
            "qweight must be",
        ),
        (
            lambda: checkpoints.read(**GOOD | {"qzeros": GOOD["qzeros"][:1]}, group=128, order="gptq"),
            "qzeros must be",
        ),
        (
            lambda: checkpoints.read(**GOOD, group=128, order="gptq", g_idx=np.arange(256) % 2),
            "g_idx must be",
        ),
    ],
)
def test_bad_input_is_refused(refused, name):
    with pytest.raises(ValueError, match=REFUSAL) as error:
        refused()
    assert error.match(f"^{name}")
