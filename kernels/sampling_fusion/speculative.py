"""Accept and resample in one launch, after the target model has seen the drafts.

Drafts d_1 .. d_n are drawn from the draft's distributions q_1 .. q_n, and the target has p_1 .. p_{n+1}. Draft i is
accepted when u_i < p_i(d_i) / q_i(d_i). At the first rejection a token is drawn from max(p_i - q_i, 0), and the rest
is dropped. When all are accepted, one more is drawn from p_{n+1}. The result is distributed exactly as if the target
had sampled alone (Leviathan et al., 2023, and Chen et al., 2023), whatever q was.

In one launch every program finds the first rejection for itself (n comparisons), then reads its stretch of that one
row of p and of q. So 2 V numbers a request are read, not 2 n V. The draw is an exponential race over the residual
(the same draw as Gumbel-max), and the last program of a request to arrive takes the first of all. It takes
probabilities, not logits, because both distributions must have gone through the same filters before.
"""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from kernels.sampling_fusion import philox
from kernels.sampling_fusion.tiles import NOBODY, best_of, exponential, uniform, words_of_tile

ACCEPT, RESAMPLE = tl.constexpr(philox.ACCEPT), tl.constexpr(philox.RESAMPLE)
TINY = tl.constexpr(1.2e-38)
BLOCK = 1024
PROGRAMS = 2048  # enough for any machine, and more would only wait


@triton.jit
def accepted_drafts(
    draft_ptr, target_ptr, guess_ptr, seed, position, V, DRAFTS: tl.constexpr, N: tl.constexpr
):
    """Return how many of the DRAFTS come before the first rejection, and whether the rejected id is a draft at all.

    `u q < p` accepts, so q = 0 needs no division, and a NaN accepts nothing.
    """
    i = tl.arange(0, N)
    token = tl.load(draft_ptr + i, mask=i < DRAFTS, other=-1)
    drafted = (token >= 0) & (token < V)
    p = tl.load(target_ptr + i.to(tl.int64) * V + token, mask=drafted, other=0.0).to(tl.float32)
    q = tl.load(guess_ptr + i.to(tl.int64) * V + token, mask=drafted, other=0.0).to(tl.float32)
    at = (i * 0 + position).to(tl.uint32)
    word, _, _, _ = tl.philox(
        seed, i.to(tl.uint32), at, (i * 0 + ACCEPT).to(tl.uint32), (i * 0).to(tl.uint32)
    )
    accepted = drafted & (uniform(word) * q < p)
    n = tl.min(tl.where(accepted, N, i))
    return n, tl.max(((i == n) & drafted).to(tl.int32)) != 0


@triton.jit
def verify_kernel(
    draft_ptr,
    target_ptr,
    guess_ptr,
    seed_ptr,
    position_ptr,
    lead_ptr,
    winner_ptr,
    arrived_ptr,
    out_ptr,
    accepted_ptr,
    V,
    tiles,
    splits,
    DRAFTS: tl.constexpr,
    N: tl.constexpr,
    BLOCK: tl.constexpr,
    SPLITS: tl.constexpr,
):
    split, b = tl.program_id(0), tl.program_id(1).to(tl.int64)
    seed, position = tl.load(seed_ptr + b), tl.load(position_ptr + b)
    draft_ptr += b * DRAFTS
    target_ptr += b * (DRAFTS + 1) * V
    guess_ptr += b * DRAFTS * V
    lead_ptr += b * splits
    winner_ptr += b * splits
    out_ptr += b * (DRAFTS + 1)
    n, drafted = accepted_drafts(draft_ptr, target_ptr, guess_ptr, seed, position, V, DRAFTS, N)
    p_ptr, q_ptr = target_ptr + n.to(tl.int64) * V, guess_ptr + n.to(tl.int64) * V
    lead = tl.full([BLOCK], float("-inf"), tl.float32)
    winner = tl.full([BLOCK], NOBODY, tl.int32)
    for tile in range(split * tiles, split * tiles + tiles):
        token = tile * BLOCK + tl.arange(0, BLOCK)
        p = tl.load(p_ptr + token, mask=token < V, other=0.0).to(tl.float32)
        q = tl.load(q_ptr + token, mask=(token < V) & drafted, other=0.0).to(tl.float32)
        p, q = tl.where(p == p, p, 0.0), tl.where(q == q, q, 0.0)
        # A race. Each token arrives after an exponential time over its weight, and the first one is the draw.
        words = words_of_tile(tile * BLOCK, seed, position, RESAMPLE, BLOCK)
        arrival = -exponential(words) / tl.maximum(p - q, TINY)
        arrival = tl.where(p > q, arrival, float("-inf"))
        winner = tl.where(arrival > lead, token, winner)
        lead = tl.maximum(arrival, lead)
    tl.store(lead_ptr + split, tl.max(lead))
    tl.store(winner_ptr + split, best_of(lead, winner))
    tl.debug_barrier()
    if tl.atomic_add(arrived_ptr + b, 1, sem="acq_rel") == splits - 1:
        tl.store(arrived_ptr + b, 0)
        s = tl.arange(0, SPLITS)
        leads = tl.load(lead_ptr + s, mask=s < splits, other=float("-inf"))
        token = best_of(leads, tl.load(winner_ptr + s, mask=s < splits, other=NOBODY))
        # p = q to the last bit everywhere leaves nothing to draw from, and refuses with probability 0.
        token = tl.where(token == NOBODY, -1, token)
        i = tl.arange(0, N)
        drafts = tl.load(draft_ptr + i, mask=i < DRAFTS, other=-1)
        tl.store(out_ptr + i, tl.where(i < n, drafts, tl.where(i == n, token, -1)), mask=i <= DRAFTS)
        tl.store(accepted_ptr + b, n)


