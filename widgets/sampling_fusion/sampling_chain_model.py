"""Compute the cost of a sampling step as a chain of kernels and as one kernel."""

from dataclasses import dataclass, replace

from kernels.machines import machine
from kernels.sampling_fusion import cost


@dataclass(frozen=True)
class Step:
    name: str
    launches: int
    launch_s: float
    memory_s: float
    time_s: float


@dataclass(frozen=True)
class Chain:
    launches: int
    paid: int  # launches that cost time, because a captured graph is launched once
    bytes_moved: float
    launch_s: float
    memory_s: float
    time_s: float
    gpus: float  # replicas' worth of time, over the fleet
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Result:
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
    fused_reads: float  # how often the one kernel reads a row
    saved_launch_s: float
    saved_memory_s: float
    saved_s: float
    memory_share: float  # of what is saved
    gpus_saved: float
    gpus_of_each_us: float
    longest_s: float  # the chain with every rule, at the slowest launch, which the axis must hold


PENALTIES = ("grammar", "bias", "history")
DEAREST_LAUNCH_US = 7.0
RANKED = 50  # tokens that the fused kernel looks for in a row
NUCLEUS = 0.9  # the share that top-p keeps


def run(
    launch_us, batch, graph, top_k, top_p, min_p, penalties, vocabulary, tokens_s, replicas, machine_name
) -> Result:
    target = replace(machine(machine_name), launch_s=launch_us * 1e-6)

    def chain(parts: list[tuple[str, int, float]]) -> Chain:
        """Return each part's launches and bytes. A captured graph's only launch is the first part's."""
        steps = []
        for i, (name, launches, moved) in enumerate(parts):
            paid = launches if not graph else 1 if i == 0 else 0
            time = cost.seconds(moved, paid, target)
            steps.append(Step(name, launches, paid * target.launch_s, moved / target.bandwidth, time))
        launches, moved = sum(part[1] for part in parts), sum(part[2] for part in parts)
        time = cost.seconds(moved, launches, target, graph)
        gpus = cost.Fleet(time, tokens_s, replicas).gpus
        spent = sum(step.launch_s for step in steps), moved / target.bandwidth
        return Chain(launches, 1 if graph else launches, moved, *spent, time, gpus, tuple(steps))

    # the kernel of a rule that is off is not launched
    on = {"top_k": top_k, "top_p": top_p, "min_p": min_p}
    steps = cost.naive_chain(batch, vocabulary, **on, **dict.fromkeys(PENALTIES, penalties))
    naive = chain([(one.name, one.launches, one.bytes) for one in steps])
    masks = {"masks": 4, "marked": 200} if penalties else {}
    reads = cost.reads_of_nucleus(NUCLEUS) if top_p and not top_k else 1.0
    fused = chain(
        [("one fused kernel", 1, cost.fused(batch, vocabulary, k=RANKED, reads=reads, **masks).total)]
    )
    every = cost.naive_chain(batch, vocabulary, **dict.fromkeys(PENALTIES, True))
    dearest = replace(target, launch_s=DEAREST_LAUNCH_US * 1e-6)
    launch_s, memory_s = naive.launch_s - fused.launch_s, naive.memory_s - fused.memory_s
    return Result(
        batch, vocabulary, machine_name, launch_us, graph, tokens_s, replicas, naive, fused,
        naive.time_s / fused.time_s, reads, launch_s, memory_s, launch_s + memory_s, memory_s / (launch_s + memory_s),
        cost.Fleet(naive.time_s, tokens_s, replicas).saved(fused.time_s), 1e-6 * tokens_s * replicas,
        cost.seconds(cost.chain_bytes(every), cost.launches(every), dearest),
    )  # fmt: skip
