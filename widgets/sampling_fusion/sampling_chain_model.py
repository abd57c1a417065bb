"""Compute a sampling step: the tokens that each rule keeps of a small vocabulary, and the chain's cost on a large one."""

from dataclasses import dataclass, replace

from kernels.machines import machine
from kernels.sampling_fusion import cost
from kernels.sampling_fusion import cost_distribution as small

WORDS = ("mat", "sofa", "floor", "bed", "chair", "roof", "table", "moon", "dog", "idea", "seven", "oboe")
LOGITS = (3.2, 2.8, 2.5, 2.0, 1.7, 1.3, 0.9, 0.2, -0.3, -1.0, -1.6, -2.4)


@dataclass(frozen=True)
class Step:
    name: str
    launches: int
    launch_s: float
    memory_s: float


@dataclass(frozen=True)
class Chain:
    launches: int
    bytes_moved: float
    launch_s: float
    memory_s: float
    time_s: float
    gpus: float  # replicas' worth of time, over the fleet
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Result:
    row: tuple[small.Ranked, ...]
    kept: int
    temperature: float
    top_k: int
    top_p: float
    min_p: float
    min_p_level: float  # the share below which min-p cuts
    u: float
    drawn: int
    batch: int
    vocabulary: int
    machine: str
    launch_us: float
    graph: bool
    tokens_s: float
    replicas: int
    naive: Chain
    fused: Chain
    speedup: float
    gpus_saved: float
    gpus_of_each_us: float
    longest_s: float  # the chain with every rule, at the slowest launch, which the axis must hold


PENALTIES = ("grammar", "bias", "history")
DEAREST_LAUNCH_US = 7.0
RANKED = 50  # tokens that the fused kernel looks for in a row


def run(
    launch_us, batch, temperature, top_p, top_k, min_p, u, vocabulary, penalties, graph, tokens_s, replicas, machine_name
) -> Result:  # fmt: skip
    row = small.distribution(LOGITS, temperature, top_k, top_p, min_p)
    target = replace(machine(machine_name), launch_s=launch_us * 1e-6)

    def chain(parts: list[tuple[str, int, float]]) -> Chain:
        """Return each part's launches and bytes. A captured graph is launched once, with the first."""
        steps = []
        for i, (name, launches, moved) in enumerate(parts):
            paid = (i == 0) if graph else launches
            steps.append(Step(name, launches, paid * target.launch_s, moved / target.bandwidth))
        launches, moved = sum(part[1] for part in parts), sum(part[2] for part in parts)
        time = cost.seconds(moved, launches, target, graph)
        gpus = cost.Fleet(time, tokens_s, replicas).gpus
        spent = sum(step.launch_s for step in steps), moved / target.bandwidth
        return Chain(launches, moved, *spent, time, gpus, tuple(steps))

    # a rule that keeps all tokens is off, and its kernel is not launched
    on = {"top_k": top_k < len(LOGITS), "top_p": top_p < 1, "min_p": min_p > 0}
    steps = cost.naive_chain(batch, vocabulary, **on, **dict.fromkeys(PENALTIES, penalties))
    naive = chain([(one.name, one.launches, one.bytes) for one in steps])
    masks = {"masks": 4, "marked": 200} if penalties else {}
    reads = 1.0 if on["top_k"] else cost.reads_of_nucleus(top_p)
    fused = chain(
        [("one fused kernel", 1, cost.fused(batch, vocabulary, k=RANKED, reads=reads, **masks).total)]
    )
    every = cost.naive_chain(batch, vocabulary, **dict.fromkeys(PENALTIES, True))
    dearest = replace(target, launch_s=DEAREST_LAUNCH_US * 1e-6)
    saved = cost.Fleet(naive.time_s, tokens_s, replicas).saved(fused.time_s)
    return Result(
        tuple(row), sum(not one.cut_by for one in row), temperature, top_k, top_p, min_p, min_p * row[0].tempered,
        u, small.draw(row, u), batch, vocabulary, machine_name, launch_us, graph, tokens_s, replicas, naive, fused,
        naive.time_s / fused.time_s, saved, 1e-6 * tokens_s * replicas,
        cost.seconds(cost.chain_bytes(every), cost.launches(every), dearest),
    )  # fmt: skip
