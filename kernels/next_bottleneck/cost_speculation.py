"""Compute speculative decoding's tokens a round, time a token, and the point where guessing stops paying."""

from collections.abc import Sequence
from dataclasses import dataclass

from kernels import require

ADAPTIVE_BATCH = 16  # "Performance Engineering": speculate only below this batch


def expected_tokens(acceptance: float, drafts: int) -> float:
    """Return the tokens that a round yields, the accepted run and one from the target, (1 - p^(k+1)) / (1 - p)."""
    require.share(acceptance=acceptance)
    require.whole(drafts=drafts)
    return sum(acceptance**i for i in range(drafts + 1))


def accepted_chances(acceptance: float, drafts: int) -> list[float]:
    """Return the chance of 0, 1, ... `drafts` accepted draft tokens. The round yields one token more."""
    require.share(acceptance=acceptance)
    require.whole(drafts=drafts)
    return [acceptance**i * (1 - acceptance) for i in range(drafts)] + [acceptance**drafts]


def acceptance_rate(target: Sequence[float], draft: Sequence[float]) -> float:
    """Return the chance that a guess drawn from `draft` is kept with probability min(1, p / q), the overlap of the two."""
    _distributions(target, draft)
    return sum(min(p, q) for p, q in zip(target, draft, strict=True))


def residual(target: Sequence[float], draft: Sequence[float]) -> list[float]:
    """Return the distribution that replaces a rejected draft token, so that the output is the target's own."""
    _distributions(target, draft)
    left = [max(0.0, p - q) for p, q in zip(target, draft, strict=True)]
    return [one / sum(left) for one in left] if sum(left) > 0 else list(target)


def _distributions(target: Sequence[float], draft: Sequence[float]) -> None:
    require.not_empty(target=target)
    if len(target) != len(draft):
        raise ValueError(
            f"draft must be over the {len(target)} tokens of target, got {len(draft)}; pair them up"
        )
    for name, chances in (("target", target), ("draft", draft)):
        require.share(**{f"{name}[{i}]": chance for i, chance in enumerate(chances)})
        if abs(sum(chances) - 1) > 1e-6:
            raise ValueError(f"{name} must be a distribution, got a sum of {sum(chances):g}; normalise it")


@dataclass(frozen=True)
class Speculation:
    tokens: float  # a round
    draft_s: float
    verify_s: float
    plain_s: float  # a step without guessing

    @property
    def round_s(self) -> float:
        return self.draft_s + self.verify_s

    @property
    def token_s(self) -> float:
        return self.round_s / self.tokens

    @property
    def speedup(self) -> float:
        return self.plain_s / self.token_s

    @property
    def pays(self) -> bool:
        return self.speedup > 1


def speculation(
    acceptance: float, drafts: int, draft_s: float, verify_s: float, plain_s: float | None = None
) -> Speculation:
    """Return speculation with given times, `draft_s` for all guesses of a round and `verify_s` for the check."""
    require.not_negative(draft_s=draft_s)
    require.positive(verify_s=verify_s)
    plain_s = verify_s if plain_s is None else plain_s
    require.positive(plain_s=plain_s)
    return Speculation(expected_tokens(acceptance, drafts), draft_s, verify_s, plain_s)


def break_even_acceptance(
    drafts: int, draft_s: float, verify_s: float, plain_s: float | None = None
) -> float | None:
    """Return the acceptance rate at which drafting neither gains nor loses, or None if it never gains."""
    require.whole(1, drafts=drafts)
    if not speculation(1.0, drafts, draft_s, verify_s, plain_s).pays:
        return None
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if speculation(middle, drafts, draft_s, verify_s, plain_s).pays:
            high = middle
        else:
            low = middle
    return high


def best_drafts(acceptance: float, draft_token_s: float, verify_s: float, most: int = 16) -> int:
    """Return the fastest number of draft tokens a round when each costs `draft_token_s`. 0 means not to draft."""
    require.whole(most=most)
    require.not_negative(draft_token_s=draft_token_s)
    times = [speculation(acceptance, k, k * draft_token_s, verify_s).token_s for k in range(most + 1)]
    return times.index(min(times))


def speculation_at_batch(
    acceptance: float,
    drafts: int,
    batch: int,
    *,
    parameters: float,
    draft_parameters: float,
    peak_flop_s: float,
    bandwidth_byte_s: float,
    param_bytes: float = 2,
    draft_param_bytes: float = 2,
) -> Speculation:
    """Return speculation with times from the roofline. Checking k guesses takes k + 1 times the FLOP and no more bytes."""
    require.count(batch=batch)
    require.whole(drafts=drafts)
    require.positive(parameters=parameters, draft_parameters=draft_parameters, param_bytes=param_bytes)
    require.positive(
        peak_flop_s=peak_flop_s, bandwidth_byte_s=bandwidth_byte_s, draft_param_bytes=draft_param_bytes
    )

    def step_s(size: float, element_bytes: float, tokens: int) -> float:
        return max(size * element_bytes / bandwidth_byte_s, 2 * size * batch * tokens / peak_flop_s)

    draft_s = drafts * step_s(draft_parameters, draft_param_bytes, 1)
    verify_s = step_s(parameters, param_bytes, drafts + 1)
    return speculation(acceptance, drafts, draft_s, verify_s, step_s(parameters, param_bytes, 1))


def free_tokens(peak_flop_s: float, bandwidth_byte_s: float, param_bytes: float = 2) -> float:
    """Return the tokens that a pass computes while it reads the weights, up to which more tokens cost nothing."""
    require.positive(peak_flop_s=peak_flop_s, bandwidth_byte_s=bandwidth_byte_s, param_bytes=param_bytes)
    return peak_flop_s * param_bytes / (2 * bandwidth_byte_s)


def speculation_from_times(
    acceptance: float, drafts: int, batch: int, *, draft_token_s: float, step_s: float, free: float
) -> Speculation:
    """Carry measured times of one request to a batch. A pass takes `step_s` up to `free` tokens, then grows."""
    require.count(batch=batch)
    require.whole(drafts=drafts)
    require.positive(step_s=step_s, free=free)

    def slower(tokens: int) -> float:
        return max(1.0, tokens / free)

    draft_s = drafts * draft_token_s * slower(batch)
    return speculation(
        acceptance, drafts, draft_s, step_s * slower(batch * (drafts + 1)), step_s * slower(batch)
    )


def last_batch_that_pays(
    acceptance: float, drafts: int, most: int, *, draft_token_s: float, step_s: float, free: float
) -> int:
    """Return the largest batch, up to `most`, that drafting still makes faster, or 0 if there is none."""
    require.count(most=most)

    def pays(batch: int) -> bool:
        times = {"draft_token_s": draft_token_s, "step_s": step_s, "free": free}
        return speculation_from_times(acceptance, drafts, batch, **times).pays

    low, high = 0, most + 1  # it never pays again above a batch where it does not
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if pays(middle) else (low, middle)
    return low


def speculate(batch: int, below: int = ADAPTIVE_BATCH) -> bool:
    """Return whether the adaptive policy guesses, at low load, or decodes plainly, at high load."""
    require.count(batch=batch, below=below)
    return batch < below
