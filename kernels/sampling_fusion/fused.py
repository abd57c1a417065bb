"""From logits to a token in one launch and, for top-k up to 1024, one read of the logits.

Every program reads a stretch of one row once, applies mask, bias and penalties in registers, and leaves
behind one maximum for each group of 64 tokens. The last program of a row to arrive has all its maxima: it
picks the k best groups, reads those again (k * 256 bytes; see select.py), ranks a short list by comparing all
pairs, and there top-p, min-p and the draw are a few sums. No sort, no second launch, no trip to the host.

A row without top-k carries its noise through the read instead: the best noisy score of all tokens is the draw,
if the filters keep it. If they do not, everything they keep ranks above it: unranked.py reads again.
"""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from kernels.sampling_fusion import reference
from kernels.sampling_fusion.finish import draw, first_best, rank_row, row_total, scan, store_top
from kernels.sampling_fusion.rules import OURS, Rules
from kernels.sampling_fusion.state import State
from kernels.sampling_fusion.tiles import NOBODY, best_of
from kernels.sampling_fusion.unranked import logit_at, settle

MOST_K = 1024  # above, a row goes the way of rows without top-k
GROUP = 64
FEW = 64  # up to here all pairs of sets are compared; above, bisection is cheaper
SORTED = 512  # short lists from here on are sorted


@triton.jit
def sample_kernel(
    logits_ptr, numbers_ptr, top_k_ptr, seed_ptr, position_ptr,
    allowed_ptr, biased_ptr, bias_ptr, seen_ptr, counts_ptr,
    maxima_ptr, sums_ptr, score_ptr, winner_ptr, arrived_ptr, chosen_ptr, x_ptr, token_ptr,
    out_ptr, logprob_ptr, top_token_ptr, top_logprob_ptr,
    V, W, stride_b, groups, tiles, splits,
    GROUP: tl.constexpr, ROWS: tl.constexpr, STAGES: tl.constexpr,
    G: tl.constexpr, K: tl.constexpr, C: tl.constexpr, SETS: tl.constexpr, ALL_PAIRS: tl.constexpr,
    MOST: tl.constexpr, AT_ONCE: tl.constexpr, STEP: tl.constexpr, TOP: tl.constexpr, GREEDY: tl.constexpr,
    ALLOW: tl.constexpr, BIAS: tl.constexpr, PENALTY: tl.constexpr, SUMS: tl.constexpr,
    RANKED: tl.constexpr, FREE: tl.constexpr, FILTERED: tl.constexpr, LOGPROB: tl.constexpr,
    INVERSE_CDF: tl.constexpr, MIN_P_FIRST: tl.constexpr, OF_ALL: tl.constexpr,
    PHASE: tl.constexpr = 0, PDL: tl.constexpr = False,
):  # fmt: skip
    split, b = tl.program_id(0), tl.program_id(1)
    row = (
        b, V, W, stride_b, logits_ptr, numbers_ptr, allowed_ptr, biased_ptr, bias_ptr, seen_ptr, counts_ptr,
    )  # fmt: skip
    temperature = tl.load(numbers_ptr + b * 6)
    k = tl.where(temperature == 0, 1, tl.load(top_k_ptr + b))
    free = (k == 0) | (k > K)
    inv_t = tl.where(temperature == 0, 1.0, tl.minimum(1.0 / temperature, 1e30))
    seed, position = tl.load(seed_ptr + b), tl.load(position_ptr + b)
    maxima_ptr += b * groups
    sums_ptr += b * groups
    score_ptr += b * groups
    winner_ptr += b * groups
    chosen_ptr += b * tl.maximum(groups, MOST)
    if PHASE != 2:
        scan(
            row, split, tiles, maxima_ptr, sums_ptr, score_ptr, winner_ptr, seed, position, free, inv_t, V, groups,
            GROUP, ROWS, STAGES, SUMS, FREE, ALLOW, BIAS, PENALTY,
        )  # fmt: skip
    if PHASE == 1:
        if PDL:
            tl.extra.cuda.gdc_launch_dependents()
        return
    arrived = splits - 1
    if PHASE == 0:
        tl.debug_barrier()  # all threads have written before one of them says so
        arrived = tl.atomic_add(arrived_ptr + b, 1, sem="acq_rel")
    if PHASE == 2 and PDL:
        tl.extra.cuda.gdc_wait()
    if arrived == splits - 1:
        if PHASE == 0:
            tl.store(arrived_ptr + b, 0)
        g = tl.arange(0, G)
        maxima = tl.load(maxima_ptr + g, mask=g < groups, other=float("-inf"))
        best = tl.max(maxima)
        total = row_total(maxima, best, inv_t, sums_ptr, groups, G) if SUMS else 0.0
        top_p, min_p = tl.load(numbers_ptr + b * 6 + 1), tl.load(numbers_ptr + b * 6 + 2)
        token = NOBODY
        if GREEDY:
            token = first_best(row, maxima, best, V, G, GROUP, ALLOW, BIAS, PENALTY)
        elif RANKED or TOP > 0:
            n, xs, tokens, rank, before = rank_row(
                row, maxima, best, inv_t, chosen_ptr, x_ptr + b * C, token_ptr + b * C,
                tl.maximum(tl.where(free, 1, k), TOP), V,
                G, SETS, ALL_PAIRS, MOST, C, GROUP, AT_ONCE, STEP, ALLOW, BIAS, PENALTY,
            )  # fmt: skip
            token = draw(
                xs, tokens, rank, before, n, best, total, inv_t, k, top_p, min_p, seed, position,
                C, INVERSE_CDF, MIN_P_FIRST, OF_ALL,
            )  # fmt: skip
            if TOP > 0:
                to, logprob_to = top_token_ptr + b * TOP, top_logprob_ptr + b * TOP
                store_top(xs, tokens, rank, n, best, total, inv_t, to, logprob_to, C, TOP)
        if FREE:
            if free:
                score = tl.load(score_ptr + g, mask=g < groups, other=float("-inf"))
                token = best_of(score, tl.load(winner_ptr + g, mask=g < groups, other=NOBODY))
                if FILTERED:
                    token = settle(
                        row, token, maxima, chosen_ptr, score_ptr, winner_ptr, groups, best, total, inv_t,
                        k, top_p, min_p, seed, position, V,
                        G, GROUP, AT_ONCE, MIN_P_FIRST, OF_ALL, ALLOW, BIAS, PENALTY,
                    )  # fmt: skip
        tl.store(out_ptr + b, tl.where(token == NOBODY, -1, token))
        if LOGPROB:
            x = logit_at(row, token, V, ALLOW, BIAS, PENALTY)
            tl.store(logprob_ptr + b, (x - best) * inv_t - tl.log(total))


