"""What the launch functions say no to, and in which words."""

import pytest
import torch

from kernels.flash_attention.backward import attention_backward
from kernels.flash_attention.decode import decode
from kernels.flash_attention.forward import attention, attention_varlen
from kernels.tests.figures import REFUSAL


def zeros(*shape, dtype=torch.float16, device=None):
    return torch.zeros(*shape, dtype=dtype, device=device)


Q, K = zeros(1, 4, 8, 64), zeros(1, 2, 8, 64)
TOKEN, CACHE, PAGES = zeros(2, 4, 64), zeros(2, 2, 8, 64), zeros(6, 2, 4, 64)
LENS = torch.tensor([8, 3], dtype=torch.int32)
CU = torch.tensor([0, 8], dtype=torch.int32)
CODES, ONES = CACHE.to(torch.int8), torch.ones(2, 2, 8)
PACKED, PACKED_K = zeros(8, 4, 64), zeros(8, 2, 64)
MANY = torch.zeros(16, dtype=torch.float16).expand(65536, 1, 1, 16)  # no memory behind it


def row(*numbers, every=1):
    return torch.tensor(numbers, dtype=torch.int32)[::every]


def packed(cu_q=CU, cu_k=CU, max_q=8):
    return attention_varlen(PACKED, PACKED_K, PACKED_K, cu_q, cu_k, max_q)


def table(*rows):
    return torch.tensor(rows, dtype=torch.int32)


