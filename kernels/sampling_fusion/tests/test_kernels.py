"""The kernels beside the reference: every case, every repeat, every neighbour.

Without a GPU a launch takes part of a second: `make test` then takes the cases that are the first to ask for something,
and `make proofs` all.
"""

import functools

import numpy as np
import pytest
import torch

from kernels.sampling_fusion import cases, fused, naive_chain, plan, reference, speculative
from kernels.sampling_fusion.accept import acceptable
from kernels.sampling_fusion.requests import Requests, pack_bits
from kernels.sampling_fusion.rules import LIBRARIES, OURS, Rules
from kernels.sampling_fusion.state import State
from kernels.tensors import to_torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
REFUSAL = r"^.+ must .+, got .+; .+$"
LOGPROB_ERROR = 1e-4


def name(case) -> str:
    return case.name


@functools.cache
def run_named(name):
    return run(next(c for c in (*cases.CASES, *cases.LARGE) if c.name == name))


def run(case, **more):
    logits, requests = cases.logits_of(case), cases.requests_of(case)
    state = State.of(requests, DEVICE, case.rules)
    got = fused.sample(to_torch(logits, DEVICE), state, draw=case.draw, top=case.top, logprobs=True, **more)
    return logits, requests, got


def hold(case, rows):
    """Tokens that rounding allows, nearly always the reference's own; log-probabilities; the top list."""
    logits, requests, got = run_named(case.name)
    tokens, logprobs = got.tokens.cpu().numpy(), got.logprobs.cpu().numpy()
    for i in rows:
        want = reference.sample(logits[i : i + 1], requests.row(i), case.rules, case.draw, case.top)
        assert int(tokens[i]) in acceptable(logits[i], requests, i, case.rules, case.draw), f"row {i}"
        if tokens[i] == want.tokens[0]:
            np.testing.assert_allclose(logprobs[i], want.logprobs[0], atol=LOGPROB_ERROR)
        if case.top:
            n = got.top_tokens.shape[1]
            listed = got.top_tokens[i].cpu().numpy()
            np.testing.assert_array_equal(listed, want.top_tokens[0, :n])
            np.testing.assert_allclose(
                got.top_logprobs[i].cpu().numpy(), want.top_logprobs[0, :n], atol=LOGPROB_ERROR
            )


def asked_for(case) -> set:
    """What a kernel does of its own for this case."""
    ways = {case.rules, case.draw, case.logits, case.dtype, f"list {bool(case.top)}"}
    k = np.max(case.ask.get("top_k", 0))
    longer = {f"k above {most}" for most in (plan.FEW_K, plan.SORTED, plan.MOST_K) if k > most}
    return ways | longer | set(case.ask) | set(case.tables)


def first_of_each(kind: list) -> list:
    met, first = set(), []
    for case in kind:
        first += [] if asked_for(case) <= met else [case]
        met |= asked_for(case)
    return first


def each(kind: list):
    here = kind if DEVICE == "cuda" else first_of_each(kind)
    rows = [case if case in here else pytest.param(case, marks=pytest.mark.slow) for case in kind]
    return pytest.mark.parametrize("case", rows, ids=name)


@each(cases.CASES)
def test_fused_is_right(case):
    hold(case, range(case.batch))


@pytest.mark.gpu
@pytest.mark.parametrize("case", cases.LARGE, ids=name)
def test_fused_is_right_at_real_sizes(case):
    hold(case, sorted({0, case.batch // 2, case.batch - 1}))


def test_fused_gives_the_references_own_tokens():
    """The allowance for rounding is not what makes the cases pass: without it they agree too."""
    few = cases.CASES if DEVICE == "cuda" else first_of_each(cases.CASES)
    small = [c for c in few if c.vocabulary <= 1500 and c.rules == OURS][:12]
    pairs = [(run_named(c.name), c) for c in small]
    same = [
        reference.sample(logits, requests, draw=c.draw).tokens == got.tokens.cpu().numpy()
        for (logits, requests, got), c in pairs
    ]
    assert np.concatenate(same).mean() == 1


MIXED = next(c for c in cases.CASES if c.name == "mixed with everything")


def test_a_spoiled_row_does_not_touch_its_neighbours_or_the_next_launch():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(3, 500)).astype(np.float32)
    requests = Requests.of(3, 500, top_k=[20, 5, 0], top_p=0.9, seed=[1, 2, 3])
    state, workspace = State.of(requests, DEVICE), fused.Workspace.of(3, 500, DEVICE)
    clean = fused.sample(to_torch(logits, DEVICE), state, workspace).tokens
    for value in (np.nan, np.inf, -np.inf):
        spoiled = logits.copy()
        spoiled[1] = value
        got = fused.sample(to_torch(spoiled, DEVICE), state, workspace).tokens
        assert got[0] == clean[0] and got[2] == clean[2]
        assert got[1] == -1 or value == np.inf
    again = fused.sample(to_torch(logits, DEVICE), state, workspace).tokens
    assert torch.equal(again, clean) and not workspace.arrived.any(), "the workspace is as it was"


def test_inputs_stay_as_they_are_and_outputs_are_fully_written():
    logits, requests, _ = run_named(MIXED.name)
    state, x = State.of(requests, DEVICE), to_torch(logits, DEVICE)
    before = x.clone(), state.counts.clone(), state.allowed.clone(), state.numbers.clone()
    got = fused.sample(x, state, top=5)
    after = x, state.counts, state.allowed, state.numbers
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))
    assert ((got.tokens >= -1) & (got.tokens < MIXED.vocabulary)).all()


