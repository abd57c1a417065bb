"""The reference against itself, against derivatives, and against what each of its words means."""

import numpy as np
import pytest

from kernels.flash_attention import cases, reference, reference_tiles
from kernels.flash_attention.reference import attention
from kernels.tests.properties import given, st

RNG = np.random.default_rng(7)


def draw(*sizes):
    return [RNG.standard_normal(size) for size in sizes]


def qkv(length=7, keys=9, heads=2, kv_heads=2, d=4, batch=1):
    return draw((batch, heads, length, d), *[(batch, kv_heads, keys, d)] * 2)


@given(block=st.integers(1, 12), keys=st.integers(1, 12), peak=st.sampled_from((1.0, 30.0, 900.0)))
def test_the_tile_size_does_not_change_the_answer(block, keys, peak):
    q, k, v = draw((5, 4), (keys, 4), (keys, 4))
    out, lse = reference_tiles.tiled_attention(peak * q, k, v, block)
    whole, whole_lse = attention(peak * q[None, None], k[None, None], v[None, None])
    np.testing.assert_allclose(out, whole[0, 0], atol=1e-12)
    np.testing.assert_allclose(lse, whole_lse[0, 0], rtol=1e-12)


@given(cut=st.integers(1, 11), shift=st.sampled_from((-500.0, 0.0, 500.0)))
def test_one_pass_equals_two_passes_wherever_the_row_is_cut(cut, shift):
    s, v = shift + 5 * RNG.standard_normal(12), RNG.standard_normal(12)
    m, _, total, output = reference.online_softmax([s[:cut], s[cut:]], [v[:cut], v[cut:]])[-1]
    weights, lse = reference.softmax(s)
    assert m == s.max()
    assert m + np.log(total) == pytest.approx(lse)
    assert output == pytest.approx(weights @ v)


def test_weights_are_a_distribution_and_do_not_overflow():
    weights, lse = reference.softmax(np.array([[1000.0, 999.0], [-1000.0, -1001.0]]))
    np.testing.assert_allclose(weights, [[1 / (1 + np.exp(-1)), 1 / (1 + np.e)]] * 2)
    np.testing.assert_allclose(lse, [1000 + np.log1p(np.exp(-1)), -1000 + np.log1p(np.exp(-1))])


def test_a_row_that_sees_no_key_is_zero_and_minus_infinity():
    out, lse = attention(*qkv(length=9, keys=4), causal=True)
    assert not out[:, :, :5].any() and np.isneginf(lse[:, :, :5]).all()
    assert np.isfinite(lse[:, :, 5:]).all()


def test_the_last_query_stands_at_the_last_key():
    assert reference.visible(2, 4, causal=True).tolist() == [[True, True, True, False], [True] * 4]
    assert reference.visible(3, 3, window=(1, 0)).tolist() == [[1, 0, 0], [1, 1, 0], [0, 1, 1]]
    assert reference.visible(2, 2, window=(None, 1)).all()


def test_grouped_heads_are_repeated_heads():
    q, k, v = qkv(heads=6, kv_heads=2)
    grouped, _ = attention(q, k, v)
    for h in range(6):
        one, _ = attention(q[:, h : h + 1], k[:, h // 3 : h // 3 + 1], v[:, h // 3 : h // 3 + 1])
        np.testing.assert_allclose(grouped[:, h : h + 1], one)


def test_a_cap_bounds_the_scores_and_a_large_one_changes_nothing():
    q, k, v = qkv()
    assert np.abs(reference.scores(100 * q, k, softcap=3.0)).max() <= 3
    np.testing.assert_allclose(attention(q, k, v, softcap=1e6)[0], attention(q, k, v)[0], rtol=1e-9)


def test_packed_sequences_do_not_see_each_other():
    q, k, v = draw((10, 2, 4), (12, 2, 4), (12, 2, 4))
    out, lse = reference.attention_varlen(q, k, v, [0, 3, 3, 10], [0, 5, 7, 12], causal=True)
    again = reference.attention_varlen(q, k * 2, v, [0, 3, 3, 10], [0, 5, 7, 12], causal=True)[0]
    last, last_lse = attention(*(x[None].swapaxes(1, 2) for x in (q[3:], k[7:], v[7:])), causal=True)
    np.testing.assert_allclose(out[3:], last[0].swapaxes(0, 1))
    np.testing.assert_allclose(lse[:, 3:], last_lse[0])
    assert not np.allclose(out, again)


@pytest.mark.parametrize(
    "options",
    (dict(), dict(causal=True), dict(window=(3, 1)), dict(softcap=0.7, causal=True), dict(scale=0.3)),
    ids=str,
)
def test_gradients_are_the_slopes_of_the_output(options):
    q, k, v = qkv(length=6, keys=5, heads=4, kv_heads=2, d=3)
    dout = RNG.standard_normal(q.shape)
    grads = reference.attention_backward(dout, q, k, v, **options)
    eps = 1e-6
    for which, grad in enumerate(grads):
        direction = RNG.standard_normal(grad.shape)
        ends = []
        for sign in (-1, 1):
            moved = [q, k, v]
            moved[which] = moved[which] + sign * eps * direction
            ends.append((dout * attention(*moved, **options)[0]).sum())
        assert (ends[1] - ends[0]) / (2 * eps) == pytest.approx((grad * direction).sum(), rel=1e-6, abs=1e-7)


def test_decoding_is_the_last_row_of_causal_attention():
    q, k, v = qkv(length=9, keys=9, heads=4, kv_heads=2)
    full, full_lse = attention(q, k, v, causal=True)
    for keys in (1, 5, 9):
        out, lse = reference.decode(q[:, :, keys - 1], k, v, [keys])
        np.testing.assert_allclose(out, full[:, :, keys - 1])
        np.testing.assert_allclose(lse, full_lse[:, :, keys - 1])


@pytest.mark.parametrize("cache", ("same", "fp8", "int8"))
def test_pages_hold_what_the_contiguous_cache_holds(cache):
    case = cases.DecodeCase(3, 4, 2, 21, 8, "fp32", cache, lens=(21, 4, 0))
    flat = cases.decode_operands(case)
    paged = cases.decode_operands(
        cases.DecodeCase(3, 4, 2, 21, 8, "fp32", cache, page_size=4, lens=(21, 4, 0))
    )
    for a, b in zip(reference.decode(**flat), reference.decode(**paged), strict=True):
        np.testing.assert_array_equal(a, b)


def test_narrow_caches_are_near_the_wide_one():
    wide = cases.DecodeCase(2, 4, 2, 64, 32, "fp32")
    q = cases.decode_operands(wide)
    exact = reference.decode(**q)[0]
    for cache, off in (("fp8", 0.05), ("int8", 0.02)):
        got = reference.decode(**cases.decode_operands(cases.DecodeCase(2, 4, 2, 64, 32, "fp32", cache)))[0]
        assert np.linalg.norm(got - exact) < off * np.linalg.norm(exact)


def test_parts_over_disjoint_keys_combine_to_the_whole():
    q, k, v = qkv(keys=10)
    parts = [attention(q, k[:, :, a:b], v[:, :, a:b]) for a, b in ((0, 3), (3, 4), (4, 10))]
    out, lse = reference.combine(np.stack([p[0] for p in parts]), np.stack([p[1] for p in parts]))
    whole, whole_lse = attention(q, k, v)
    np.testing.assert_allclose(out, whole)
    np.testing.assert_allclose(lse, whole_lse)
