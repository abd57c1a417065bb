"""Go from logits to a token in one launch and, for top-k up to 1024, one read of the logits.

Every program reads a stretch of one row once, applies mask, bias and penalties in registers, and leaves one maximum
for each group of 64 tokens. The last program of a row to arrive has all its maxima. It takes the k best groups, reads
those again (k * 256 bytes, see select.py), ranks a short list by comparing all pairs, on which top-p, min-p and the
draw are a few sums. No sort, no second launch, no trip to the host.

A row without top-k carries its noise through the read instead. The best noisy score of all tokens is the draw, if the
filters keep it. Otherwise all tokens that they keep have better scores, and unranked.py reads again.
Without filters many rows leave only each group's best score, and the finish names the token by drawing the best group's
noise again. That saves 112 of 1,040 instructions of the read.
"""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from kernels.overlap import can_overlap, let_next_begin, overlapped, wait_for_last
from kernels.sampling_fusion import reference
from kernels.sampling_fusion.finish import draw, first_best, rank_row, row_total, scan, store_top
from kernels.sampling_fusion.plan import GROUP, MOST_K, Config, config_for, constants, sizes
from kernels.sampling_fusion.state import State
from kernels.sampling_fusion.tiles import NOBODY, best_of
from kernels.sampling_fusion.unranked import logit_at, name_of_best, settle


@triton.jit
def sample_kernel(
    logits_ptr, numbers_ptr, top_k_ptr, seed_ptr, position_ptr,
    allowed_ptr, biased_ptr, bias_ptr, seen_ptr, counts_ptr,
    maxima_ptr, sums_ptr, score_ptr, winner_ptr, arrived_ptr, chosen_ptr, x_ptr, token_ptr,
    out_ptr, logprob_ptr, top_token_ptr, top_logprob_ptr,
    V, W, stride_b, groups,
    GROUP: tl.constexpr, ROWS: tl.constexpr,
    G: tl.constexpr, K: tl.constexpr, C: tl.constexpr, SETS: tl.constexpr, ALL_PAIRS: tl.constexpr,
    MOST: tl.constexpr, AT_ONCE: tl.constexpr, STEP: tl.constexpr, TOP: tl.constexpr, GREEDY: tl.constexpr,
    ALLOW: tl.constexpr, BIAS: tl.constexpr, PENALTY: tl.constexpr, SUMS: tl.constexpr,
    RANKED: tl.constexpr, FREE: tl.constexpr, NAMED: tl.constexpr, FILTERED: tl.constexpr, LOGPROB: tl.constexpr,
    INVERSE_CDF: tl.constexpr, MIN_P_FIRST: tl.constexpr, OF_ALL: tl.constexpr,
    SCAN: tl.constexpr, FINISH: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    if EARLY:
        let_next_begin()
        wait_for_last()
    tile, b = tl.program_id(0), tl.program_id(1)
    row = (
        b,
        V,
        W,
        stride_b,
        logits_ptr,
        numbers_ptr,
        allowed_ptr,
        biased_ptr,
        bias_ptr,
        seen_ptr,
        counts_ptr,
    )
    temperature = tl.load(numbers_ptr + b * 6)
    k = tl.where(temperature == 0, 1, tl.load(top_k_ptr + b))
    free = (k == 0) | (k > K) | (k > V)  # V, so that a longer list asked for by a neighbour changes nothing
    inv_t = tl.where(temperature == 0, 1.0, tl.minimum(1.0 / temperature, 1e30))
    seed, position = tl.load(seed_ptr + b), tl.load(position_ptr + b)
    maxima_ptr += b * groups
    sums_ptr += b * groups
    score_ptr += b * groups
    winner_ptr += b * groups
    chosen_ptr += b * tl.maximum(groups, MOST)
    if SCAN:
        scan(
            row,
            tile,
            maxima_ptr,
            sums_ptr,
            score_ptr,
            winner_ptr,
            seed,
            position,
            free,
            inv_t,
            V,
            groups,
            GROUP,
            ROWS,
            SUMS,
            FREE,
            NAMED,
            ALLOW,
            BIAS,
            PENALTY,
        )
    if not FINISH:
        return
    last = tl.num_programs(0) - 1
    arrived = last
    if SCAN:
        tl.debug_barrier()  # all threads have written before one thread reports it
        arrived = tl.atomic_add(arrived_ptr + b, 1, sem="acq_rel")
    if arrived == last:
        if SCAN:
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
                row,
                maxima,
                best,
                inv_t,
                chosen_ptr,
                x_ptr + b * C,
                token_ptr + b * C,
                tl.maximum(tl.where(free, 1, k), TOP),
                V,
                G,
                SETS,
                ALL_PAIRS,
                MOST,
                C,
                GROUP,
                AT_ONCE,
                STEP,
                ALLOW,
                BIAS,
                PENALTY,
            )
            token = draw(
                xs,
                tokens,
                rank,
                before,
                n,
                best,
                total,
                inv_t,
                k,
                top_p,
                min_p,
                seed,
                position,
                C,
                INVERSE_CDF,
                MIN_P_FIRST,
                OF_ALL,
            )
            if TOP > 0:
                to, logprob_to = top_token_ptr + b * TOP, top_logprob_ptr + b * TOP
                store_top(xs, tokens, rank, n, best, total, inv_t, to, logprob_to, C, TOP)
        if FREE:
            if free:
                score = tl.load(score_ptr + g, mask=g < groups, other=float("-inf"))
                if NAMED:
                    token = best_of(score, tl.load(winner_ptr + g, mask=g < groups, other=NOBODY))
                else:
                    best_group = best_of(score, g)
                    token = name_of_best(
                        row, best_group, seed, position, inv_t, V, GROUP, ALLOW, BIAS, PENALTY
                    )
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