def test_rows_may_be_far_apart():
    logits, requests, together = run_named(MIXED.name)
    wide = torch.full((MIXED.batch, MIXED.vocabulary + 77), float("nan"), device=DEVICE)
    wide[:, : MIXED.vocabulary] = to_torch(logits, DEVICE)
    apart = fused.sample(wide[:, : MIXED.vocabulary], State.of(requests, DEVICE), top=MIXED.top)
    assert torch.equal(apart.tokens, together.tokens)


@each([c for c in cases.CASES if c.rules == OURS and c.vocabulary <= 1000 and not c.top])
def test_the_naive_chain_is_right(case):
    logits, requests = cases.logits_of(case), cases.requests_of(case)
    tokens = naive_chain.sample(to_torch(logits, DEVICE), State.of(requests, DEVICE), draw=case.draw)
    for i in range(case.batch):
        assert int(tokens[i]) in acceptable(logits[i], requests, i, OURS, case.draw), f"row {i}"


def test_speculation_agrees_with_the_reference_draft_by_draft():
    rng = np.random.default_rng(0)
    batch, n, vocabulary = 24, 3, 1500
    target = rng.dirichlet(np.ones(vocabulary), size=(batch, n + 1)).astype(np.float32)
    other = rng.dirichlet(np.ones(vocabulary), size=(batch, n))
    guess = (0.4 * target[:, :n] + 0.6 * other).astype(np.float32)
    draft = np.array(
        [[rng.choice(vocabulary, p=q / q.sum()) for q in row.astype(np.float64)] for row in guess]
    )
    seeds, positions = np.arange(batch) + 2**40, np.arange(batch, dtype=np.int32)
    arrays = (draft.astype(np.int32), target, guess, seeds, positions)
    got = speculative.verify(*(torch.from_numpy(a).to(DEVICE) for a in arrays))
    tokens, accepted = reference.verify(*arrays)
    np.testing.assert_array_equal(got.accepted.cpu().numpy(), accepted)
    np.testing.assert_array_equal(got.tokens.cpu().numpy(), tokens)
    assert set(accepted) == {0, 1, 2, 3}, "every way to stop was tried"


def speculative_batch(vocabulary=300):
    """Five requests of two drafts, each surely accepted where it is a draft at all."""
    rng = np.random.default_rng(1)
    target = rng.dirichlet(np.ones(vocabulary), size=(5, 3)).astype(np.float32)
    draft = rng.integers(0, vocabulary, (5, 2)).astype(np.int32)
    return [draft, target, target[:, :2] * 0.5, np.arange(5) + 3, np.arange(5, dtype=np.int32)]


def verified(arrays):
    """By the kernel, held to the reference."""
    got = speculative.verify(*(torch.from_numpy(a).to(DEVICE) for a in arrays))
    tokens, accepted = reference.verify(*arrays)
    np.testing.assert_array_equal(got.accepted.cpu().numpy(), accepted)
    np.testing.assert_array_equal(got.tokens.cpu().numpy(), tokens)
    return tokens, accepted


