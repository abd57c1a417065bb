"""Every kernel against the reference: interpreted where there is no GPU, compiled where there is one."""

import numpy as np
import pytest
import torch

from kernels.compare import relative_error
from kernels.flash_attention import cases, reference
from kernels.flash_attention.backward import attention_backward
from kernels.flash_attention.decode import choose_config, decode
from kernels.flash_attention.decode_parts import Workspace, choose_splits
from kernels.flash_attention.forward import Plan, attention, attention_varlen
from kernels.tensors import to_numpy, to_torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
# fp32 is multiplied as tf32, which a Hopper tensor core cuts to 10 bits, not rounds: both operands lose up to 2**-10
ROUNDING = {"fp32": 2 * 2**-10, "fp16": 1e-3, "bf16": 6e-3}
# absolute; of a score both operands cut take up to 2 * 2**-10, half of that on average, and scores here reach 4
LSE = {"fp32": 4 * 2**-10, "fp16": 2e-3, "bf16": 2e-3}


def laid(x: np.ndarray, layout: str) -> torch.Tensor:
    """The same tensor with another way to lie in memory."""
    t = to_torch(x, DEVICE)
    if layout == "tokens first":
        return t.transpose(1, 2).contiguous().transpose(1, 2)
    if layout == "gaps":
        home = torch.full([2 * n for n in t.shape], float("nan"), device=DEVICE).to(t.dtype)
        home[::2, ::2, ::2, ::2] = t
        return home[::2, ::2, ::2, ::2]
    return t


def check_lse(got, expected, dtype):
    got = to_numpy(got)
    np.testing.assert_array_equal(np.isneginf(got), np.isneginf(expected))
    seen = np.isfinite(expected)
    assert np.abs(got[seen] - expected[seen]).max(initial=0) < LSE[dtype]


def check_forward(case):
    arrays = cases.operands(case)
    out, lse = attention(*(laid(x, case.layout) for x in arrays), **case.options)
    expected, expected_lse = reference.attention(*arrays, **case.options)
    assert relative_error(to_numpy(out), expected) < ROUNDING[case.dtype]
    check_lse(lse, expected_lse, case.dtype)


def check_backward(case, **more):
    arrays = cases.operands(case)
    dout = np.random.default_rng(1).standard_normal(arrays[0].shape).astype(arrays[0].dtype)
    tensors = [laid(x, case.layout) for x in arrays]
    out, lse = attention(*tensors, **case.options)
    grads = attention_backward(laid(dout, case.layout), *tensors, out, lse, **case.options, **more)
    expected = reference.attention_backward(dout, *arrays, **case.options)
    for got, want in zip(grads, expected, strict=True):
        size = max(np.linalg.norm(want), 1e-3 * np.linalg.norm(expected[2]))  # a gradient may be exactly zero
        assert np.linalg.norm(to_numpy(got).astype(np.float64) - want) < 2 * ROUNDING[case.dtype] * size


def check_decode(case):
    arrays = cases.decode_operands(case)
    tensors = {name: to_torch(x, DEVICE) for name, x in arrays.items()}
    expected, expected_lse = reference.decode(**arrays, **case.options)
    for _ in range(2):  # the second run finds the workspace as the first left it
        out, lse = decode(**tensors, **case.options, splits=case.splits)
        assert relative_error(to_numpy(out), expected) < ROUNDING[case.dtype]
        check_lse(lse, expected_lse, case.dtype)


@pytest.mark.parametrize("case", cases.SMALL, ids=lambda c: c.name)
def test_forward(case):
    check_forward(case)


@pytest.mark.parametrize("case", [c for c in cases.SMALL if c.keys <= 200], ids=lambda c: c.name)
def test_backward(case):
    check_backward(case)


@pytest.mark.parametrize("case", cases.DECODE_SMALL, ids=lambda c: c.name)
def test_decode(case):
    check_decode(case)


def packed(q_lens, k_lens, heads, kv_heads, d, dtype="fp16"):
    rng = np.random.default_rng(3)
    sizes = [(sum(q_lens), heads, d), (sum(k_lens), kv_heads, d), (sum(k_lens), kv_heads, d)]
    arrays = [rng.standard_normal(size).astype(cases.DTYPES[dtype]) for size in sizes]
    return arrays, *(np.cumsum([0, *lens]).astype(np.int32) for lens in (q_lens, k_lens))


def check_varlen(q_lens, k_lens, heads, kv_heads, d, dtype="fp16", **options):
    arrays, cu_q, cu_k = packed(q_lens, k_lens, heads, kv_heads, d, dtype)
    tensors = [to_torch(x, DEVICE) for x in (*arrays, cu_q, cu_k)]
    out, lse = attention_varlen(*tensors, max(q_lens), **options)
    expected, expected_lse = reference.attention_varlen(*arrays, cu_q, cu_k, **options)
    assert relative_error(to_numpy(out), expected) < ROUNDING[dtype]
    check_lse(lse, expected_lse, dtype)