@dataclass(frozen=True)
class Config:
    rows: int = 32  # groups a tile
    per_sm: int = 16  # programs that one multiprocessor should get
    stages: int = 1  # tiles on their way through shared memory; 1 leaves the overlap to other programs
    num_warps: int = 8
    registers: int = 0  # at most so many a thread; 0 leaves it to the compiler
    launches: int = 1  # 2: the finish is a launch of its own, with its own warps and registers
    pdl: bool = False  # its programs start while the scan still runs
    finish_warps: int = 8
    at_once: int = 64  # chosen groups a tile of the second read
    pairs: int = 4096  # comparisons a tile of the ranking
    sets: int = 128  # sets of groups, whose best are compared all with all; 0 leaves it to bisection


CONFIG = Config(registers=128)  # two programs of 256 threads for each multiprocessor


@dataclass
class Workspace:
    """What programs of one launch leave for each other. One per concurrent call; nothing survives a launch."""

    maxima: torch.Tensor
    sums: torch.Tensor
    score: torch.Tensor
    winner: torch.Tensor
    arrived: torch.Tensor  # zero before and after
    chosen: torch.Tensor
    x: torch.Tensor
    token: torch.Tensor

    @classmethod
    def of(cls, batch: int, vocabulary: int, device, k: int = MOST_K) -> "Workspace":
        groups = triton.cdiv(vocabulary, GROUP)
        _, most, short = _sizes(k)
        f = {"dtype": torch.float32, "device": device}
        i = {"dtype": torch.int32, "device": device}
        return cls(
            torch.empty(batch, groups, **f), torch.empty(batch, groups, **f),
            torch.empty(batch, groups, **f), torch.empty(batch, groups, **i),
            torch.zeros(batch, **i), torch.empty(batch, max(groups, most), **i),
            torch.empty(batch, short, **f), torch.empty(batch, short, **i),
        )  # fmt: skip


@dataclass(frozen=True)
class Sampled:
    tokens: torch.Tensor  # int32 [B]; -1 where a row has nothing left to draw
    logprobs: torch.Tensor | None  # fp32 [B]
    top_tokens: torch.Tensor | None  # int32 [B, top]
    top_logprobs: torch.Tensor | None


def _sizes(k: int) -> tuple[int, int, int]:
    """k as a power of two, groups chosen at most, tokens in the short list: with room, so bisection is rare."""
    k_pad = max(16, triton.next_power_of_2(k))
    return k_pad, 2 * k_pad if k_pad <= FEW else k_pad, 2 * k_pad


