"""Count the way from one node to a fleet: the scaling tax, stragglers, and the costs that a benchmark leaves out."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kernels import require

# "Performance Engineering": production MFU is 10 to 20% below a hero run's, and 30 days become 35 to 40. By
# arithmetic 10 to 20% make 33 to 37.5 days. 40 days are a tax of 25%.
REPORTED_REALITY_TAX = (0.10, 0.20)
REPORTED_PRODUCTION_DAYS = (35, 40)

TIERS = (  # tier, what it measures, what it catches
    (
        "small canaries",
        "8 and 64 GPUs: a scaling curve",
        "changes that bend the curve before the full launch",
    ),
    (
        "fleet baseline",
        "each run's MFU against its architecture's",
        "changes that cost useful work fleet-wide",
    ),
    ("gray failures", "how step times spread over nodes", "one slow node that all others wait for"),
)


def scaling_tax(local_mfu: float, fleet_mfu: float) -> float:
    """Share of one node's efficiency that the fleet loses."""
    require.share(local_mfu=local_mfu, fleet_mfu=fleet_mfu)
    require.positive(local_mfu=local_mfu)
    require.at_most(local_mfu, "a fleet does not beat its node", fleet_mfu=fleet_mfu)
    return 1 - fleet_mfu / local_mfu


def local_step_s(fleet_step_s: float, local_mfu: float, fleet_mfu: float) -> float:
    """Return the step that the fleet would take without the tax."""
    require.positive(fleet_step_s=fleet_step_s)
    return fleet_step_s * (1 - scaling_tax(local_mfu, fleet_mfu))


def step_at_mfu_s(step_s: float, mfu: float, at_mfu: float) -> float:
    """Return the same work's step at another share of the peak. Better use of the hardware shortens the step."""
    require.positive(step_s=step_s, mfu=mfu, at_mfu=at_mfu)
    require.share(mfu=mfu, at_mfu=at_mfu)
    return step_s * mfu / at_mfu


def added_step_s(node_step_s: float, local_mfu: float, fleet_mfu: float) -> float:
    """Return the seconds that a fleet adds to its node's step, from one measurement of node and fleet."""
    require.positive(node_step_s=node_step_s, fleet_mfu=fleet_mfu)
    scaling_tax(local_mfu, fleet_mfu)  # refuses a fleet that beats its node
    return step_at_mfu_s(node_step_s, local_mfu, fleet_mfu) - node_step_s


def added_at_s(added_s: float, measured_gpus: int, gpus: float, node_gpus: int = 8) -> float:
    """Return the added seconds for another fleet. Each doubling beyond a node adds equally many, whatever a node takes."""
    require.not_negative(added_s=added_s)
    require.count(measured_gpus=measured_gpus, node_gpus=node_gpus)
    require.positive(gpus=gpus)
    if measured_gpus <= node_gpus:
        raise ValueError(
            f"measured_gpus must be above one node's {node_gpus}, got {measured_gpus}; a fleet adds beyond it"
        )
    return added_s * max(0.0, math.log2(gpus / node_gpus)) / math.log2(measured_gpus / node_gpus)


def growth_per_doubling(local_mfu: float, fleet_mfu: float, gpus: int, node_gpus: int = 8) -> float:
    """Return how much each doubling beyond a node adds to the step, in steps of one node, from one measurement."""
    require.count(gpus=gpus, node_gpus=node_gpus)
    require.positive(fleet_mfu=fleet_mfu)
    if gpus <= node_gpus:
        raise ValueError(f"gpus must be above one node's {node_gpus}, got {gpus}; the tax begins beyond it")
    return scaling_tax(local_mfu, fleet_mfu) / (fleet_mfu / local_mfu) / math.log2(gpus / node_gpus)


def fleet_mfu(local_mfu: float, gpus: float, growth_per_doubling: float, node_gpus: int = 8) -> float:
    """Return the MFU when the step grows by the same amount with every doubling beyond a node."""
    require.share(local_mfu=local_mfu)
    require.positive(gpus=gpus)
    require.count(node_gpus=node_gpus)
    require.not_negative(growth_per_doubling=growth_per_doubling)
    return local_mfu / (1 + growth_per_doubling * max(0.0, math.log2(gpus / node_gpus)))