@dataclass(frozen=True)
class Verified:
    tokens: torch.Tensor  # int32 [B, n + 1]: the accepted drafts, then one of the target's own, then -1
    accepted: torch.Tensor  # int32 [B], 0 .. n


@dataclass
class Workspace:
    lead: torch.Tensor
    winner: torch.Tensor
    arrived: torch.Tensor  # zero before and after

    @classmethod
    def of(cls, batch: int, vocabulary: int, device) -> "Workspace":
        splits = triton.cdiv(vocabulary, BLOCK)
        return cls(
            torch.empty(batch, splits, device=device),
            torch.empty(batch, splits, dtype=torch.int32, device=device),
            torch.zeros(batch, dtype=torch.int32, device=device),
        )

    def check(self, batch: int, vocabulary: int):
        if self.arrived.numel() < batch or self.lead.numel() < batch * triton.cdiv(vocabulary, BLOCK):
            raise ValueError(
                f"workspace must be for {batch} rows of {vocabulary}, got a smaller one; make it with Workspace.of"
            )


INTS, FLOATS = (torch.int32,), (torch.float32, torch.bfloat16, torch.float16)


def _check(draft, target, guess, seed, position):
    batch, n = draft.shape
    vocabulary = target.shape[-1]
    if n < 1 or target.shape != (batch, n + 1, vocabulary) or guess.shape != (batch, n, vocabulary):
        raise ValueError(
            f"target and guess must be [B, n + 1, V] and [B, n, V] for drafts [B, n], got {tuple(target.shape)} "
            f"and {tuple(guess.shape)} for {tuple(draft.shape)}; the target looks one step further"
        )
    kinds = {"draft": INTS, "target": FLOATS, "guess": FLOATS, "seed": (torch.int64,), "position": INTS}
    for name, tensor in zip(kinds, (draft, target, guess, seed, position), strict=True):
        if tensor.dtype not in kinds[name]:
            listed = " or ".join(str(kind) for kind in kinds[name])
            raise ValueError(f"{name} must be {listed}, got {tensor.dtype}; convert it")
        if name in ("seed", "position") and tensor.shape != (batch,):
            raise ValueError(f"{name} must hold {batch} numbers, got {tuple(tensor.shape)}; one a request")
        if not tensor.is_contiguous():
            raise ValueError(f"{name} must be contiguous, got strides {tensor.stride()}; call .contiguous()")


def verify(draft, target, guess, seed, position, workspace: Workspace | None = None) -> Verified:
    """draft int32 [B, n], target and guess probabilities of any float type, seed int64 [B], position int32 [B].

    A draft outside 0 .. V - 1 (say -1, where a request has fewer) is never accepted, and the target alone replaces
    it. A target row below the draft's everywhere isn't a distribution, and a draw from it gives -1.
    """
    _check(draft, target, guess, seed, position)
    batch, n = draft.shape
    vocabulary = target.shape[-1]
    w = workspace or Workspace.of(batch, vocabulary, draft.device)
    w.check(batch, vocabulary)
    tokens = torch.empty(batch, n + 1, dtype=torch.int32, device=draft.device)
    accepted = torch.empty(batch, dtype=torch.int32, device=draft.device)
    blocks = triton.cdiv(vocabulary, BLOCK)
    tiles = max(1, blocks * batch // PROGRAMS)
    splits = triton.cdiv(blocks, tiles)
    verify_kernel[(splits, batch)](
        draft,
        target,
        guess,
        seed,
        position,
        w.lead,
        w.winner,
        w.arrived,
        tokens,
        accepted,
        vocabulary,
        tiles,
        splits,
        DRAFTS=n,
        N=max(2, triton.next_power_of_2(n + 1)),
        BLOCK=BLOCK,
        SPLITS=triton.next_power_of_2(splits),
    )
    return Verified(tokens, accepted)
