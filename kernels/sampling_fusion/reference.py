"""Go from logits to a token, rule by rule, in float64, the meaning that every kernel here is checked against.

In this order, each request with its own parameters:
1. A NaN counts as -inf, +inf as the largest float32. Where the grammar's bit is 0 the logit becomes -inf.
2. Bias is added. A banned token's bias is -inf.
3. Repetition penalty r on tokens of prompt or output, once: a positive logit is divided by r, others multiplied.
4. Minus frequency * (times in the output), minus presence if it was there at all.
5. Tokens are ranked by these logits, of equals the lower id first. -inf takes no part.
6. Temperature 0 takes the first of this ranking. Otherwise w = exp((x - best) / T).
7. Top-k keeps the first k. Top-p keeps every token whose predecessors hold less than p of the kept mass, so
   the token that crosses p stays, and one always stays. Min-p keeps w >= min_p.
8. Gumbel-max takes the kept token with the largest x / T + noise, of equals the lower id. Inverse CDF instead takes
   the last kept token in the ranking whose predecessors hold at most u of the kept mass.
A row with nothing left gives token -1 and log-probability NaN, and other rows never notice.
Log-probabilities are those of step 4's logits over T (T = 1 when greedy), before any filter.
"""

from dataclasses import dataclass

import numpy as np

from kernels.sampling_fusion import philox
from kernels.sampling_fusion.requests import Requests, unpack_bits
from kernels.sampling_fusion.rules import OURS, Rules

LARGEST = float(np.finfo(np.float32).max)
DRAWS = ("gumbel", "inverse")


def clean(logits) -> np.ndarray:
    x = np.asarray(logits).astype(np.float64)
    return np.where(np.isnan(x), -np.inf, np.minimum(x, LARGEST))


def processed(logits, requests: Requests, i: int) -> np.ndarray:
    """Apply steps 1 to 4 to one row."""
    x = clean(logits)
    if requests.allowed is not None:
        x = np.where(unpack_bits(requests.allowed[i : i + 1], x.size)[0], x, -np.inf)
    if (add := requests.added(i)) is not None:
        x = x + add
    if requests.penalised():
        seen, counts = requests.history(i)
        r = float(requests.repetition[i])
        x = np.where(seen, np.where(x > 0, x / r, x * r), x)
        x = x - float(requests.frequency[i]) * counts - float(requests.presence[i]) * (counts > 0)
    return np.minimum(x, LARGEST)


@dataclass(frozen=True)
class Ranking:
    """Hold a row's tokens in order, with the mass before each, and only those that can be drawn at all."""

    token: np.ndarray
    x: np.ndarray
    weight: np.ndarray  # exp((x - best) / T)
    before: np.ndarray  # sum of the weights ranked above

    @classmethod
    def of(cls, x: np.ndarray, temperature: float) -> "Ranking":
        token = np.flatnonzero(x > -np.inf)
        token = token[np.lexsort((token, -x[token]))]
        x = x[token]
        weight = np.exp((x - x[0]) / temperature) if token.size else x
        return cls(token, x, weight, np.concatenate(([0.0], np.cumsum(weight)[:-1]))[: token.size])


def kept(ranking: Ranking, top_k: int, top_p: float, min_p: float, rules: Rules = OURS) -> np.ndarray:
    """Step 7: which ranks survive."""
    n = ranking.token.size
    keep = np.ones(n, bool)
    k = min(top_k or n, n)
    keep[k:] = False
    if rules.top_k_ties == "value" and k:
        keep = ranking.x >= ranking.x[k - 1]
    enough = ranking.weight >= min_p
    if rules.min_p_first:
        keep &= enough
    if top_p < 1 and n:
        mass = ranking.weight[keep].sum() if rules.top_p_of == "kept" else ranking.weight.sum()
        before = ranking.before
        if rules.top_p_ties == "value":
            before = before[np.searchsorted(-ranking.x, -ranking.x)]
        keep &= (before < top_p * mass) | (np.arange(n) == 0)
    return keep & enough


def is_greedy(requests: Requests, i: int, rules: Rules = OURS) -> bool:
    return float(requests.temperature[i]) <= rules.greedy_below


def pick(ranking: Ranking, keep: np.ndarray, seed: int, position: int, draw: str = "gumbel") -> int:
    """Step 8: the rank that is drawn."""
    if draw == "inverse":
        target = philox.row_uniform(seed, position) * ranking.weight[keep].sum()
        before = np.cumsum(np.where(keep, ranking.weight, 0.0)) - np.where(keep, ranking.weight, 0.0)
        return int(np.flatnonzero(keep & (before <= target))[-1])
    with np.errstate(divide="ignore"):
        score = np.log(ranking.weight) + philox.gumbel(seed, position, ranking.token)
    score = np.where(keep, score, -np.inf)
    ties = np.flatnonzero(score == score.max())
    return int(ties[np.argmin(ranking.token[ties])])


