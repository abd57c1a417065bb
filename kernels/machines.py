"""List the machines of the formulas, with datasheet ceilings and sizes, one row each.

Peaks, memory, bandwidth, multiprocessors: NVIDIA's datasheets and architecture papers (V100 SXM2, T4, A100 SXM 80 GB,
RTX 4090, H100 SXM, H200 SXM, B200). Shared memory, warps and blocks: the CUDA programming guide's table of compute
capabilities (7.0, 7.5, 8.0, 8.9, 9.0, 9.0, 10.0). The L2 of H200 and B200 is what their driver reports.
NVIDIA rounds a B200's bandwidth to 8 TB/s. Its driver reports 7,680 bits at 3,996 MHz, 7.67 TB/s (pytorch/ao, pull request 4002).
A measured ceiling (python -m grader calibrate) is another Machine with the same fields.
"""

from dataclasses import dataclass, field

TERA = 1e12
REGISTER_BYTES = 256 * 2**10  # of an SM, the same in all, 65,536 registers of 4 bytes
BANK_BYTES_PER_CYCLE = 128  # shared memory of an SM has 32 banks of 4 bytes
# lanes' cycles of one operation, by the CUDA programming guide's table of throughputs, compute capabilities 8.0 and
# 9.0
CYCLES = {"float": 1, "int": 2, "special": 8, "convert": 8}


@dataclass(frozen=True)
class Machine:
    name: str
    year: int
    flops: dict[str, float]  # dense FLOP/s by dtype, of the unit that does it
    bandwidth: float  # HBM, byte/s
    memory_bytes: float
    l2_bytes: float
    sms: int
    sram_bytes: int  # shared memory one block may use
    link_bandwidth: float = 0.0  # GPU to GPU, byte/s per direction
    launch_s: float = 5e-6
    note: str = field(default="", compare=False)
    # of one SM, 0 if unknown
    shared_bytes: int = 0  # shared memory, for all its blocks
    warps: int = 0  # kept at a time
    blocks: int = 0  # kept at a time
    lanes: int = 0  # fp32 multiply-adds started in a cycle
    matrix_flops_per_cycle: int = 0  # 16-bit products, added up in fp32

    def rate(self, dtype: str) -> float:
        if dtype not in self.flops:
            known = ", ".join(self.flops)
            raise ValueError(f"dtype must be one of {known} on {self.name}, got {dtype!r}; pick a listed one")
        return self.flops[dtype]

    @property
    def clock_hz(self) -> float:
        """Return the clock of the stated 16-bit peak. A GPU may run faster, or slower under load."""
        if not self.matrix_flops_per_cycle:
            raise ValueError(
                f"machine must be one with a known rate a cycle, got {self.name}; take a listed one"
            )
        return self.rate("fp16") / (self.sms * self.matrix_flops_per_cycle)

    @property
    def register_bytes(self) -> int:
        """Return the register bytes of all multiprocessors together (`shared_bandwidth` is for all as well)."""
        return self.sms * REGISTER_BYTES

    @property
    def shared_bandwidth(self) -> float:
        return self.sms * BANK_BYTES_PER_CYCLE * self.clock_hz

    def issue_time(self, operations: dict[str, float]) -> float:
        """Return the seconds that all multiprocessors take to start these operations on elements, by their kind."""
        cycles = sum(CYCLES.get(kind, 0) * count for kind, count in operations.items())
        return cycles / (self.lanes * self.sms * self.clock_hz)

    def ridge(self, dtype: str = "fp16") -> float:
        """Return the FLOP per byte above which arithmetic, not memory, is the limit."""
        return self.rate(dtype) / self.bandwidth

    def attainable(self, intensity: float, dtype: str = "fp16") -> float:
        """Return the FLOP/s under the roof at this many FLOP per byte."""
        return min(self.rate(dtype), self.bandwidth * intensity)

    def time(self, flops: float, bytes_moved: float, dtype: str = "fp16") -> float:
        """Return the seconds no kernel can beat, by the slower of the two ceilings."""
        return max(flops / self.rate(dtype), bytes_moved / self.bandwidth)


def _half(tflops: float, **more: float) -> dict[str, float]:
    rates = {"fp16": tflops, "bf16": tflops, **more}
    return {dtype: rate * TERA for dtype, rate in rates.items()}


