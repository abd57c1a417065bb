"""Count what sampling costs: the naive chain rule by rule, the fused kernel's bytes, and 200 us over a fleet.

Numbers are for B rows of V logits of `elem` bytes. Small columns (temperatures, seeds) are counted too.
"""

import math
from dataclasses import dataclass

from kernels import require
from kernels.machines import Machine

GROUP = 64  # tokens that share one maximum in the fused kernel
FP32, INT32, INT64 = 4, 4, 8
COLUMNS = 6 * FP32 + INT32 + INT64 + INT32  # a request's parameters
SORT_PASSES = 4  # 32-bit keys, 8 bits a pass of a radix sort
SCAN_READS = 2  # a running sum over many programs, once for their totals, once for the sums
TOKENS = INT32


@dataclass(frozen=True)
class Step:
    """Hold one rule of the naive chain."""

    name: str
    launches: int
    read: float  # bytes
    written: float

    @property
    def bytes(self) -> float:
        return self.read + self.written


def naive_chain(
    batch: int,
    vocabulary: int,
    elem: int = 4,
    *,
    grammar=False,
    bias=False,
    history=False,
    top_k=True,
    top_p=True,
    min_p=True,
    inverse=False,
) -> list[Step]:
    """Return every launch of `naive_chain.sample`, with the bytes that it reads and writes. The sort is a radix sort.

    Without top_k, top_p or min_p it is the chain of a server that skips unrequested rules. With neither top-k nor
    top-p nothing is ranked. A row's maximum replaces the sort, and no token is gathered.
    """
    require.count(batch=batch, vocabulary=vocabulary, elem=elem)
    n = batch * vocabulary
    x, bits = n * FP32, batch * -(-vocabulary // 32) * INT32
    pair, ranked = FP32 + INT64, top_k or top_p  # a key and its token, as torch.sort carries them
    steps = [Step("clean", 1, n * elem, x)]
    if grammar:
        steps.append(Step("grammar mask", 1, x + bits, x))
    if bias:
        steps.append(Step("bias and bans", 1, 2 * x, x))
    if history:
        steps += [Step("repetition penalty", 1, x + bits, x), Step("frequency, presence", 1, 2 * x, x)]
    if ranked:
        steps.append(Step("sort", SORT_PASSES, SORT_PASSES * n * pair, SORT_PASSES * n * pair))
    else:
        steps.append(Step("row maximum", 1, x, batch * FP32))
    steps.append(Step("temperature, softmax", 1, x, x))
    if top_k:
        steps.append(Step("top-k", 1, 0, x))
    if top_p:
        steps += [Step("running sum", 1, SCAN_READS * x, x), Step("top-p", 1, x, 0)]
    if min_p:
        steps.append(Step("min-p", 1, x, x))
    if inverse:
        steps += [Step("running sum", 1, SCAN_READS * x, x), Step("inverse CDF", 1, 2 * x, x)]
    else:
        steps.append(Step("noise", 1, x + (n * INT64 if ranked else 0), x))
    steps.append(Step("argmax", 1, x, batch * (FP32 + INT64)))
    if ranked:
        steps.append(Step("gather", 1, batch * INT64, batch * INT64))
    return steps


def launches(steps: list[Step]) -> int:
    return sum(step.launches for step in steps)


def chain_bytes(steps: list[Step]) -> float:
    return sum(step.bytes for step in steps)


@dataclass(frozen=True)
class Fused:
    """Hold the bytes of one fused launch, by purpose."""

    logits: float  # the one read
    tables: float  # bit masks, and the bias or counts where a bit is set (a 32-byte sector each, at most)
    maxima: float  # written by all programs, read by the last of each row
    chosen: float  # the second look into the best groups
    short: float  # the short list, written and read
    columns: float  # parameters in, tokens out
    extra_reads: float = 0.0  # further reads of a row that has no top-k

    @property
    def total(self) -> float:
        return (
            self.logits
            + self.tables
            + self.maxima
            + self.chosen
            + self.short
            + self.columns
            + self.extra_reads
        )

    @property
    def passes(self) -> float:
        """Return how often the logits are read, counting parts as parts."""
        return (self.logits + self.chosen + self.extra_reads) / self.logits


def compulsory_bytes(batch: int, vocabulary: int, elem: int = 4, masks: int = 0) -> float:
    """Return the bytes that no sampler can avoid: the logits once, `masks` bit masks, the parameters, the tokens."""
    require.count(batch=batch, vocabulary=vocabulary, elem=elem)
    words = -(-vocabulary // 32)
    return batch * (vocabulary * elem + masks * words * INT32 + COLUMNS + TOKENS)


def fused(
    batch: int,
    vocabulary: int,
    elem: int = 4,
    k: int = 50,
    masks: int = 0,
    marked: int = 0,
    sums=False,
    reads: float = 1.0,
) -> Fused:
    """Count the fused kernel. k tokens of each row are kept, and `marked` bits are set in a row's masks for bias and history.

    Count the fused kernel. `reads` of the whole row are one with a top-k, `reads_of_nucleus` with top-p alone.
    """
    require.count(k=k)
    require.positive(reads=reads)
    require.whole(masks=masks, marked=marked)
    words, groups = -(-vocabulary // 32), -(-vocabulary // GROUP)
    k = min(k, vocabulary)
    once = compulsory_bytes(batch, vocabulary, elem)
    logits = batch * vocabulary * elem
    return Fused(
        logits=logits,
        tables=batch * (masks * words * INT32 + marked * 32),
        maxima=batch * groups * 2 * FP32 * (2 if sums else 1),
        chosen=batch * min(min(k, groups) * GROUP, vocabulary) * elem,
        short=batch * (2 * min(k, groups) * INT32 + 2 * k * (FP32 + INT32)),
        columns=once - logits,
        extra_reads=(reads - 1) * logits,
    )


def reads_of_nucleus(top_p: float) -> float:
    """Return the reads of a row with top-p alone, on average over draws, when no token is large.

    One read draws from all tokens. Each further read checks whether the draw is kept, and draws among the better tokens.
    The mass above shrinks by a uniform factor each time, so it takes 1 + ln(1/p) reads on average until it is below
    p.
    """
    require.positive(top_p=top_p)
    require.at_most(1, "1 keeps everything", top_p=top_p)
    return 1.0 if top_p == 1 else 2 + math.log(1 / top_p)


def bisection_rounds(keys: int = 2**32, pivots: int = 3) -> int:
    """Return the rounds until a threshold is found among `keys` integers, at worst. Each round cuts by pivots + 1."""
    require.count(keys=keys, pivots=pivots)
    rounds = 0
    while keys > 1:
        keys, rounds = -(-keys // (pivots + 1)), rounds + 1
    return rounds


def seconds(n_bytes: float, n_launches: float, machine: Machine, graph: bool = False) -> float:
    """Return the time of launch after launch, each paid in full. A captured graph pays for one."""
    require.not_negative(n_bytes=n_bytes, n_launches=n_launches)
    return n_bytes / machine.bandwidth + (min(1, n_launches) if graph else n_launches) * machine.launch_s


@dataclass(frozen=True)
class Fleet:
    """Hold the cost of a sampling chain to a fleet. It runs once per token on every replica."""

    chain_s: float
    tokens_s: float  # decode steps a second on one replica
    replicas: int

    def __post_init__(self):
        require.positive(chain_s=self.chain_s, tokens_s=self.tokens_s)
        require.count(replicas=self.replicas)

    @property
    def share(self) -> float:
        """Return sampling's share of each replica's time. 200 us at 100 steps a second are 2%."""
        return self.chain_s * self.tokens_s

    @property
    def gpus(self) -> float:
        """Return the replicas' worth of time that goes into sampling, 20 for 1000 replicas."""
        return self.share * self.replicas

    def saved(self, fused_s: float) -> float:
        """Return the number of replicas that a faster chain gives back."""
        require.not_negative(fused_s=fused_s)
        return (self.chain_s - fused_s) * self.tokens_s * self.replicas