@pytest.mark.parametrize("options", (dict(), dict(causal=True), dict(window=(9, 0))), ids=str)
def test_packed_sequences(options):
    check_varlen((70, 0, 1, 33), (70, 5, 40, 0), 2, 1, 64, **options)


def check_neighbours(rubbish, q_lens, k_lens, heads, kv_heads, d, dtype="fp16", **options):
    """The middle one of three packed sequences between two without a finite number."""
    arrays, cu_q, cu_k = packed(q_lens, k_lens, heads, kv_heads, d, dtype)
    for x, cu in zip(arrays, (cu_q, cu_k, cu_k), strict=True):
        x[: cu[1]], x[cu[2] :] = rubbish, rubbish
    tensors = [to_torch(x, DEVICE) for x in (*arrays, cu_q, cu_k)]
    out, lse = (to_numpy(t) for t in attention_varlen(*tensors, max(q_lens), **options))
    middle, ends = slice(cu_q[1], cu_q[2]), (np.array([0, q_lens[1]]), np.array([0, k_lens[1]]))
    one = [x[cu[1] : cu[2]] for x, cu in zip(arrays, (cu_q, cu_k, cu_k), strict=True)]
    expected, expected_lse = reference.attention_varlen(*one, *ends, **options)
    assert relative_error(out[middle], expected) < ROUNDING[dtype]
    check_lse(torch.from_numpy(lse[:, middle]), expected_lse, dtype)


@pytest.mark.filterwarnings("ignore:All-NaN slice")  # the maximum, on a CPU, of a row of them
@pytest.mark.parametrize("rubbish", (np.nan, np.inf, -np.inf))
@pytest.mark.parametrize("k_lens", ((70, 90, 100), (3, 64, 200), (5, 0, 9)), ids=str)
def test_packed_neighbours_without_a_finite_number_stay_apart(k_lens, rubbish):
    check_neighbours(rubbish, (20, 33, 40), k_lens, 2, 1, 32, causal=k_lens[1] == 90)


def test_empty_tensors_and_empty_caches():
    q, k = torch.zeros(2, 2, 5, 16, device=DEVICE), torch.zeros(2, 2, 0, 16, device=DEVICE)
    out, lse = attention(q, k, k)
    assert not out.any() and torch.isneginf(lse).all()
    assert attention(q[:, :, :0], q, q)[0].shape == (2, 2, 0, 16)
    assert not any(g.any() for g in attention_backward(out, q, k, k, out, lse))


def test_a_cache_without_a_key_gives_zeros():
    q, k = torch.ones(2, 4, 16, device=DEVICE), torch.ones(2, 2, 0, 16, device=DEVICE)
    for out, lse in (decode(q, k, k), decode(q[:, :, :8], k[..., :8], k[..., :8], splits=3)):
        assert not out.any() and torch.isneginf(lse).all()
    assert decode(q[:0], k[:0], k[:0])[0].shape == (0, 4, 16)


def test_products_beyond_fp16_come_out_right():
    """200 x 200 x 64 is forty times fp16's largest number; half of the rows have a clear best key."""
    q, k = np.full((1, 1, 4, 64), 200.0, np.float16), np.full((1, 1, 6, 64), 200.0, np.float16)
    k[..., 3, :], q[:, :, ::2] = 201, -200
    v = np.random.default_rng(0).standard_normal(k.shape).astype(np.float16)
    expected, expected_lse = reference.attention(q, k, v)
    tensors = [to_torch(x, DEVICE) for x in (q, k, v)]
    for got, row in ((attention(*tensors), slice(None)), (decode(tensors[0][:, :, 1], *tensors[1:]), 1)):
        np.testing.assert_allclose(to_numpy(got[0]), expected[:, :, row], atol=2e-3)
        np.testing.assert_allclose(to_numpy(got[1]), expected_lse[:, :, row], rtol=1e-6)


def test_one_cache_may_serve_every_sequence():
    """Keys that are expanded, not copied, along the batch: a stride of 0."""
    q, k, v = cases.operands(cases.Case(3, 2, 1, 20, 40, 32, "fp16"))
    tensors = [to_torch(q, DEVICE), *(to_torch(x[:1], DEVICE).expand(3, -1, -1, -1) for x in (k, v))]
    expected, _ = reference.attention(q, *(np.repeat(x[:1], 3, 0) for x in (k, v)), causal=True)
    assert relative_error(to_numpy(attention(*tensors, causal=True)[0]), expected) < ROUNDING["fp16"]
    last = decode(tensors[0][:, :, -1], *tensors[1:])[0]
    assert relative_error(to_numpy(last), expected[:, :, -1]) < ROUNDING["fp16"]


def slow_on_a_cpu(test):
    return pytest.mark.slow(test) if DEVICE == "cpu" else test


