"""Count the overhead term: the cost of launching kernels, what a graph replays, and what a compiler saves."""

from collections.abc import Mapping
from dataclasses import dataclass

from kernels import parts, require

GRAPH_FIRST_SHARE = 0.10  # launch gaps above this share of the time call for CUDA Graphs before anything else
COMPILE_CUTS = {"element-wise": 0.70, "launches": 0.80}  # the worked example of "Performance Engineering"


def launch_overhead_s(kernels: float, launch_s: float, layers: int = 1) -> float:
    """Return the time of launches one after another, each paid in full."""
    require.not_negative(kernels=kernels, launch_s=launch_s)
    require.count(layers=layers)
    return kernels * launch_s * layers


@dataclass(frozen=True)
class LaunchShare:
    overhead_s: float
    work_s: float

    @property
    def total_s(self) -> float:
        return self.overhead_s + self.work_s

    @property
    def share(self) -> float:
        """Return the share of the wall clock. A GPU that computes twice as fast makes it larger."""
        return self.overhead_s / self.total_s


def launch_share(kernels: float, launch_s: float, work_s: float) -> LaunchShare:
    """Return the time of launches that nothing hides, together with the time of the work itself."""
    require.positive(work_s=work_s)
    return LaunchShare(launch_overhead_s(kernels, launch_s), work_s)


def ahead_gaps_s(kernels: int, launch_s: float, work_s: float) -> float:
    """Return the GPU's waiting where the host runs ahead of equally long kernels: only the first launch shows, and what
    each later one exceeds its kernel by."""
    require.count(kernels=kernels)
    require.not_negative(launch_s=launch_s, work_s=work_s)
    return launch_s + (kernels - 1) * max(0.0, launch_s - work_s / kernels)


def graph_pass_s(replay_s: float = 10e-6, graphs: int = 1) -> float:
    """Return the time of a pass in a captured graph, which costs one launch, however many kernels it holds."""
    require.not_negative(replay_s=replay_s)
    require.count(graphs=graphs)
    return replay_s * graphs


def graphs_first(overhead_s: float, total_s: float) -> bool:
    """Return whether launch gaps exceed 10% of the time, which by rule of thumb calls for a graph first."""
    require.not_negative(overhead_s=overhead_s)
    require.positive(total_s=total_s)
    return overhead_s / total_s > GRAPH_FIRST_SHARE


@dataclass(frozen=True)
class CompileDividend:
    before_s: dict[str, float]  # per token, by part
    after_s: dict[str, float]

    @property
    def tokens_s(self) -> float:
        return 1 / sum(self.after_s.values())

    @property
    def speedup(self) -> float:
        return sum(self.before_s.values()) / sum(self.after_s.values())

    @property
    def bottleneck(self) -> str:
        return parts.largest(self.after_s)

    @property
    def bottleneck_share(self) -> float:
        return parts.shares(self.after_s)[self.bottleneck]


def compile_dividend(
    tokens_s: float, shares: Mapping[str, float], cuts: Mapping[str, float]
) -> CompileDividend:
    """Return a decode rate whose parts the compiler cuts (0.7 removes 70% of a part)."""
    require.positive(tokens_s=tokens_s)
    before_s = parts.split(1 / tokens_s, shares)
    after_s = parts.cut(before_s, cuts)
    require.positive(**{"time left after the cuts": sum(after_s.values())})
    return CompileDividend(before_s, after_s)


def calls_to_amortise(compile_s: float, before_s: float, after_s: float) -> float:
    """Return the calls after which compiling has paid for itself, infinite if it made nothing faster."""
    require.not_negative(compile_s=compile_s)
    require.positive(before_s=before_s, after_s=after_s)
    return compile_s / (before_s - after_s) if before_s > after_s else float("inf")
