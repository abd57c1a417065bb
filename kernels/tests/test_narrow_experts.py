"""A layer of one topic on the grouped kernels of another: 4-bit experts, handed over as calls."""

from functools import partial

import numpy as np
import pytest
import torch

from kernels.compare import relative_error
from kernels.moe_routing import reference
from kernels.moe_routing.layer import layer
from kernels.moe_routing.narrow import Narrow
from kernels.moe_routing.rules import Rule
from kernels.quantization_layouts import candidates, cases, dispatch
from kernels.quantization_layouts import reference as quantized
from kernels.quantization_layouts.packed import pack
from kernels.quantization_layouts.stream import stream
from kernels.tensors import DTYPES, to_numpy, to_torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
HIDDEN, INTERMEDIATE, EXPERTS = 64, 32, 3


def weights(n: int, k: int, form: str):
    """(packed, what it stands for), an expert after the other."""
    case = cases.Case(1, n, k, group=32, dtype="bf16", experts=EXPERTS)
    if form == "book":
        case = cases.book(1, n, k, 3, dtype="bf16", experts=EXPERTS)
    q = list(cases.quantized(case))
    return pack(q, DEVICE), np.stack([quantized.values(one) for one in q])


@pytest.mark.parametrize("tokens", (1, 2, 19))
@pytest.mark.parametrize("form", ("int4", "book"))
def test_packed_experts_are_the_layer_that_their_codes_stand_for(form, tokens):
    up, dense_up = weights(2 * INTERMEDIATE, HIDDEN, form)
    down, dense_down = weights(HIDDEN, INTERMEDIATE, form)
    rng = np.random.default_rng(tokens)
    x, router = (rng.standard_normal((rows, HIDDEN)).astype(DTYPES["bf16"]) for rows in (tokens, EXPERTS))
    rule = Rule(2)
    calls = partial(stream, w=up), partial(dispatch.linear, layer=candidates.layer(down))
    t = [to_torch(one, DEVICE) for one in (x, router)]
    narrow = Narrow(*calls, EXPERTS, HIDDEN, t[0].dtype, t[0].device)
    found = reference.six_steps(x, router, dense_up, dense_down, rule)
    assert relative_error(to_numpy(layer(*t, narrow, rule)), found.combined) < 1e-2