@slow_on_a_cpu
def test_heads_may_lie_further_apart_than_32_bits_count():
    """Three heads 2**30 elements apart in 4 GB, of which only their own rows are ever touched."""
    home = torch.empty(2**31 + 9 * 16, dtype=torch.float16, device=DEVICE)
    far = home.as_strided((1, 3, 9, 16), (0, 2**30, 16, 1))
    arrays = cases.operands(cases.Case(1, 3, 3, 9, 9, 16, "fp16"))
    expected, _ = reference.attention(arrays[0], arrays[0], arrays[0], causal=True)
    far.copy_(to_torch(arrays[0], DEVICE))
    out, lse = attention(far, far, far, causal=True)
    assert relative_error(to_numpy(out), expected) < ROUNDING["fp16"]
    if DEVICE == "cpu":  # each launch copies the 4 GB there, and all compute their addresses in the same way
        return
    grads = attention_backward(out, far, far, far, out, lse, causal=True)
    wanted = reference.attention_backward(to_numpy(out), *[arrays[0]] * 3, causal=True)
    for got, want in zip(grads, wanted, strict=True):
        assert relative_error(to_numpy(got), want) < 3 * ROUNDING["fp16"]
    last = decode(far[:, :, -1], far, far)[0]
    assert relative_error(to_numpy(last), expected[:, :, -1]) < ROUNDING["fp16"]


def test_inputs_are_left_alone():
    arrays = cases.operands(cases.Case(1, 2, 1, 40, 40, 32, "fp16"))
    tensors = [to_torch(x, DEVICE) for x in arrays]
    out, lse = attention(*tensors, causal=True)
    attention_backward(out, *tensors, out.clone(), lse, causal=True)
    for array, tensor in zip(arrays, tensors, strict=True):
        np.testing.assert_array_equal(to_numpy(tensor), array)


def test_splits_keep_every_multiprocessor_busy():
    assert choose_splits(256, 4096, 64, 264) == 1, "256 programs fill 264 places"
    assert choose_splits(8, 32768, 64, 264) == 32, "16 tiles each; a 33rd split would only wait"
    assert choose_splits(1, 1, 64, 264) == 1, "one key cannot be split"


def test_hopper_programs_stay_unless_sequences_are_packed():
    """And only those that do not stay are pinned."""
    from kernels.flash_attention.forward_hopper_launch import choose_config, stays

    def plan(left, right, varlen=False):
        return Plan(1, 1, 64, 1024, 1024, 1.0, 0.0, left, right, varlen)

    full, causal, packed = plan(None, None), plan(None, 0), plan(None, 0, varlen=True)
    assert stays(full) and stays(causal) and not stays(packed)
    pins = {d: [choose_config(d, p)["PIN"] for p in (full, causal, packed)] for d in (64, 128, 256)}
    assert pins == {64: [False, False, True], 128: [False, False, True], 256: [False] * 3}
    assert choose_config(64, full)["CONSUMERS"] == 3 and choose_config(64, causal)["CONSUMERS"] == 2
    assert choose_config(128, full) | {"QUERIES": 2} == choose_config(128, causal)


def test_the_next_queries_come_early_where_that_was_faster():
    from kernels.flash_attention.forward_hopper_launch import choose_config

    def of(d, keys, left, right, varlen=False):
        found = choose_config(d, Plan(1, 1, d, keys, keys, 1.0, 0.0, left, right, varlen))
        return found.get("QUERIES", 1), found["LATE"]

    assert of(64, 4096, None, None) == of(64, 1024, None, 0) == (2, False)
    assert of(64, 4096, None, 0) == (1, True), "it took 3.1% longer there"
    assert of(128, 4096, None, 0) == (2, False)
    assert of(128, 4096, None, None) == of(128, 8192, 1024, 0) == of(256, 4096, None, 0) == (1, False)
    assert of(64, 1024, None, 0, varlen=True) == (1, True), (
        "a program that ends with its tile has no next one"
    )


def test_many_short_sequences_decode_with_small_tiles_and_few_with_deep_pipelines():
    for kind in ("plain", "paged", "narrow"):
        few, many = (choose_config(kind, 128, units, 132) for units in (263, 264))
        assert few != many and few == choose_config(kind, 128, 1, 132)
        assert choose_config(kind, 64, 1, 132) == choose_config(kind, 64, 9999, 132), "measured at 128 only"


def test_a_workspace_grows_and_is_kept():
    space = Workspace(torch.device(DEVICE))
    space.take(8, 3, 16)
    assert space.parts.numel() == 8 * 3 * 18
    held = space.parts
    space.take(4, 3, 16)
    assert space.parts is held
    space.take(16, 3, 16)
    assert space.parts.numel() == 16 * 3 * 18


def test_a_page_that_holds_whole_tiles_has_a_configuration_of_its_own_for_few_sequences():
    small, large = (choose_config("paged", 128, 64, 132, page) for page in (16, 64))
    assert small == choose_config("paged", 128, 64, 132) != large
    assert choose_config("paged", 128, 132, 132, 64) == choose_config("paged", 128, 132, 132)
    assert choose_config("paged", 64, 64, 132, 64) == choose_config("paged", 64, 64, 132)