@dataclass(frozen=True)
class Sampled:
    tokens: np.ndarray  # int64 [B]
    logprobs: np.ndarray  # float64 [B], of the chosen token
    top_tokens: np.ndarray  # int64 [B, n], best first, -1 where the row has fewer
    top_logprobs: np.ndarray


def log_softmax(x: np.ndarray, temperature: float) -> np.ndarray:
    best = x.max()
    if best == -np.inf:
        return np.full(x.size, np.nan)
    scaled = (x - best) / temperature
    return scaled - np.log(np.exp(scaled).sum())


def sample_row(logits, requests: Requests, i: int, rules: Rules, draw: str, top: int):
    x = processed(logits, requests, i)
    greedy = is_greedy(requests, i, rules)
    temperature = 1.0 if greedy else float(requests.temperature[i])
    ranking = Ranking.of(x, temperature)
    raw = rules.logprobs == "raw"
    logp = log_softmax(clean(logits), 1.0) if raw else log_softmax(x, temperature)
    best = Ranking.of(clean(logits), 1.0) if raw else ranking
    top_tokens = np.full(top, -1)
    top_tokens[: min(top, best.token.size)] = best.token[:top]
    top_logp = np.where(top_tokens >= 0, logp[top_tokens], -np.inf)
    if not ranking.token.size:
        return -1, np.nan, top_tokens, top_logp
    rank = 0
    if not greedy:
        keep = kept(
            ranking, int(requests.top_k[i]), float(requests.top_p[i]), float(requests.min_p[i]), rules
        )
        rank = pick(ranking, keep, int(requests.seed[i]), int(requests.position[i]), draw)
    token = int(ranking.token[rank])
    return token, logp[token], top_tokens, top_logp


def sample(logits, requests: Requests, rules: Rules = OURS, draw: str = "gumbel", top: int = 0) -> Sampled:
    """logits [B, V] of any float type -> tokens, and the log-probabilities of the chosen and of the best `top`."""
    if draw not in DRAWS:
        raise ValueError(f"draw must be one of {', '.join(DRAWS)}, got {draw!r}; pick a listed one")
    if np.shape(logits) != (requests.batch, requests.vocabulary):
        raise ValueError(
            f"logits must be {(requests.batch, requests.vocabulary)}, got {np.shape(logits)}; one row a request"
        )
    rows = [sample_row(logits[i], requests, i, rules, draw, top) for i in range(requests.batch)]
    tokens, logp, top_tokens, top_logp = zip(*rows, strict=True)
    return Sampled(np.array(tokens), np.array(logp), np.stack(top_tokens), np.stack(top_logp))


def verify(draft, target, guess, seed, position) -> tuple[np.ndarray, np.ndarray]:
    """Speculative decoding's rule. draft [B, n], target [B, n + 1, V], guess [B, n, V] -> tokens [B, n + 1], accepted.

    Draft i stays while u_i q_i(d_i) < p_i(d_i). The first rejected one is replaced by a draw from max(p_i - q_i, 0),
    and all after it are dropped (-1). If all stay, one more is drawn from p_{n+1}. An id outside the vocabulary isn't
    a draft. It never stays, and p_i alone replaces it. A NaN never accepts and counts as 0 in the difference.
    """
    draft, target, guess = np.asarray(draft), np.asarray(target, float), np.asarray(guess, float)
    batch, n = draft.shape
    drafted = (draft >= 0) & (draft < target.shape[-1])
    tokens, accepted = np.full((batch, n + 1), -1), np.zeros(batch, int)
    for b in range(batch):
        u = philox.row_uniform(int(seed[b]), int(position[b]), philox.ACCEPT, np.arange(n))
        i, token = np.arange(n), np.where(drafted[b], draft[b], 0)
        stays = drafted[b] & (u * guess[b, i, token] < target[b, i, token])
        stop = accepted[b] = n if stays.all() else int(np.argmin(stays))
        q = guess[b, stop] if stop < n and drafted[b, stop] else 0.0
        left = np.nan_to_num(target[b, stop]) - np.nan_to_num(q)
        tokens[b, :stop] = draft[b, :stop]
        tokens[b, stop] = gumbel_max(left, int(seed[b]), int(position[b]), philox.RESAMPLE)
    return tokens, accepted


def gumbel_max(weight, seed: int, position: int, stream: int) -> int:
    token = np.flatnonzero(weight > 0)
    if not token.size:
        return -1
    return int(token[np.argmax(np.log(weight[token]) + philox.gumbel(seed, position, token, stream))])