@dataclass
class Workspace:
    """Hold what programs of one launch leave for each other, one per concurrent call. Nothing survives a launch."""

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
        _, most, short = sizes(k)
        f = {"dtype": torch.float32, "device": device}
        i = {"dtype": torch.int32, "device": device}
        return cls(
            torch.empty(batch, groups, **f),
            torch.empty(batch, groups, **f),
            torch.empty(batch, groups, **f),
            torch.empty(batch, groups, **i),
            torch.zeros(batch, **i),
            torch.empty(batch, max(groups, most), **i),
            torch.empty(batch, short, **f),
            torch.empty(batch, short, **i),
        )

    def check(self, batch: int, vocabulary: int, k: int):
        groups = triton.cdiv(vocabulary, GROUP)
        _, most, short = sizes(k)
        have = (self.maxima.numel(), self.arrived.numel(), self.chosen.numel(), self.x.numel())
        need = (batch * groups, batch, batch * max(groups, most), batch * short)
        if any(h < n for h, n in zip(have, need, strict=True)):
            raise ValueError(
                f"workspace must be for {batch} rows of {vocabulary} and k = {k}, got a smaller one; "
                "make it with Workspace.of"
            )


@dataclass(frozen=True)
class Sampled:
    tokens: torch.Tensor  # int32 [B], -1 for a row without candidates
    logprobs: torch.Tensor | None  # fp32 [B]
    top_tokens: torch.Tensor | None  # int32 [B, top]
    top_logprobs: torch.Tensor | None


FLOATS = (torch.float32, torch.bfloat16, torch.float16)


def _check(logits, state: State, draw: str, top: int):
    if logits.dtype not in FLOATS:
        raise ValueError(f"logits must be fp32, bf16 or fp16, got {logits.dtype}; convert them")
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
    if not 0 <= top <= MOST_K:
        raise ValueError(f"top must be from 0 to {MOST_K}, got {top}; nobody shows more")


def sample(
    logits: torch.Tensor,
    state: State,
    workspace: Workspace | None = None,
    *,
    draw: str = "gumbel",
    logprobs: bool = False,
    top: int = 0,
    config: Config | None = None,
) -> Sampled:
    """logits [B, V] fp32, bf16 or fp16 -> one token a row. Graph safe when `workspace` is given.

    A request gets the same bits in any batch and by any config, because its noise is its own, and sums are of
    integers.
    """
    batch, vocabulary = state.batch, state.vocabulary
    _check(logits, state, draw, top)
    top = min(top, vocabulary)
    k = max(state.largest_k, top)
    workspace = workspace or Workspace.of(batch, vocabulary, logits.device, k)
    workspace.check(batch, vocabulary, k)
    config = config or config_for(batch, state.kind)
    logprobs = logprobs or top > 0
    f = {"dtype": torch.float32, "device": logits.device}
    i = {"dtype": torch.int32, "device": logits.device}
    out = Sampled(
        torch.empty(batch, **i),
        torch.empty(batch, **f) if logprobs else None,
        torch.empty(batch, top, **i) if top else None,
        torch.empty(batch, top, **f) if top else None,
    )
    w, s, rules = workspace, state, state.rules
    chosen = constants(vocabulary, k, 4 if s.free else logits.element_size(), config)
    tiles = triton.cdiv(vocabulary, chosen["ROWS"] * GROUP)
    early = can_overlap(logits.device)
    for programs, num_warps, part in launches(tiles, config):
        sample_kernel[(programs, batch)](
            logits, s.numbers, s.top_k, s.seed, s.position, s.allowed, s.biased, s.bias, s.seen, s.counts,
            w.maxima, w.sums, w.score, w.winner, w.arrived, w.chosen, w.x, w.token,
            out.tokens, out.logprobs, out.top_tokens, out.top_logprobs,
            vocabulary, triton.cdiv(vocabulary, 32), logits.stride(0), triton.cdiv(vocabulary, GROUP),
            **chosen, TOP=top,
            ALLOW=s.allowed is not None, BIAS=s.bias is not None, PENALTY=s.counts is not None,
            SUMS=logprobs or s.filtered or rules.top_p_of == "all",
            GREEDY=s.ranked and k == 1 and not top, RANKED=s.ranked,
            FREE=s.free, NAMED=s.filtered or not config.finish_warps, FILTERED=s.filtered, LOGPROB=logprobs,
            INVERSE_CDF=draw == "inverse", MIN_P_FIRST=rules.min_p_first, OF_ALL=rules.top_p_of == "all",
            **part, EARLY=early, num_warps=num_warps, **overlapped(early),
        )  # fmt: skip
    return out


def launches(tiles: int, config: Config) -> list[tuple[int, int, dict]]:
    """(programs a row, warps, which part) of each launch."""
    if not config.finish_warps:
        return [(tiles, config.num_warps, {"SCAN": True, "FINISH": True})]
    return [
        (tiles, config.num_warps, {"SCAN": True, "FINISH": False}),
        (1, config.finish_warps, {"SCAN": False, "FINISH": True}),
    ]
