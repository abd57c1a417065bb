"""Compute serving under load, with the cost of queues, prompts that disturb decoding, and transfers between two pools."""

import math
import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from kernels import require
from kernels.machines import Machine
from kernels.next_bottleneck.cost_chain import Transformer
from kernels.next_bottleneck.cost_metrics import percentile

FIRST_TOKEN_S, BETWEEN_S = (
    0.5,
    0.05,
)  # what "Performance Engineering" calls acceptable, and comfortable to read


def in_flight(rate: float, time_s: float) -> float:
    """Return how many requests are in a system that each spends `time_s` in, by Little's law."""
    require.not_negative(rate=rate, time_s=time_s)
    return rate * time_s


def waiting_s(load: float, service_s: float, variation: float = 1.0) -> float:
    """Return the mean wait before a single server, load / (1 - load) services if their times vary as the exponential.

    `variation` is the variance of a service over its squared mean: 0 if all take as long, and half the wait.
    """
    require.share(load=load)
    require.positive(service_s=service_s)
    require.not_negative(variation=variation)
    return math.inf if load == 1 else load / (1 - load) * (1 + variation) / 2 * service_s


@dataclass(frozen=True)
class Server:
    """Hold a replica's costs for a step. It reads the weights while it computes, then reads the caches."""

    weights_s: float  # to read every weight once
    token_s: float  # to multiply one token by every weight
    cached_s: float  # to read one token of one request's cache

    @property
    def free_tokens(self) -> float:
        """Return how many tokens a step computes in the time that it reads its weights."""
        return self.weights_s / self.token_s

    def step_s(self, tokens: float, cached: float) -> float:
        """Return the seconds of a step with `tokens` new tokens and `cached` old ones."""
        return max(self.weights_s, tokens * self.token_s) + cached * self.cached_s


def server(
    model: Transformer,
    machine: Machine,
    *,
    devices: int = 1,
    weight_bits: float = 16,
    kv_bits: float = 16,
    reached: float = 0.6,
) -> Server:
    """Return a replica's times at a share of its machines' ceilings. Links, launches and scores are left out."""
    require.count(devices=devices)
    require.positive(weight_bits=weight_bits, kv_bits=kv_bits, reached=reached)
    require.share(reached=reached)
    bandwidth = machine.bandwidth * devices * reached
    return Server(
        model.linear_parameters * weight_bits / 8 / bandwidth,
        2 * model.linear_parameters / (machine.rate("fp16") * devices * reached),
        model.cached_per_token * kv_bits / 8 / bandwidth,
    )


@dataclass(frozen=True)
class Request:
    arrival_s: float
    prompt: int
    output: int


@lru_cache(maxsize=64)
def requests(count: int, prompt: int, output: int, seed: int = 0) -> tuple[Request, ...]:
    """Draw requests that arrive at random, one a second. Lengths scatter by a factor of two around their mean."""
    require.count(count=count, prompt=prompt, output=output)
    rng, now, drawn = random.Random(seed), 0.0, []
    for _ in range(count):
        now += rng.expovariate(1.0)
        lengths = (max(1, round(mean * rng.uniform(0.5, 1.5))) for mean in (prompt, output))
        drawn.append(Request(now, *lengths))
    return tuple(drawn)


@dataclass(frozen=True)
class Served:
    """Hold one request's seconds to its first token, between its tokens, and until its last."""

    first_token_s: float
    between_s: float
    total_s: float


@dataclass(frozen=True)
class Run:
    served: tuple[Served, ...]
    gaps: tuple[
        tuple[float, int], ...
    ]  # seconds of a step, and how many requests waited that long for a token
    ended_s: float

    @property
    def rate(self) -> float:
        """Return the requests served a second."""
        return len(self.served) / self.ended_s

    def first_token_s(self, share: float) -> float:
        """Return a percentile of the time to the first token."""
        return percentile([one.first_token_s for one in self.served], share)

    def gap_s(self, share: float) -> float:
        """Return a percentile of the time between two tokens, over all tokens."""
        total, seen = sum(n for _, n in self.gaps), 0
        for gap_s, n in sorted(self.gaps):
            seen += n
            if seen >= share * total:
                return gap_s
        return 0.0

    def mean_gap_s(self, share: float) -> float:
        """Return a percentile of the mean time between a request's tokens, over all requests."""
        return percentile([one.between_s for one in self.served], share)

    def in_time(self, first_token_s: float = FIRST_TOKEN_S, between_s: float = BETWEEN_S) -> float:
        """Return the share of the requests that kept both promises."""
        good = sum(one.first_token_s <= first_token_s and one.between_s <= between_s for one in self.served)
        return good / len(self.served)

    def goodput(self, first_token_s: float = FIRST_TOKEN_S, between_s: float = BETWEEN_S) -> float:
        """Return the requests a second that kept both promises."""
        return self.in_time(first_token_s, between_s) * self.rate


