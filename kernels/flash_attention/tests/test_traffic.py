"""Bytes that the kernels ask for, counted at every load and store of the interpreter, against cost.py."""

import numpy as np
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


@pytest.fixture
def asked(monkeypatch):
    """Watch tensors: asked(name=tensor, ...) -> a dict that fills with bytes by name."""
    from triton.runtime.interpreter import InterpreterBuilder as Builder

    counts, ranges = {}, {}

    def watch(**tensors):
        for name, t in tensors.items():
            ranges[name] = (t.data_ptr(), t.data_ptr() + t.untyped_storage().nbytes(), t.element_size())
            counts[name] = 0
        return counts

    def note(pointers, mask):
        hit = np.asarray(pointers)[np.broadcast_to(np.asarray(mask), np.shape(pointers)).astype(bool)]
        for name, (first, last, size) in ranges.items():
            if hit.size and first <= hit.min() < last:
                counts[name] += hit.size * size

    for method in ("create_masked_load", "create_masked_store"):
        plain = getattr(Builder, method)
        at_mask = 1 if "load" in method else 2

        def counted(self, ptrs, *rest, _plain=plain, _mask=at_mask - 1, **named):
            note(ptrs.data, rest[_mask].data)
            return _plain(self, ptrs, *rest, **named)

        monkeypatch.setattr(Builder, method, counted)
    return watch


@pytest.mark.parametrize("case", [c for c in cases.SMALL if c.layout != "gaps"], ids=lambda c: c.name)
def test_forward_asks_for_what_the_formula_says(case, asked):
    q, k, v = (to_torch(x) for x in cases.operands(case))
    counts = asked(q=q, k=k, v=v)
    attention(q, k, v, **case.options)
    block_d = 1 << max(4, (case.head_dim - 1).bit_length())
    block_m, block_n, *_ = forward_portable.choose_config(block_d, q.itemsize)
    traffic = cost.tiled_traffic(case.shape, cost.Tiling(block_m, block_n))
    assert counts == {"q": traffic.q, "k": traffic.k, "v": traffic.v}


@pytest.mark.parametrize("case", [c for c in cases.DECODE_SMALL if not c.page_size], ids=lambda c: c.name)
def test_decoding_asks_for_each_seen_key_once(case, asked):
    arrays = cases.decode_operands(case)
    tensors = {name: to_torch(x) for name, x in arrays.items()}
    counts = asked(k=tensors["k"], v=tensors["v"])
    decode(**tensors, **case.options, splits=case.splits)
    units, block_d = case.batch * case.kv_heads, 1 << (case.head_dim - 1).bit_length()
    kind = "plain" if case.cache == "same" else "narrow"
    tile = choose_config(kind, block_d, units, multiprocessors(tensors["q"].device))[0]
    first = [max(n - 1 - case.window, 0) // tile * tile if case.window else 0 for n in arrays["lens"]]
    seen = sum(arrays["lens"]) - sum(first)
    row = case.kv_heads * case.head_dim * tensors["k"].element_size()
    assert counts == {"k": seen * row, "v": seen * row}