@dataclass(frozen=True)
class StepParts:
    """Hold one step of a fleet, equal for every node, with operating time spread over the steps."""

    work_s: float  # what one node alone takes
    tax_s: float  # what the scale adds
    wait_s: float  # until the slowest node is there
    operating_s: float  # logs, checkpoints, heat, noise: its share of a step

    @property
    def step_s(self) -> float:
        return self.work_s + self.tax_s + self.wait_s

    @property
    def mean_s(self) -> float:
        """Return a run's time over its steps."""
        return self.step_s + self.operating_s

    @property
    def shares(self) -> tuple[float, float, float, float]:
        """Return the shares of work, tax, waiting and operating in a run's time, and so in the GPUs that are paid for."""
        return tuple(one / self.mean_s for one in (self.work_s, self.tax_s, self.wait_s, self.operating_s))


def step_parts(
    node_step_s: float, growth: float, slowest_speed: float = 1.0, operating_share: float = 0.0
) -> StepParts:
    """Return a node's step, grown by the share `growth` with scale, held by the slowest node, stretched by operating."""
    require.positive(node_step_s=node_step_s)
    require.not_negative(growth=growth)
    require.share(operating_share=operating_share)
    require.positive(**{"1 - operating_share": 1 - operating_share})
    well_s = node_step_s * (1 + growth)
    slow_s = well_s / (1 - straggler_loss(slowest_speed))
    return StepParts(
        node_step_s, well_s - node_step_s, slow_s - well_s, slow_s / (1 - operating_share) - slow_s
    )


def is_regression(tax: float, usual_tax: float, tolerance: float = 0.03) -> bool:
    """Return whether the tax rose suddenly. A stable tax is normal, whatever its size."""
    require.share(tax=tax, usual_tax=usual_tax, tolerance=tolerance)
    return tax > usual_tax + tolerance


def gpus_saved(gpus: int, relative_gain: float) -> float:
    """Return the number of GPUs that a relative gain in MFU is worth."""
    require.count(gpus=gpus)
    require.share(relative_gain=relative_gain)
    return gpus * relative_gain


@dataclass(frozen=True)
class SynchronousStep:
    times_s: tuple[float, ...]

    @property
    def step_s(self) -> float:
        return max(self.times_s)

    @property
    def efficiency(self) -> float:
        """Return the useful time of all nodes over their total time."""
        return sum(self.times_s) / (len(self.times_s) * self.step_s)


def synchronous_step(times_s: Sequence[float]) -> SynchronousStep:
    """Return the step of nodes that meet at the end of every step and so wait for the slowest."""
    require.not_empty(times_s=times_s)
    require.positive(**{f"times_s[{i}]": time_s for i, time_s in enumerate(times_s)})
    return SynchronousStep(tuple(times_s))


def straggler_loss(speed: float) -> float:
    """Return the MFU that all lose when one node runs at this share of the others' speed, such as a tenth at 0.9."""
    require.share(speed=speed)
    require.positive(speed=speed)
    return 1 - speed


def production_days(benchmark_days: float, tax: float) -> float:
    """Return the days that a benchmark's projection becomes when MFU is `tax` lower."""
    require.positive(benchmark_days=benchmark_days)
    require.share(tax=tax)
    require.positive(**{"1 - tax": 1 - tax})
    return benchmark_days / (1 - tax)


def trace_bytes(gpus: int, seconds: float, byte_s: float = 100e6) -> float:
    """Size of a full trace: about 500 MB for five seconds of one GPU."""
    require.count(gpus=gpus)
    require.positive(seconds=seconds, byte_s=byte_s)
    return gpus * seconds * byte_s


def profiled_s(time_s: float, overhead: float = 0.15) -> float:
    """Return the seconds of a step under a profiler. A full trace with memory adds 10 to 20%."""
    require.positive(time_s=time_s)
    require.not_negative(overhead=overhead)
    return time_s * (1 + overhead)
