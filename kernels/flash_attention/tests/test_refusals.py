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
    "cu_q must be int32": lambda: attention_varlen(Q[0].mT.mT, K[0], K[0], CU.long(), CU, 8),
    "cu_k must be 2 running totals": lambda: attention_varlen(Q[0], K[0], K[0], CU, CU[:1], 8),
    "dout must be of q's shape": lambda: attention_backward(Q[:, :2], Q, K, K, Q, Q[..., 0].float()),
    "lse must be": lambda: attention_backward(Q, Q, K, K, Q, Q[:, :, :2, 0].float()),
    "q must be 3-d": lambda: decode(Q, CACHE, CACHE),
    "k must be of batch 2": lambda: decode(TOKEN, CACHE[:1], CACHE[:1]),
    "k must be dense": lambda: decode(TOKEN, zeros(2, 2, 64, 8).mT, zeros(2, 2, 64, 8).mT),
    "k must be of q's dtype .*, fp8 or int8": lambda: decode(TOKEN, CACHE.float(), CACHE.float()),
    "k_scale must be given": lambda: decode(TOKEN, CACHE.to(torch.int8), CACHE.to(torch.int8)),
    "v_scale must be left out": lambda: decode(TOKEN, CACHE, CACHE, v_scale=torch.ones(1)),
    "lens must be given with a table": lambda: decode(TOKEN, PAGES, PAGES, table=table([0, 1], [2, 3])),
    "lens must be int32": lambda: decode(TOKEN, CACHE, CACHE, LENS.long()),
    "lens must be of shape": lambda: decode(TOKEN, CACHE, CACHE, LENS[:1]),
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