MACHINES = {
    m.name: m
    for m in (
        Machine(
            "V100",
            year=2017,
            flops={"fp16": 125 * TERA, "fp32": 15.7 * TERA},
            bandwidth=0.9e12,
            memory_bytes=32e9,
            l2_bytes=6 * 2**20,
            sms=80,
            sram_bytes=96 * 2**10,
            link_bandwidth=150e9,
            shared_bytes=96 * 2**10,
            warps=64,
            blocks=32,
            lanes=64,
            matrix_flops_per_cycle=1024,
        ),
        Machine(
            "T4",
            year=2018,
            flops={"fp16": 65 * TERA, "fp32": 8.1 * TERA},
            bandwidth=0.32e12,
            memory_bytes=16e9,
            l2_bytes=4 * 2**20,
            sms=40,
            sram_bytes=64 * 2**10,
            shared_bytes=64 * 2**10,
            warps=32,
            blocks=16,
            lanes=64,
            matrix_flops_per_cycle=1024,
        ),
        Machine(
            "A100",
            year=2020,
            flops=_half(312, fp32=19.5, int8=624),
            bandwidth=2.04e12,
            memory_bytes=80e9,
            l2_bytes=40 * 2**20,
            sms=108,
            sram_bytes=163 * 2**10,
            link_bandwidth=300e9,
            shared_bytes=164 * 2**10,
            warps=64,
            blocks=32,
            lanes=64,
            matrix_flops_per_cycle=2048,
        ),
        Machine(
            "RTX 4090",
            year=2022,
            flops=_half(165.2, fp32=82.6, fp8=330.3, int8=660.6),
            bandwidth=1.008e12,
            memory_bytes=24e9,
            l2_bytes=72 * 2**20,
            sms=128,
            sram_bytes=99 * 2**10,
            shared_bytes=100 * 2**10,
            warps=48,
            blocks=24,
            lanes=128,
            matrix_flops_per_cycle=512,
        ),
        Machine(
            "H100",
            year=2022,
            flops=_half(989, fp32=67, fp8=1979, int8=1979),
            bandwidth=3.35e12,
            memory_bytes=80e9,
            l2_bytes=50 * 2**20,
            sms=132,
            sram_bytes=227 * 2**10,
            link_bandwidth=450e9,
            shared_bytes=228 * 2**10,
            warps=64,
            blocks=32,
            lanes=128,
            matrix_flops_per_cycle=4096,
        ),
        Machine(
            "H200",
            year=2024,
            flops=_half(989, fp32=67, fp8=1979, int8=1979),
            bandwidth=4.8e12,
            memory_bytes=141e9,
            l2_bytes=60 * 2**20,
            sms=132,
            sram_bytes=227 * 2**10,
            link_bandwidth=450e9,
            shared_bytes=228 * 2**10,
            warps=64,
            blocks=32,
            lanes=128,
            matrix_flops_per_cycle=4096,
        ),
        Machine(
            "B200",
            year=2024,
            flops=_half(2250, fp32=75, fp8=4500, fp4=9000),
            bandwidth=8e12,
            memory_bytes=180e9,
            l2_bytes=126 * 2**20,
            sms=148,
            sram_bytes=227 * 2**10,
            link_bandwidth=900e9,
            shared_bytes=228 * 2**10,
            warps=64,
            blocks=32,
            lanes=128,
            matrix_flops_per_cycle=8192,
        ),
    )
}


def machine(name: str) -> Machine:
    if name not in MACHINES:
        raise ValueError(f"machine must be one of {', '.join(MACHINES)}, got {name!r}; pick a listed one")
    return MACHINES[name]


# limits of a kernel's time, by what a machine counted of its launches
MEMORY, ISSUE, MATRIX = "memory", "operations", "tl.dot"
EXACT = ("fp32:ieee", "fp64")  # dots that the lanes do


def times(launches: list[dict], machine: Machine) -> dict[str, float]:
    """Return seconds by limit: bytes in whole sectors, each once a wave, operations at the SMs' issue rate, and dots.

    Addresses and masks cost nothing here, because a compiler makes them once for several lanes, and steps them from
    iteration to iteration."""
    found = dict.fromkeys((MEMORY, ISSUE, MATRIX), 0.0)
    for launch in launches:
        for limit, seconds in of_launch(launch, machine).items():
            found[limit] += seconds
    return found


def total(launches: list[dict], machine: Machine) -> float:
    """Return the seconds of all launches, one after the other, each as long as its slowest limit."""
    return sum(max(of_launch(launch, machine).values()) for launch in launches)


def of_launch(launch: dict, machine: Machine) -> dict[str, float]:
    rows = [row for kinds in launch["tensors"].values() for row in kinds.values()]
    moved = sum(row["wave"] * row["sectors"] / row["dedup"] for row in rows if row["dedup"])
    lanes = {"float": sum(flop / 2 for kind, flop in launch["dots"].items() if kind in EXACT)}
    lanes |= {kind: lanes.get(kind, 0) + count for kind, count in launch["operations"].items()}
    return {
        MEMORY: moved / machine.bandwidth,
        ISSUE: machine.issue_time(lanes),
        MATRIX: sum(flop / rate(kind, machine) for kind, flop in launch["dots"].items() if kind not in EXACT),
    }


def rate(operands: str, machine: Machine) -> float:
    """Return the FLOP/s of dots on operands of this type: twice that of 16 bits with 8, half with 32."""
    fp16 = machine.rate("fp16")
    narrow = operands.startswith(("fp8", "i8", "u8"))
    return fp16 * (2 if narrow else 0.5 if operands.startswith("fp32") else 1)
