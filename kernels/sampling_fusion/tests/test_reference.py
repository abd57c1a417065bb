"""The meaning of the chain: by hand, by property, and against each library's own order of rules."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.sampling_fusion import philox, reference
from kernels.sampling_fusion.accept import acceptable
from kernels.sampling_fusion.reference import Ranking, kept
from kernels.sampling_fusion.requests import Requests, pack_bits, unpack_bits
from kernels.sampling_fusion.rules import DIFFERENCES, LIBRARIES, OURS, READ, Rules

REFUSAL = r"^.+ must .+, got .+; .+$"
LOG4321 = np.log([[0.4, 0.3, 0.2, 0.1]])


def one(**ask) -> Requests:
    return Requests.of(1, 4, **ask)


def survivors(x, rules=OURS, **ask) -> list[int]:
    ask = {"top_k": 0, "top_p": 1.0, "min_p": 0.0} | ask
    ranking = Ranking.of(np.asarray(x, np.float64), 1.0)
    return sorted(ranking.token[kept(ranking, rules=rules, **ask)].tolist())


# Known answers of Philox4x32-10, from the authors' Random123 library: counter, key, result.
KNOWN = (
    ((0, 0, 0, 0), 0, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, 0xFFFFFFFFFFFFFFFF, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        0x299F31D0A4093822,
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
)


@pytest.mark.parametrize("counter, key, words", KNOWN)
def test_philox_gives_the_published_words(counter, key, words):
    assert tuple(int(w) for w in philox.philox(key, *counter)) == words


def test_uniform_never_reaches_its_ends_and_keeps_fine_steps_near_zero():
    u = philox.uniform(np.array([0, 1, 2**31, 2**32 - 1], np.uint32))
    assert (u > 0).all() and (u < 1).all() and u[0] == 2.0**-33 and u[1] == 3 * u[0]


def test_rules_by_hand():
    assert survivors(LOG4321[0], top_k=3) == [0, 1, 2]
    assert survivors(LOG4321[0], top_p=0.4 - 1e-9) == [0], "the token that crosses p stays, no more"
    assert survivors(LOG4321[0], top_p=0.69) == [0, 1]
    assert survivors(LOG4321[0], top_p=0.71) == [0, 1, 2]
    assert survivors(LOG4321[0], top_k=2, top_p=0.6) == [0, 1], "0.4 of the kept 0.7 is 57%, below 60%"
    assert survivors(LOG4321[0], top_k=2, top_p=0.55) == [0]
    assert survivors(LOG4321[0], min_p=0.5) == [0, 1, 2]
    assert survivors(LOG4321[0], top_p=1e-9) == [0], "one token always stays"
    assert survivors([0.0] * 4, top_p=0.5) == [0, 1], "two hold exactly half: the third is not needed"


def test_penalties_by_hand():
    x = np.array([[2.0, -2.0, 1.0, 0.0]])
    ask = one(repetition=2.0, frequency=0.5, presence=0.25, prompts=[[0, 1]], outputs=[[1, 2, 2]])
    # 0: prompt only, 2/2. 1: -2*2 - 0.5 - 0.25. 2: 1/2 - 2*0.5 - 0.25. 3: untouched.
    assert reference.processed(x[0], ask, 0).tolist() == [1.0, -4.75, -0.75, 0.0]


def test_masks_bias_and_odd_numbers_by_hand():
    allowed = pack_bits([[True, True, False, True]])
    ask = one(bias=[{0: 1.5}], banned=[[3]], allowed=allowed)
    x = reference.processed(np.array([0.5, np.nan, 9.0, 9.0]), ask, 0)
    assert x.tolist() == [2.0, -np.inf, -np.inf, -np.inf]
    assert reference.processed(np.array([np.inf, 0, 0, 0]), one(), 0)[0] == np.finfo(np.float32).max


def test_ties_go_to_the_lower_id_or_stay_together():
    equal = [1.0, 2.0, 2.0, 2.0]
    assert survivors(equal, top_k=2) == [1, 2]
    assert survivors(equal, Rules(top_k_ties="value"), top_k=2) == [1, 2, 3]
    assert survivors(equal, top_p=0.4) == [1, 2]
    assert survivors(equal, Rules(top_p_ties="value"), top_p=0.4) == [1, 2, 3]
    assert reference.sample(np.array([equal]), one(temperature=0)).tokens.tolist() == [1]


def test_each_switch_is_told_in_the_table_and_changes_something():
    told = {d.switch for d in DIFFERENCES} - {""}
    assert told == set(Rules.__dataclass_fields__)
    for difference in DIFFERENCES:
        assert set(difference.answers) == {"vllm", "transformers", "flashinfer"}
    x = np.log([0.4, 0.25, 0.2, 0.1, 0.05])
    first = {"min_p": 0.5, "top_p": 0.76}
    assert survivors(x, OURS, **first) == [0, 1, 2] and survivors(x, Rules(min_p_first=True), **first) == [
        0,
        1,
    ]
    joint = {"top_k": 3, "top_p": 0.7}
    assert survivors(x, OURS, **joint) == [0, 1] and survivors(x, Rules(top_p_of="all"), **joint) == [0, 1, 2]


def test_the_lesson_names_the_versions_that_were_read():
    appendix = Path(__file__).parents[3] / "course/06_sampling_fusion/appendix.md"
    lesson = appendix.read_text(encoding="utf-8")
    read = " ".join(lesson[lesson.index("## Three libraries") :].split("|")[0].replace("`", "").split())
    assert "as of 20" in read
    for library, version in READ.items():
        assert re.search(rf"\b{library} {re.escape(version)}\b", read, re.I), library


def vllm_keeps(x, k, p, m):
    """The same set by the steps vLLM takes: min-p on the softmax, then ascending sort, cut, running sum."""
    prob = np.exp(x - x.max()) / np.exp(x - x.max()).sum()
    x = np.where(prob < m * prob.max(), -np.inf, x)
    order = np.argsort(x, kind="stable")
    s = x[order]
    s = np.where(s < s[len(s) - k], -np.inf, s)
    prob = np.exp(s - s.max()) / np.exp(s - s.max()).sum()
    cut = np.cumsum(prob) <= 1 - p
    cut[-1] = False
    return sorted(order[(s > -np.inf) & ~cut].tolist())


def transformers_keeps(x, k, p, m):
    """Warpers one after another: top-k by value, top-p by ascending running sum, min-p last."""
    x = np.where(x < np.sort(x)[-k], -np.inf, x)
    order = np.argsort(x, kind="stable")
    prob = np.exp(x[order] - x.max()) / np.exp(x - x.max()).sum()
    cut = np.cumsum(prob) <= 1 - p
    cut[-1] = False
    x = np.where(np.isin(np.arange(len(x)), order[cut]), -np.inf, x)
    prob = np.exp(x - x.max())
    return sorted(np.flatnonzero((x > -np.inf) & (prob >= m)).tolist())


def flashinfer_joint_keeps(x, k, p):
    """Kept when fewer than k tokens, and less than p of all mass, lie strictly above it."""
    prob = np.exp(x - x.max()) / np.exp(x - x.max()).sum()
    return [i for i in range(len(x)) if (x > x[i]).sum() < k and prob[x > x[i]].sum() < p]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 30), st.floats(0.05, 0.95), st.floats(0, 0.5))
def test_a_switch_follows_each_library(seed, k, p, m):
    x = np.random.default_rng(seed).normal(size=30) * 2
    ask = {"top_k": k, "top_p": p}
    assert survivors(x, LIBRARIES["vllm"], **ask, min_p=m) == vllm_keeps(x, k, p, m)
    assert survivors(x, LIBRARIES["transformers"], **ask, min_p=m) == transformers_keeps(x, k, p, m)
    tied = np.round(x)
    assert survivors(tied, LIBRARIES["flashinfer joint"], **ask) == flashinfer_joint_keeps(tied, k, p)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 40), st.floats(0.01, 1.0), st.floats(0, 0.9))
def test_what_is_kept_is_the_top_of_the_ranking(seed, k, p, m):
    x = np.round(np.random.default_rng(seed).normal(size=40) * 4) / 2
    keep = survivors(x, top_k=k, top_p=p, min_p=m)
    assert 1 <= len(keep) <= (k or 40)
    order = np.lexsort((np.arange(40), -x))
    assert sorted(order[: len(keep)].tolist()) == keep
    assert set(survivors(x, top_k=k, top_p=p * 0.5, min_p=m)) <= set(keep), "less mass keeps no more"
    assert set(survivors(x, top_k=k, top_p=p, min_p=m / 2)) >= set(keep), "a lower bar keeps no less"


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.booleans())
def test_a_request_gives_the_same_token_in_any_batch_and_after_any_shift(seed, inverse):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(3, 50))
    ask = Requests.of(
        3, 50, top_k=[0, 5, 9], top_p=0.9, seed=[1, 2, 3], position=[4, 5, 6], presence=0.5, outputs=[[1]] * 3
    )
    draw = "inverse" if inverse else "gumbel"
    together = reference.sample(x, ask, draw=draw, top=3)
    for i in range(3):
        alone = reference.sample(x[i : i + 1] + 7.0, ask.row(i), draw=draw, top=3)
        assert alone.tokens[0] == together.tokens[i]
        assert alone.logprobs[0] == pytest.approx(together.logprobs[i], abs=1e-9)
    assert np.exp(reference.log_softmax(x[0], 1.0)).sum() == pytest.approx(1)


def test_a_row_with_nothing_left_says_so_and_its_neighbours_do_not_notice():
    x = np.stack([np.zeros(40), np.full(40, np.nan), np.arange(40.0)])
    ask = Requests.of(3, 40, allowed=pack_bits(np.arange(3)[:, None].repeat(40, 1) != 0), top_k=5)
    got = reference.sample(x, ask, top=2)
    assert got.tokens[:2].tolist() == [-1, -1] and np.isnan(got.logprobs[:2]).all()
    assert got.top_tokens[:2].tolist() == [[-1, -1]] * 2
    assert got.tokens[2] == reference.sample(x[2:], ask.row(2)).tokens[0] >= 35


BAD = (
    {"temperature": -0.1},
    {"temperature": float("nan")},
    {"top_p": 0.0},
    {"top_p": 1.01},
    {"top_p": -1},
    {"min_p": 1.0},
    {"min_p": -0.1},
    {"top_k": -1},
    {"top_k": 2.5},
    {"repetition": 0.0},
    {"presence": float("inf")},
    {"seed": -1},
    {"seed": 2**64},
    {"position": -1},
    {"top_k": [1, 2]},
    {"banned": [[4]]},
    {"prompts": [[-1]]},
    {"outputs": []},
    {"bias": [{9: 1.0}]},
    {"bias": [{0: float("inf")}]},
    {"allowed": np.zeros((1, 2), np.int32)},
    {"topk": 5},
)


@pytest.mark.parametrize("ask", BAD, ids=str)
def test_what_the_host_can_see_is_refused_in_one_form(ask):
    with pytest.raises(ValueError, match=REFUSAL):
        one(**ask)


def test_top_k_zero_and_top_p_one_are_off():
    assert survivors(LOG4321[0], top_k=0, top_p=1.0) == [0, 1, 2, 3]


@given(st.integers(1, 200), st.integers(0, 2**32))
@settings(max_examples=30, deadline=None)
def test_bits_come_back(vocabulary, seed):
    flags = np.random.default_rng(seed).random((2, vocabulary)) < 0.5
    assert (unpack_bits(pack_bits(flags), vocabulary) == flags).all()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(["gumbel", "inverse"]))
def test_the_allowance_for_rounding_is_narrow(seed, draw):
    """The reference's own token is always acceptable, and hardly anything else is."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(1, 200)) * 3
    ask = Requests.of(1, 200, top_k=int(rng.integers(0, 60)), top_p=0.9, min_p=0.01, seed=seed)
    token = int(reference.sample(x, ask, draw=draw).tokens[0])
    assert acceptable(x[0], ask, 0, draw=draw, slack=0) == {token}
    wide = acceptable(x[0], ask, 0, draw=draw)
    assert token in wide and len(wide) <= 2


def test_acceptable_admits_both_sides_of_a_border_and_nothing_else():
    x = np.log([[0.5, 0.4, 0.1]])
    ask = Requests.of(1, 3, top_p=0.9, seed=3)
    ask = replace(ask, top_p=np.array([0.9 + 1e-8]))  # the last token's predecessors hold 0.9: just kept
    everything = {
        t for s in range(200) for t in acceptable(x[0], replace(ask, seed=np.array([s], np.uint64)), 0)
    }
    assert everything == {0, 1, 2}
    ask = replace(ask, top_p=np.array([0.8]))
    everything = {
        t for s in range(200) for t in acceptable(x[0], replace(ask, seed=np.array([s], np.uint64)), 0)
    }
    assert everything == {0, 1}