def serve(
    replica: Server, drawn: Sequence[Request], *, rate: float = 1.0, batch: int = 64, chunk: int = 0
) -> Run:
    """Serve requests in order of arrival, `rate` requests a second, with continuous batching.

    A step gives each running request a token and computes `chunk` tokens of the waiting prompts, or, with chunk 0,
    the whole next prompt. At most `batch` requests run.
    """
    require.not_empty(drawn=drawn)
    require.positive(rate=rate)
    require.count(batch=batch)
    require.whole(chunk=chunk)
    waiting = deque((one.arrival_s / rate, one.prompt, one.output) for one in drawn)
    prompts: deque[list] = deque()  # in work: arrival, prompt, output, tokens of the prompt that are left
    ends: dict[
        int, list
    ] = {}  # step -> requests whose last token it makes: arrival, first token, output, context
    now, step, running, context, served, gaps = 0.0, 0, 0, 0, [], []
    while waiting or prompts or running:
        if not prompts and not running:
            now = max(now, waiting[0][0])
        while waiting and waiting[0][0] <= now and running + len(prompts) < batch:
            arrival_s, prompt, output = waiting.popleft()
            prompts.append([arrival_s, prompt, output, prompt])
        left = chunk or (prompts[0][3] if prompts else 0)
        computed, read, done = 0, 0, []
        for one in prompts:
            if not left:
                break
            take = min(left, one[3])
            left, computed, read = left - take, computed + take, read + one[1] - one[3]
            one[3] -= take
            done += [one] if one[3] == 0 else []
        took_s = replica.step_s(running + computed, context + read)
        now, step = now + took_s, step + 1
        if running:
            gaps.append((took_s, running))
        context += running
        for arrival_s, first_s, output, length in ends.pop(step, ()):
            running, context = running - 1, context - length
            served.append(Served(first_s - arrival_s, (now - first_s) / (output - 1), now - arrival_s))
        for arrival_s, prompt, output, _ in done:
            prompts.popleft()
            if output == 1:
                served.append(Served(now - arrival_s, 0.0, now - arrival_s))
                continue
            running, context = running + 1, context + prompt + 1
            ends.setdefault(step + output - 1, []).append((arrival_s, now, output, prompt + output))
    return Run(tuple(served), tuple(gaps), now)


@dataclass(frozen=True)
class Limit:
    """Hold the most that a replica serves, and the step in which it does."""

    rate: float  # requests a second
    running: float
    step_s: float


def limit(replica: Server, *, prompt: int, output: int, batch: int, chunk: int = 0) -> Limit:
    """Return the rate beyond which a queue never ends: a full batch, or all prompts that the chunks admit."""
    require.count(prompt=prompt, output=output, batch=batch)
    require.whole(chunk=chunk)
    piece = chunk or prompt
    each = min(batch / output, piece / prompt)  # requests that end in a step, replaced by the same number
    running = each * output
    cached = running * (prompt + output / 2)
    with_piece = each * prompt / piece  # share of the steps that compute a piece of a prompt
    step_s = with_piece * replica.step_s(running + piece, cached)
    step_s += (1 - with_piece) * replica.step_s(running, cached)
    return Limit(each / step_s, running, step_s)


@dataclass(frozen=True)
class Handover:
    """Hold a prompt's cache on its way from the GPUs that computed it to the GPUs that decode."""

    cache_bytes: float
    prefill_s: float
    sent_s: float
    layers: int

    @property
    def by_layer_s(self) -> float:
        """Return what still shows if each layer's cache leaves while the next layer is computed."""
        done_s = max(self.prefill_s + self.sent_s / self.layers, self.prefill_s / self.layers + self.sent_s)
        return done_s - self.prefill_s


def handover(
    model: Transformer, replica: Server, *, prompt: int, link_byte_s: float, kv_bits: float = 16
) -> Handover:
    """Return the cost of computing a prompt on one pool of GPUs and decoding on another."""
    require.count(prompt=prompt)
    require.positive(link_byte_s=link_byte_s, kv_bits=kv_bits)
    cache_bytes = model.cached_per_token * prompt * kv_bits / 8
    return Handover(cache_bytes, replica.step_s(prompt, 0), cache_bytes / link_byte_s, model.layers)


def pools(replica: Server, *, rate: float, prompt: int, output: int, batch: int) -> tuple[float, float]:
    """Return how many replicas a rate keeps busy with prompts, and with decoding in batches of `batch`."""
    require.positive(rate=rate)
    require.count(prompt=prompt, output=output, batch=batch)
    decoding_s = replica.step_s(batch, batch * (prompt + output / 2)) * output / batch
    return rate * replica.step_s(prompt, 0), rate * decoding_s
