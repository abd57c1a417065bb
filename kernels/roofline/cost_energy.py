"""Count the energy of an access, level by level, and of a fleet.

The 640 pJ of HBM is the classic figure of a 32-bit off-chip access in an old process: keep the ratio.
Taken at its word, 1e12 accesses of 4 bytes a second are 4 TB/s, more than the H100's 3.35 TB/s.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from kernels import require

PICO = 1e-12
# "Performance Engineering" calls HBM 200 to 600 times slower than on-chip SRAM. Its own table of latencies, 300 ns
# against 20, makes it 15 times.
REPORTED_HBM_OVER_SRAM = (200, 600)
SECONDS_A_YEAR = 365 * 24 * 3600


@dataclass(frozen=True)
class Level:
    name: str
    bytes_on_h100: float
    latency_s: float
    energy_j: float | None  # per access, None if the source gives no figure


LEVELS = {
    level.name: level
    for level in (
        Level("registers", 132 * 256 * 1024, 1 / 1.755e9, 0.01 * PICO),
        Level("shared memory", 132 * 228 * 1024, 20e-9, 0.5 * PICO),
        Level("L2", 50e6, 130e-9, None),
        Level("HBM", 80e9, 300e-9, 640 * PICO),
    )
}


def energy_per_access_j(share_by_level: Mapping[str, float]) -> float:
    """Return the mean energy of an access, given the share that each level serves."""
    require.not_empty(share_by_level=share_by_level)
    require.share(**share_by_level)
    whole = sum(share_by_level.values())
    if abs(whole - 1) > 1e-6:
        raise ValueError(f"shares must be parts of one whole, got a sum of {whole:g}; make them add up to 1")
    known = [name for name, level in LEVELS.items() if level.energy_j is not None]
    for name in share_by_level:
        require.one_of(known, level=name)
    return sum(part * LEVELS[name].energy_j for name, part in share_by_level.items())


def memory_power_w(accesses_per_s: float, share_by_level: Mapping[str, float]) -> float:
    """Return the watts that one GPU spends on fetching."""
    require.not_negative(accesses_per_s=accesses_per_s)
    return accesses_per_s * energy_per_access_j(share_by_level)


def power_saved_w(
    accesses_per_s: float, share_moved: float, source: str = "HBM", target: str = "shared memory"
) -> float:
    """Return the watts that one GPU saves when `target` serves the share `share_moved` of its accesses to `source`."""
    require.share(share_moved=share_moved)
    before = memory_power_w(accesses_per_s, {source: 1.0})
    return share_moved * (before - memory_power_w(accesses_per_s, {target: 1.0}))


def fleet_power_saved_w(gpus: int, accesses_per_s: float, share_moved: float) -> float:
    require.count(gpus=gpus)
    return gpus * power_saved_w(accesses_per_s, share_moved)


def annual_energy_j(power_w: float) -> float:
    """Return the joules of a year at this power. 3.6e6 J are a kWh."""
    require.not_negative(power_w=power_w)
    return power_w * SECONDS_A_YEAR


def latency_ratio(far: str = "HBM", near: str = "shared memory") -> float:
    """Return the factor by which a far access takes longer."""
    require.one_of(tuple(LEVELS), far=far, near=near)
    return LEVELS[far].latency_s / LEVELS[near].latency_s


def read_all_s(memory_bytes: float, bandwidth_byte_s: float) -> float:
    """Return the time to read a whole memory once, the floor of a decode step whose model fills this memory."""
    require.positive(memory_bytes=memory_bytes, bandwidth_byte_s=bandwidth_byte_s)
    return memory_bytes / bandwidth_byte_s
