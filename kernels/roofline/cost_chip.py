"""Count what a launch becomes on the chip: sectors of memory, waves of programs, warps that hide each other's waiting."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from kernels import require
from kernels.machines import REGISTER_BYTES, Machine

WARP = 32  # lanes that run one instruction together
SECTOR_BYTES = 32  # what the memory hands over at the least
REGISTERS_A_THREAD = 255
REGISTERS_DEALT = 256  # a warp gets its registers in pieces of this size


def sectors(addresses: Iterable[int], element_bytes: int = 4) -> int:
    """Return how many 32-byte sectors hold the elements at these byte addresses, for one load of one warp."""
    require.count(element_bytes=element_bytes)
    touched = set()
    for address in addresses:
        first, last = address // SECTOR_BYTES, (address + element_bytes - 1) // SECTOR_BYTES
        touched.update(range(first, last + 1))
    return len(touched)


def warp_sectors(stride: int, element_bytes: int = 4, offset: int = 0) -> int:
    """Count the sectors of a warp whose lane i loads element i * stride, `offset` elements into an aligned array."""
    require.whole(stride=stride, offset=offset)
    return sectors(((offset + lane * stride) * element_bytes for lane in range(WARP)), element_bytes)


def useful_share(stride: int, element_bytes: int = 4, offset: int = 0) -> float:
    """Return the share of the moved bytes that a lane asked for. Lanes that share an element count once."""
    asked = (WARP if stride else 1) * element_bytes
    return asked / (SECTOR_BYTES * warp_sectors(stride, element_bytes, offset))


def waves(programs: int, places: int) -> int:
    """Return the rounds of a launch with `places` programs running at a time. A partly filled round costs a full one."""
    require.count(programs=programs, places=places)
    return -(-programs // places)


def busy_share(programs: int, places: int) -> float:
    """Return the share of all slots in all waves that had a program."""
    return programs / (waves(programs, places) * places)


@dataclass(frozen=True)
class Residence:
    """Hold how many programs one SM keeps at a time, and which of its four limits decides."""

    programs: int
    occupancy: float  # warps kept, over the most it could keep
    limit: str


def residence(warps: int, registers: int, shared_bytes: int, on: Machine) -> Residence:
    """Return the residence of programs with this many warps, registers a thread and bytes of shared memory.

    It leaves out the shared memory that the system keeps for itself (1 KiB a block from the A100 on).
    """
    require.count(warps=warps, registers=registers)
    require.whole(shared_bytes=shared_bytes)
    require.at_most(REGISTERS_A_THREAD, "use more warps or smaller tiles", registers=registers)
    require.at_most(on.sram_bytes, "use smaller tiles or fewer stages", shared_bytes=shared_bytes)
    dealt = math.ceil(registers * WARP / REGISTERS_DEALT) * REGISTERS_DEALT * warps
    fits = {
        "warps": on.warps // warps,
        "blocks": on.blocks,
        "registers": REGISTER_BYTES // 4 // dealt,
        "shared memory": on.shared_bytes // shared_bytes if shared_bytes else on.blocks,
    }
    limit = min(fits, key=fits.__getitem__)
    require.count(**{f"programs that fit, by their {limit},": fits[limit]})
    return Residence(fits[limit], fits[limit] * warps / on.warps, limit)


def bytes_in_flight(bandwidth_byte_s: float, latency_s: float) -> float:
    """Return the bytes that must be in flight at any moment to keep a memory busy (Little's law)."""
    require.positive(bandwidth_byte_s=bandwidth_byte_s, latency_s=latency_s)
    return bandwidth_byte_s * latency_s


def instructions_per_element(elements: float, seconds: float, on: Machine) -> float:
    """Return the instructions that all lanes have time for on each element, the roof of work that no matrix unit
    does."""
    require.positive(elements=elements, seconds=seconds)
    return on.sms * on.lanes * on.clock_hz * seconds / elements
