"""Measure what one fetch takes from each memory, and what a graph's replay costs (python -m kernels.roofline.latency
[FILE]).

In a pointer chase each load needs the result of the one before, so nothing overlaps and bandwidth plays no part. Two
lengths are timed, and the launch drops out of their difference. Writes FILE, or results/latency/<gpu>.json.
"""

import sys
import time
from pathlib import Path
from statistics import median

import torch
import triton
import triton.language as tl

from kernels import timing
from kernels.bench import here, kept
from kernels.roofline.ground import _clock_and_watts

HERE = Path(__file__).parent / "results" / "latency"
WORD = 4  # bytes of an int32
STEPS = 2**12, 2**16  # fetches of the short and of the long chase
ROUNDS, REPLAYS = 7, 20
GRAPHS = (1, 10, 50)  # kernels of the graphs that are replayed
# (memory, bytes that the chase walks over, bytes from one fetch to its nearest neighbour, the loads' cache). A line
# has 128 bytes. The walk over HBM is longer than any L2, and goes on where the last one ended.
LEVELS = (
    ("L1", 2**13, 128, ".ca"),
    ("L2", 2**22, 128, ".cg"),
    ("HBM", 2**31, 512, ".cg"),
)
UNROLLED = 8
SHARED = f"""{{
    .shared .align 4 .b32 held;
    .reg .pred more;
    .reg .b32 at, left;
    mov.u32 at, held;
    st.volatile.shared.u32 [at], at;
    bar.warp.sync 0xffffffff;
    mov.u32 left, $1;
    again_${{:uid}}:
    {"ld.volatile.shared.u32 at, [at];" * UNROLLED}
    sub.u32 left, left, {UNROLLED};
    setp.ne.u32 more, left, 0;
    @more bra again_${{:uid}};
    mov.u32 $0, at;
}}"""
SHARED_ASM = tl.constexpr(SHARED)


@triton.jit
def chase(x_ptr, at_ptr, steps, CACHE: tl.constexpr):
    """Go from at to x[at] this number of times, and leave the last index in at."""
    at = tl.load(at_ptr)
    for _ in range(steps):
        at = tl.load(x_ptr + at, cache_modifier=CACHE)
    tl.store(at_ptr, at)


@triton.jit
def chase_shared(out_ptr, steps):
    """Read a word of shared memory that holds its own address, `steps` times over. Triton has no name for this load."""
    lanes = tl.arange(0, 32)
    at = tl.inline_asm_elementwise(
        SHARED_ASM, "=r,r", [lanes * 0 + steps], dtype=tl.int32, is_pure=False, pack=1
    )
    tl.store(out_ptr + lanes, at)


def ring(size: int, spacing: int, device, seed: int = 0) -> torch.Tensor:
    """Return int32 x for which at = x[at] visits every spacing-th byte of `size` once, in a random order."""
    step = spacing // WORD
    rng = torch.Generator(device).manual_seed(seed)
    order = torch.randperm(size // spacing, device=device, generator=rng) * step
    x = torch.zeros(size // WORD, dtype=torch.int32, device=device)
    x[order] = order.roll(-1).int()
    return x


def fetch_ns(launch) -> float:
    """Return the nanoseconds of one fetch of launch(steps), which makes `steps` fetches."""
    launch(STEPS[1])  # what fits a cache is in it
    short, long = (timing.elapsed(lambda n=n: launch(n), ROUNDS) for n in STEPS)
    return 1e9 * (long - short) / (STEPS[1] - STEPS[0])


def latencies(device) -> list[dict]:
    """Return each memory's nanoseconds and the clock's cycles in them."""
    out = torch.empty(32, dtype=torch.int32, device=device)
    walks = {"shared memory": lambda n: chase_shared[(1,)](out, n, num_warps=1)}
    for name, size, spacing, cache in LEVELS:

        def walk(n, x=ring(size, spacing, device), at=torch.zeros_like(out[:1]), cache=cache):
            chase[(1,)](x, at, n, CACHE=cache, num_warps=1)

        walks[name] = walk
    found = []
    for name, walk in walks.items():
        ns = fetch_ns(walk)
        for _ in range(int(0.5 / (1e-9 * ns * STEPS[1])) + 1):
            walk(STEPS[1])  # half a second, in which the clock is read
        mhz, _ = _clock_and_watts()
        torch.cuda.synchronize()
        found.append({"memory": name, "ns": ns, "mhz": mhz, "cycles": 1e-3 * ns * mhz})
    return found


def replays(device) -> list[dict]:
    """Return the host's time to replay a graph of this number of tiny kernels, and the GPU's in a row of replays."""
    x, found = torch.zeros(1024, device=device), []
    for kernels in GRAPHS:
        graph = timing.capture([lambda: x.add_(1.0)] * kernels)

        def all_of_them(graph=graph):
            for _ in range(REPLAYS):
                graph.replay()

        gpu = timing.elapsed(all_of_them, ROUNDS) / REPLAYS
        host = []
        for _ in range(ROUNDS):
            torch.cuda.synchronize()
            start = time.perf_counter()
            all_of_them()
            host.append((time.perf_counter() - start) / REPLAYS)
        torch.cuda.synchronize()
        found.append({"kernels": kernels, "host_us": 1e6 * median(host), "gpu_us": 1e6 * gpu})
    return found


def main(argv: list[str]) -> int:
    found = kept.begin(argv, HERE)
    if found is None:
        return here.NO_GPU
    found.keep(replays=replays(found.device))
    found.keep(latencies=latencies(found.device))
    print(found.path.read_text(encoding="utf-8"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