def test_what_is_no_draft_is_never_accepted_and_the_target_speaks_alone():
    arrays = speculative_batch()
    vocabulary = arrays[1].shape[-1]
    assert (verified(arrays)[1] == 2).all(), "q is half of p, so nothing is refused"
    for wrong in (-1, vocabulary, 2**31 - 1):
        arrays = speculative_batch()
        arrays[0][:, 1] = wrong
        tokens, accepted = verified(arrays)
        assert (accepted == 1).all() and (tokens[:, 2] == -1).all()
        arrays[2][:, 1] = 1 / vocabulary
        assert (verified(arrays)[0] == tokens).all(), "the guess has no say where there was no draft"


def test_a_nan_probability_accepts_nothing_and_draws_nothing():
    arrays = speculative_batch()
    draft, target, guess = arrays[:3]
    target[0, 0, draft[0, 0]] = np.nan
    target[1, 0] = np.nan
    guess[2, 0, draft[2, 0]] = np.nan
    guess[3, 0] = np.nan
    tokens, accepted = verified(arrays)
    assert accepted.tolist() == [0, 0, 0, 0, 2]
    assert tokens[0, 0] != draft[0, 0] and tokens[1, 0] == -1 and (tokens[[0, 2, 3], 0] >= 0).all()


def test_a_verification_that_would_read_beside_its_tensors_is_refused():
    draft, target, guess, seed, position = (torch.from_numpy(a).to(DEVICE) for a in speculative_batch())
    workspace = speculative.Workspace.of(1, 300, DEVICE)
    wrong = (
        (draft, target, guess, seed[:4], position),
        (draft, target, guess, seed.repeat(2)[::2], position),
        (draft, target, guess, seed, position.long()),
        (draft, target, guess, seed, position[:, None]),
        (draft, target, guess.flip(0).transpose(0, 1).contiguous().transpose(0, 1), seed, position),
        (draft, target[:, :2], guess, seed, position),
        (draft, target, guess.int(), seed, position),
        (draft, target, guess, seed, position, workspace),
    )
    for arguments in wrong:
        with pytest.raises(ValueError, match=REFUSAL):
            speculative.verify(*arguments)


def small(**ask):
    return torch.zeros(1, 8, device=DEVICE), State.of(Requests.of(1, 8, **ask), DEVICE)


def test_what_does_not_fit_is_refused_in_one_form():
    x, state = small()
    ranked = small(top_k=2)[1]
    wrong = (
        lambda: fused.sample(x[:, :7], state),
        lambda: fused.sample(torch.zeros(8, 1, device=DEVICE).expand(8, 1).t()[:, ::2], state),
        lambda: fused.sample(x, state, draw="dice"),
        lambda: fused.sample(x, state, draw="inverse"),
        lambda: State.of(Requests.of(1, 8), DEVICE, LIBRARIES["vllm"]),
        lambda: naive_chain.sample(x, State.of(Requests.of(1, 8), DEVICE, Rules(min_p_first=True))),
        lambda: fused.sample(x.to(torch.int32), state),
        lambda: fused.sample(x.double(), state),
        lambda: fused.sample(
            x.repeat(2, 1), State.of(Requests.of(2, 8), DEVICE), fused.Workspace.of(1, 8, DEVICE)
        ),
        lambda: fused.sample(x, ranked, top=-1),
        lambda: reference.sample(np.zeros((1, 7)), Requests.of(1, 8)),
        lambda: speculative.verify(torch.zeros(1, 0, dtype=torch.int32), x[None], x[None], None, None),
        lambda: speculative.verify(
            torch.zeros(1, 2, dtype=torch.int64), x.expand(3, 8)[None], x.expand(2, 8)[None], 0, 0
        ),
    )
    for call in wrong:
        with pytest.raises(ValueError, match=REFUSAL):
            call()


@pytest.mark.gpu
def test_a_captured_graph_replays_with_new_logits_seeds_and_masks():
    """No host in the loop: what changes between steps are tensors."""
    case = cases.Case("graph", 4, 32000, ask=cases.EVERYTHING, tables=("grammar", "history"))
    logits, requests = to_torch(cases.logits_of(case), DEVICE), cases.requests_of(case)
    state = State.of(requests, DEVICE)
    workspace = fused.Workspace.of(4, 32000, DEVICE)
    fused.sample(logits, state, workspace)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        tokens = fused.sample(logits, state, workspace).tokens
    for step in range(3):
        logits.copy_(to_torch(cases.logits_of(case, seed=step), DEVICE))
        state.position += 1
        state.allowed.copy_(to_torch(pack_bits(np.random.default_rng(step).random((4, 32000)) < 0.5), DEVICE))
        graph.replay()
        assert torch.equal(tokens, fused.sample(logits, state).tokens)
