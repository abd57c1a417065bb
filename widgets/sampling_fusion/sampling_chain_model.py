"""A sampling step: what each rule keeps of a small vocabulary, and what the chain costs on a large one."""

from dataclasses import dataclass

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
    tokens_s: float
    replicas: int
    naive: Chain
    fused: Chain
    speedup: float
    gpus_saved: float
    gpus_of_each_us: float


def run(
    temperature, top_k, top_p, min_p, u, batch, vocabulary, penalties, graph, tokens_s, replicas, machine_name
) -> Result:
    row = small.distribution(LOGITS, temperature, top_k, top_p, min_p)
    target = machine(machine_name)

    def chain(parts: list[tuple[str, int, float]]) -> Chain:
        """Each part's launches and bytes; a captured graph is launched once, with the first."""
        steps = []
        for i, (name, launches, moved) in enumerate(parts):
            paid = (i == 0) if graph else launches
            steps.append(Step(name, launches, paid * target.launch_s, moved / target.bandwidth))
        launches, moved = sum(part[1] for part in parts), sum(part[2] for part in parts)
        time = cost.seconds(moved, launches, target, graph)
        gpus = cost.Fleet(time, tokens_s, replicas).gpus
        spent = sum(step.launch_s for step in steps), moved / target.bandwidth
        return Chain(launches, moved, *spent, time, gpus, tuple(steps))

    rules = {"grammar": penalties, "bias": penalties, "history": penalties}
    naive = chain(
        [(one.name, one.launches, one.bytes) for one in cost.naive_chain(batch, vocabulary, **rules)]
    )
    masks = {"masks": 4, "marked": 200} if penalties else {}
    fused = chain([("one fused kernel", 1, cost.fused(batch, vocabulary, k=50, **masks).total)])
    saved = cost.Fleet(naive.time_s, tokens_s, replicas).saved(fused.time_s)
    return Result(
        tuple(row), sum(not one.cut_by for one in row), temperature, top_k, top_p, min_p, min_p * row[0].tempered,
        u, small.draw(row, u), batch, vocabulary, machine_name, tokens_s, replicas, naive, fused,
        naive.time_s / fused.time_s, saved, 1e-6 * tokens_s * replicas,
    )  # fmt: skip
