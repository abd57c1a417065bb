"""A request gets the same token and the same bits of log-probability in every batch, however a launch is cut."""

import functools
from dataclasses import replace

import numpy as np
import pytest
import torch

from kernels.sampling_fusion import cases, fused, plan
from kernels.sampling_fusion.rules import OURS, Rules
from kernels.sampling_fusion.state import State
from kernels.tensors import to_torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
TABLES = ("history", "bias", "banned", "grammar")
HOT = {"temperature": 1.7}  # many tokens hold weight: sums that round
NOT_LAST, JOINT = Rules(min_p_first=True), Rules(top_p_of="all")
ASKS = {  # name -> (what is asked, rules, draw)
    "mixed": (cases.MIXED, OURS, "gumbel"),
    "usual": (cases.USUAL | HOT, OURS, "gumbel"),
    "k = 1000": ({"top_k": (1000, 20), "top_p": 0.9} | HOT, OURS, "gumbel"),
    "greedy": ({"temperature": (0.0, 0.0, 0.8)}, OURS, "gumbel"),
    "plain": (HOT, OURS, "gumbel"),
    "top-p": ({"top_p": (0.9, 0.3)} | HOT, OURS, "gumbel"),
    "min-p": ({"min_p": (0.1, 0.02)} | HOT, OURS, "gumbel"),
    "k = 1025": ({"top_k": 1025, "top_p": 0.7} | HOT, OURS, "gumbel"),
    "min-p first": ({"min_p": 0.05, "top_p": 0.8, "top_k": (0, 40)} | HOT, NOT_LAST, "gumbel"),
    "joint": ({"top_p": 0.6, "top_k": (20, 0)} | HOT, JOINT, "gumbel"),
    "inverse": ({"top_k": (50, 20), "top_p": (0.9, 1.0)} | HOT, OURS, "inverse"),
}
CONFIGS = {config for table in plan.TABLES.values() for _, config in table}
SHAPES = (*sorted(CONFIGS, key=str), plan.Config(tile=1024, at_once=8, sets=16))
TWO_LAUNCHES = next(config for config in SHAPES if config.finish_warps)


def bits_of(got) -> list[np.ndarray]:
    """Tokens and the bits of log-probabilities: NaN equals NaN, and nothing is near enough."""
    parts = (got.tokens, got.logprobs, got.top_tokens, got.top_logprobs)
    return [part.cpu().contiguous().view(torch.int32).numpy() for part in parts if part is not None]


def assert_same(one, other):
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


def rows_of(bits, rows):
    return [part[rows] for part in bits]


def case_of(ask: str, batch: int, vocabulary: int, tables=(), dtype="fp32") -> cases.Case:
    numbers, rules, draw = ASKS[ask]
    return cases.Case(ask, batch, vocabulary, dtype, ask=numbers, tables=tables, rules=rules, draw=draw)


def sampled(case, logits, requests, rows=slice(None), top=5, **more):
    state = State.of(requests.rows(rows), DEVICE, case.rules)
    return bits_of(fused.sample(logits[rows], state, draw=case.draw, logprobs=True, top=top, **more))


def in_turns() -> list:
    """Each way to ask with tables and without; where no GPU is, `make test` takes one of the two, in turns."""
    pairs = [(ask, tables) for ask in ASKS for tables in ((), TABLES)]
    later = [] if DEVICE == "cuda" else [pair for i, pair in enumerate(pairs) if i % 4 in (0, 3)]
    return [
        pytest.param(
            *pair,
            marks=pytest.mark.slow if pair in later else (),
            id=f"{pair[0]}-{'ruled' if pair[1] else 'bare'}",
        )
        for pair in pairs
    ]


@pytest.mark.parametrize(("ask", "tables"), in_turns())
def test_how_a_launch_is_cut_changes_no_bit(ask, tables):
    """One launch or two, any tile, any list of groups: sums are of integers."""
    case = case_of(ask, 2, 1500, tables)
    case = replace(case, batch={"mixed": 5, "k = 1000": 1}.get(ask, 2))
    logits, requests = to_torch(cases.logits_of(case), DEVICE), cases.requests_of(case)
    shapes = SHAPES if DEVICE == "cuda" else (TWO_LAUNCHES, SHAPES[-1])  # there one takes seconds
    first, *others = (sampled(case, logits, requests, config=config) for config in shapes)
    for other in others:
        assert_same(first, other)


def test_a_neighbour_with_longer_lists_and_more_rules_changes_no_bit():
    """A list for 200 is sorted, one for 50 is not; and k = 50 of 37 is no top-k though a longer list would hold it."""
    for vocabulary, k in ((1500, (50, 200)), (37, (50, 37))):
        ask = {"top_k": k, "top_p": 0.9} | HOT
        case = cases.Case("beside", len(k), vocabulary, ask=ask, tables=TABLES)
        logits, requests = to_torch(cases.logits_of(case), DEVICE), cases.requests_of(case)
        together = sampled(case, logits, requests, top=0)
        for i in range(case.batch):
            rows = slice(i, i + 1)
            assert_same(sampled(case, logits, requests, rows, top=0), rows_of(together, rows))


BATCH, VOCABULARY = 300, 128256


@functools.cache
def large(dtype: str) -> torch.Tensor:
    noise = torch.Generator(DEVICE).manual_seed(0)
    x = 3 * torch.randn(BATCH, VOCABULARY, device=DEVICE, generator=noise)
    return x.to({"fp32": torch.float32, "bf16": torch.bfloat16}[dtype])


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ("fp32", "bf16"))
@pytest.mark.parametrize("tables", ((), TABLES), ids=("bare", "ruled"))
@pytest.mark.parametrize("ask", ASKS)
def test_a_request_gets_the_same_bits_in_every_batch(ask, tables, dtype):
    """300 requests together, 40, 5 and alone: each batch by its own row of the table."""
    case = case_of(ask, BATCH, VOCABULARY, tables, dtype)
    logits, requests = large(dtype), cases.requests_of(case)
    together = sampled(case, logits, requests)
    for rows in (slice(40), slice(260, 300), slice(100, 105), *(slice(i, i + 1) for i in range(7, 22))):
        assert_same(sampled(case, logits, requests, rows), rows_of(together, rows))