REFUSED = {
    "query heads must be a multiple": lambda: attention(zeros(1, 3, 8, 64), K, K),
    "head dim must be": lambda: attention(zeros(1, 2, 8, 320), zeros(1, 2, 8, 320), zeros(1, 2, 8, 320)),
    "head dim must be a multiple of 8": lambda: attention(
        zeros(1, 2, 8, 20), zeros(1, 2, 8, 20), zeros(1, 2, 8, 20)
    ),
    "k must be of head dim": lambda: attention(Q, zeros(1, 2, 8, 32), zeros(1, 2, 8, 32)),
    "v must be of k's shape": lambda: attention(Q, K, zeros(1, 2, 9, 64)),
    "k must be of q's dtype": lambda: attention(Q, K.float(), K.float()),
    "v must be of q's dtype": lambda: attention(Q, K, K.bfloat16()),
    "k must be on q's device": lambda: attention(Q, K.to("meta"), K),
    "q must be a 4-d tensor": lambda: attention(Q[0], K, K),
    "k must be of batch 1": lambda: attention(Q, K.expand(2, 2, 8, 64), K.expand(2, 2, 8, 64)),
    "scale must be positive": lambda: attention(Q, K, K, scale=0.0),
    "softcap must be zero": lambda: attention(Q, K, K, softcap=-1.0),
    r"window\[0\] must be": lambda: attention(Q, K, K, window=(-2, 0)),
    r"window\[1\] must be None or a whole": lambda: attention(Q, K, K, window=(2, 0.5)),
    r"window must be None or \(left, right\)": lambda: attention(Q, K, K, window=5),
    "q must be fp16, bf16 or fp32, got torch.float64": lambda: attention(Q.double(), K.double(), K.double()),
    "q must be fp16, bf16 or fp32, got torch.int32": lambda: decode(TOKEN.int(), CACHE.int(), CACHE.int()),
    "sequences times query heads must be at most 65535": lambda: attention(MANY, MANY, MANY),
    "sequences times key heads must be at most 65535": lambda: decode(MANY[:, 0], MANY, MANY),
    "cu_q must be int32": lambda: packed(cu_q=CU.long()),
    r"cu_q must be a row of running totals": lambda: packed(cu_q=CU[0]),
    r"cu_k must be of shape \(2,\)": lambda: packed(cu_k=CU[:1]),
    "cu_k must be dense": lambda: packed(cu_k=row(0, 5, 8, every=2)),
    "cu_q must be rising from 0 to 8, got .0, 9, 8.": lambda: packed(row(0, 9, 8), row(0, 4, 8)),
    "cu_k must be rising from 0 to 8, got .0, 4, 80.": lambda: packed(row(0, 4, 8), row(0, 4, 80)),
    "max_q must be at least the longest sequence's 8, got 4": lambda: packed(max_q=4),
    "dout must be of q's shape": lambda: attention_backward(Q[:, :2], Q, K, K, Q, Q[..., 0].float()),
    "k must be of batch 1, got 2": lambda: attention_backward(
        Q, Q, *[K.expand(2, 2, 8, 64)] * 2, Q, Q[..., 0].float()
    ),
    "lse must be": lambda: attention_backward(Q, Q, K, K, Q, Q[:, :, :2, 0].float()),
    "lse must be float32": lambda: attention_backward(Q, Q, K, K, Q, Q[..., 0].contiguous()),
    "q must be 3-d": lambda: decode(Q, CACHE, CACHE),
    "k must be of batch 2": lambda: decode(TOKEN, CACHE[:1], CACHE[:1]),
    "k must be dense": lambda: decode(TOKEN, zeros(2, 2, 64, 8).mT, zeros(2, 2, 64, 8).mT),
    "k must be of q's dtype .*, fp8 or int8": lambda: decode(TOKEN, CACHE.float(), CACHE.float()),
    "k must be of q's dtype .* got torch.uint8": lambda: decode(TOKEN, CODES.byte(), CODES.byte()),
    "k_scale must be given": lambda: decode(TOKEN, CODES, CODES),
    "k_scale must be fp32": lambda: decode(TOKEN, CODES, CODES, k_scale=ONES.half(), v_scale=ONES),
    "v_scale must be broadcastable": lambda: decode(TOKEN, CODES, CODES, k_scale=ONES, v_scale=ONES[..., :3]),
    "splits must be from 1 to 128": lambda: decode(TOKEN, CACHE, CACHE, splits=0),
    "v_scale must be left out": lambda: decode(TOKEN, CACHE, CACHE, v_scale=torch.ones(1)),
    "lens must be given with a table": lambda: decode(TOKEN, PAGES, PAGES, table=table([0, 1], [2, 3])),
    "lens must be int32": lambda: decode(TOKEN, CACHE, CACHE, LENS.long()),
    "lens must be of shape": lambda: decode(TOKEN, CACHE, CACHE, LENS[:1]),
    "lens must be dense": lambda: decode(TOKEN, CACHE, CACHE, row(8, 1, 3, every=2)),
    "lens must be from 0 to 8, got 9": lambda: decode(TOKEN, CACHE, CACHE, row(9, 3)),
    "lens must be from 0 to 8, got -1": lambda: decode(TOKEN, CACHE, CACHE, row(8, -1)),
    "lens must be from 0 to 8, got 50": lambda: decode(
        TOKEN, PAGES, PAGES, row(8, 50), table=table([0, 1], [2, 3])
    ),
    r"table\[0, 1\] must be a page from 0 to 5": lambda: decode(
        TOKEN, PAGES, PAGES, LENS, table=table([0, 6], [2, 3])
    ),
    r"table\[1, 0\] must be a page": lambda: decode(TOKEN, PAGES, PAGES, LENS, table=table([0, 1], [-1, 3])),
    "table must be int32": lambda: decode(TOKEN, PAGES, PAGES, LENS, table=table([0, 1], [2, 3]).long()),
    r"table must be \(2, pages\)": lambda: decode(TOKEN, PAGES, PAGES, LENS, table=table([0, 1])),
}


@pytest.mark.parametrize("says", REFUSED)
def test_refused_in_the_one_form(says):
    with pytest.raises(ValueError, match=says) as caught:
        REFUSED[says]()
    assert __import__("re").match(REFUSAL, str(caught.value))


def test_a_wrong_page_past_the_end_of_a_sequence_is_nobodys_business():
    out, _ = decode(TOKEN, PAGES, PAGES, LENS, table=table([0, 1], [2, -7]))
    assert out.shape == TOKEN.shape