def _check(logits, state: State, rules: Rules, draw: str, top: int):
    if logits.shape != (state.batch, state.vocabulary) or logits.stride(-1) != 1:
        raise ValueError(
            f"logits must be {(state.batch, state.vocabulary)} with neighbours side by side, "
            f"got {tuple(logits.shape)} with strides {logits.stride()}; call .contiguous()"
        )
    if draw not in reference.DRAWS:
        raise ValueError(f"draw must be one of {', '.join(reference.DRAWS)}, got {draw!r}; pick a listed one")
    if draw == "inverse" and state.free:
        raise ValueError(
            f"draw must be 'gumbel' when a request has no top_k from 1 to {MOST_K}, got 'inverse'; set one"
        )
    if rules not in SUPPORTED:
        raise ValueError(
            f"rules must have ties by index and processed logprobs, got {rules}; see reference.sample"
        )
    if not 0 <= top <= MOST_K:
        raise ValueError(f"top must be from 0 to {MOST_K}, got {top}; nobody shows more")


SUPPORTED = {Rules(min_p_first=m, top_p_of=of) for m in (False, True) for of in ("kept", "all")}


def sample(
    logits: torch.Tensor,
    state: State,
    workspace: Workspace | None = None,
    *,
    draw: str = "gumbel",
    logprobs: bool = False,
    top: int = 0,
    rules: Rules = OURS,
    config: Config = CONFIG,
) -> Sampled:
    """logits [B, V] fp32, bf16 or fp16 -> one token a row. Graph safe when `workspace` is given."""
    _check(logits, state, rules, draw, top)
    batch, vocabulary = logits.shape
    top = min(top, vocabulary)
    device = logits.device
    k = max(state.largest_k, top)
    greedy = state.largest_k == 1 and not top
    workspace = workspace or Workspace.of(batch, vocabulary, device, k)
    launch = plan(batch, vocabulary, k, multiprocessors(device), config)
    logprobs = logprobs or top > 0
    out = torch.empty(batch, dtype=torch.int32, device=device)
    logprob = torch.empty(batch, device=device) if logprobs else None
    top_token = torch.empty(batch, top, dtype=torch.int32, device=device) if top else None
    top_logprob = torch.empty(batch, top, device=device) if top else None
    w, s = workspace, state
    grid = launch.pop("grid")
    for phase in (0,) if config.launches == 1 else (1, 2):
        more = {"num_warps": config.finish_warps if phase == 2 else config.num_warps}
        if config.pdl and phase:
            more |= {"launch_pdl": phase == 2, "PDL": True}
        if (
            config.registers and phase != 2 and not s.free
        ):  # that needs fewer alone, and more beside the other way
            more["maxnreg"] = config.registers
        sample_kernel[(1, batch) if phase == 2 else grid](
        logits, s.numbers, s.top_k, s.seed, s.position, s.allowed, s.biased, s.bias, s.seen, s.counts,
        w.maxima, w.sums, w.score, w.winner, w.arrived, w.chosen, w.x, w.token,
        out, logprob, top_token, top_logprob,
        vocabulary, triton.cdiv(vocabulary, 32), logits.stride(0),
        **launch, TOP=top,
        ALLOW=s.allowed is not None, BIAS=s.bias is not None, PENALTY=s.counts is not None,
        SUMS=logprobs or s.filtered or rules.top_p_of == "all",
        GREEDY=greedy, RANKED=s.ranked, FREE=s.free, FILTERED=s.filtered, LOGPROB=logprobs,
        INVERSE_CDF=draw == "inverse", MIN_P_FIRST=rules.min_p_first, OF_ALL=rules.top_p_of == "all",
        PHASE=phase, **more,
    )  # fmt: skip
    return Sampled(out, logprob, top_token, top_logprob)


def plan(batch: int, vocabulary: int, k: int, sms: int, config: Config = CONFIG) -> dict:
    """Grid and constants: enough programs to fill the machine, each with at least one tile."""
    groups = triton.cdiv(vocabulary, GROUP)
    rows = max(1, min(config.rows, triton.next_power_of_2(groups)))
    all_tiles = triton.cdiv(groups, rows)
    splits = min(all_tiles, max(1, triton.cdiv(config.per_sm * sms, batch)))
    tiles = triton.cdiv(all_tiles, splits)
    splits = triton.cdiv(all_tiles, tiles)
    k_pad, most, short = _sizes(min(k, vocabulary))
    g_pad = max(16, triton.next_power_of_2(groups))
    all_pairs = bool(config.sets) and k_pad <= FEW
    return {
        "grid": (splits, batch),
        "groups": groups, "tiles": tiles, "splits": splits,
        "GROUP": GROUP, "ROWS": rows, "STAGES": config.stages,
        "G": g_pad, "K": k_pad, "C": short,
        "SETS": min(config.sets if all_pairs else k_pad, g_pad // 4), "ALL_PAIRS": all_pairs, "MOST": most,
        "AT_ONCE": min(config.at_once, most), "STEP": 0 if short >= SORTED else min(config.pairs // short, short),
    }  # fmt: skip


def multiprocessors(device) -> int:
    if device.type != "cuda":
        return 4
    return torch.cuda.get_device_properties(device).multi_processor_count
