"""Follow the 70B playbook round by round: the source's reported times, and those that its own shares and cuts give.

Round 1 does not add up: a 38% share made 45% shorter turns 85 ms into 70, not 48, which even a GEMM of no time at all
(53 ms) would miss. Rounds 2 and 3 follow from the reported round before. The baseline's 280 tokens/s at 85 ms are 24
requests in flight, although the largest batch is stated as 4.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernels import parts, require
from kernels.next_bottleneck.cost_speculation import speculation

BASELINE_S = 85e-3
BASELINE_SHARES = {
    "GEMM": 0.38,
    "attention": 0.24,
    "element-wise": 0.14,
    "all-reduce": 0.12,
    "launch gaps": 0.12,
}
TARGETS = {"first token": 0.5, "between tokens": 0.05, "tokens_s": 1000.0}
DRAFTS, ACCEPTANCE, DRAFT_S = 5, 0.78, 4e-3


@dataclass(frozen=True)
class Round:
    name: str
    cuts: dict[str, float]  # share of each part that the round removes
    speculates: bool
    batch: int  # largest admitted
    reported_between_tokens_s: float
    reported_tokens_s: float | None
    reported_first_token_s: float | None


ROUNDS = (
    Round("baseline: fp16, eager", {}, False, 4, 85e-3, 280, 1.2),
    Round("precision: int4 weights, int8 cache", {"GEMM": 0.45}, False, 32, 48e-3, 720, None),
    Round(
        "fusion: compile, FlashAttention-2, graphs",
        {"attention": 0.30, "element-wise": 1 - 0.04 / 0.14, "launch gaps": 1.0},
        False,
        32,
        32e-3,
        1050,
        0.38,
    ),
    Round("speculation: 5 drafts", {}, True, 15, 10.3e-3, None, None),
)


@dataclass(frozen=True)
class RoundResult:
    round: Round
    parts_s: dict[str, float]  # one step of the target model, by arithmetic
    between_tokens_s: float  # by arithmetic
    from_reported_s: float  # by arithmetic from the reported figure of the round before

    @property
    def contradiction(self) -> float:
        """Return the time by arithmetic over the reported time, 1 where they agree."""
        return self.between_tokens_s / self.round.reported_between_tokens_s

    @property
    def implied_requests(self) -> float | None:
        """Return the requests in flight implied by the reported rate and interval (Little's law)."""
        if self.round.reported_tokens_s is None:
            return None
        return self.round.reported_tokens_s * self.round.reported_between_tokens_s

    @property
    def meets(self) -> dict[str, bool]:
        """Return the targets that the reported figures meet."""
        reported = self.round
        met = {"between tokens": reported.reported_between_tokens_s <= TARGETS["between tokens"]}
        if reported.reported_first_token_s is not None:
            met["first token"] = reported.reported_first_token_s <= TARGETS["first token"]
        if reported.reported_tokens_s is not None:
            met["tokens_s"] = reported.reported_tokens_s >= TARGETS["tokens_s"]
        return met


def _guess(step_s: float, acceptance: float, drafts: int, draft_s: float) -> float:
    return speculation(acceptance, drafts, draft_s, verify_s=step_s).token_s


def playbook(
    baseline_s: float = BASELINE_S,
    shares: Mapping[str, float] | None = None,
    *,
    acceptance: float = ACCEPTANCE,
    drafts: int = DRAFTS,
    draft_s: float = DRAFT_S,
    rounds: Sequence[Round] = ROUNDS,
) -> list[RoundResult]:
    """Apply each round's cuts in turn to the parts of the step. Speculation divides the step at last."""
    now = parts.split(baseline_s, shares or BASELINE_SHARES)
    before_reported = now
    results = []
    for one in rounds:
        now = parts.cut(now, one.cuts)
        scaled = parts.cut(before_reported, one.cuts)
        step_s, chained_s = sum(now.values()), sum(scaled.values())
        if one.speculates:
            step_s = _guess(step_s, acceptance, drafts, draft_s)
            chained_s = _guess(chained_s, acceptance, drafts, draft_s)
        results.append(RoundResult(one, now, step_s, chained_s))
        before_reported = _rescaled(scaled, one.reported_between_tokens_s)
    return results


def _rescaled(parts_s: Mapping[str, float], total_s: float) -> dict[str, float]:
    return {name: share * total_s for name, share in parts.shares(parts_s).items()}


def best_case_s(baseline_s: float, shares: Mapping[str, float], part: str) -> float:
    """Return the step if a part took no time, which no cut of that part alone can beat."""
    now = parts.split(baseline_s, shares)
    require.one_of(tuple(now), part=part)
    return sum(parts.cut(now, {part: 1.0}).values())


COMBINATIONS = (  # one, with another, how they go together, why
    ("FlashAttention", "int8 cache", "adds", "one removes score traffic, the other cache bytes"),
    ("paged cache", "int8 cache", "adds", "less waste and fewer bytes, so the gains multiply"),
    ("int4 weights", "larger batch", "adds", "the memory that weights leave admits more requests"),
    ("element-wise fusion", "CUDA Graphs", "adds", "fewer kernels, and no launch for each"),
    ("CUDA Graphs", "torch.compile reduce-overhead", "repeats", "that mode already captures a graph"),
    ("int4 weights", "more bandwidth savings", "repeats", "once arithmetic is the limit, bytes save little"),
    ("speculation", "large batch", "conflicts", "the pass that checks guesses is no longer free"),
    ("CUDA Graphs", "changing shapes", "conflicts", "a graph replays the shapes it was captured with"),
)


def combined_speedup(shares: Mapping[str, float], cuts: Mapping[str, float]) -> float:
    """Return the speed-up of cuts to separate parts together, which exceeds the product of their single speed-ups."""
    before = parts.split(1.0, shares)
    left = sum(parts.cut(before, cuts).values())
    require.positive(**{"time left after the cuts": left})
    return 1 / left


def shared_saving(first: float, second_alone: float, second_after: float) -> float:
    """Share of the original time that both techniques would have removed: 0 if they act on separate parts.

    Speedups do not multiply when this is above 0: 3.1x, then 1.4x where 1.9x was expected, share 38%.
    """
    require.positive(first=first, second_alone=second_alone, second_after=second_after)
    return (1 - 1 / first) + (1 - 1 / second_alone) - (1 - 1 / (first * second_after))
