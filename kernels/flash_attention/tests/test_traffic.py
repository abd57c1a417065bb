"""Bytes that the kernels ask for, counted at every load of the machine that runs them, against cost.py."""

import pytest
import torch

from kernels.flash_attention import cases, cost, forward_portable
from kernels.flash_attention.arguments import multiprocessors
from kernels.flash_attention.decode import choose_config, decode
from kernels.flash_attention.forward import attention
from kernels.tensors import to_torch

pytestmark = pytest.mark.skipif(
    torch.cuda.is_available(), reason="a GPU's loads cannot be counted one by one"
)


@pytest.mark.parametrize("case", [c for c in cases.SMALL if c.layout != "gaps"], ids=lambda c: c.name)
def test_forward_asks_for_what_the_formula_says(case, watch):
    q, k, v = (to_torch(x) for x in cases.operands(case))
    moved = [watch(x) for x in (q, k, v)]
    attention(q, k, v, **case.options)
    block_d = 1 << max(4, (case.head_dim - 1).bit_length())
    block_m, block_n, *_ = forward_portable.choose_config(block_d, q.itemsize)
    traffic = cost.tiled_traffic(case.shape, cost.Tiling(block_m, block_n))
    assert [m.loaded for m in moved] == [traffic.q, traffic.k, traffic.v]


@pytest.mark.parametrize("case", [c for c in cases.DECODE_SMALL if not c.page_size], ids=lambda c: c.name)
def test_decoding_asks_for_each_seen_key_once(case, watch):
    arrays = cases.decode_operands(case)
    tensors = {name: to_torch(x) for name, x in arrays.items()}
    moved = [watch(tensors[name]) for name in "kv"]
    decode(**tensors, **case.options, splits=case.splits)
    units, block_d = case.batch * case.kv_heads, 1 << (case.head_dim - 1).bit_length()
    kind = "plain" if case.cache == "same" else "narrow"
    tile = choose_config(kind, block_d, units, multiprocessors(tensors["q"].device))[0]
    first = [max(n - 1 - case.window, 0) // tile * tile if case.window else 0 for n in arrays["lens"]]
    seen = sum(arrays["lens"]) - sum(first)
    row = case.kv_heads * case.head_dim * tensors["k"].element_size()
    assert [m.loaded for m in moved] == [seen * row, seen * row]
