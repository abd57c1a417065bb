"""python -m kernels.roofline.ground [FILE]: what lesson 00 claims of a GPU, measured: strides, waves, bytes on order,
launches, the host's share and the power limit. Writes FILE, or results/ground/<gpu>.json.
"""

import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import torch
import triton
import triton.language as tl

from kernels import timing
from kernels.bench import here, kept
from kernels.roofline.layernorm_gelu import layernorm_gelu

HERE = Path(__file__).parent / "results" / "ground"
GATHERED = 2**24  # numbers that each stride gathers, 64 MiB of fp32
STRIDES = (1, 2, 4, 8, 16, 32)
TILE = (
    512  # fp32 numbers a program of `stream` asks for at a time, 2 KiB or 16 bytes for each of its 128 lanes
)
SMALL, MANY = 1024, 50  # numbers and kernels of the launch measurement
PRODUCT = 8192
SECONDS = 0.2


@triton.jit
def gather(x_ptr, out_ptr, STRIDE: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offs = (pid * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    tl.store(out_ptr + pid, tl.sum(tl.load(x_ptr + offs * STRIDE)))


@triton.jit
def spin(out_ptr, steps, BLOCK: tl.constexpr):
    """Arithmetic that keeps a multiprocessor busy and touches no memory before the end."""
    offs = tl.arange(0, BLOCK)
    x = offs.to(tl.float32)
    for _ in range(steps):
        x = x * 0.5 + 0.5
    tl.store(out_ptr + tl.program_id(0) * BLOCK + offs, x)


@triton.jit
def stream(x_ptr, out_ptr, size, BLOCK: tl.constexpr):
    """Sum with programs x BLOCK bytes in flight. The sum asks for its next tile only when it has this one.

    A lane loads 16 bytes with one instruction. The compiler chains several loads of a lane, one in flight after the
    other.
    """
    pid = tl.program_id(0)
    lanes = tl.arange(0, BLOCK // 4) * 4
    total = tl.zeros((BLOCK // 4, 4), tl.float32)
    for start in tl.range(pid * BLOCK, size, tl.num_programs(0) * BLOCK, num_stages=1):
        x = tl.load(x_ptr + start + lanes[:, None] + tl.arange(0, 4)[None, :])  # (BLOCK // 4, 4)
        odd = tl.sum((x != x).to(tl.int32), axis=1)
        lanes += 4 * odd  # adds 0, which the compiler can't know, so no load runs ahead
        total += x
    tl.store(out_ptr + pid, tl.sum(total))


def seconds(call, flush=None) -> float:
    watch = timing.stopwatch(timing.capture([call]), flush)
    return median(timing.interleave({"it": watch}, SECONDS)["it"])


def right(what: str, got, want):
    if not torch.allclose(
        got.double(), torch.as_tensor(want, dtype=torch.float64, device=got.device), rtol=1e-5
    ):
        raise AssertionError(f"{what} must be right before it is timed, got {got}; wanted {want}")


def strides(device) -> list[dict]:
    block, found = 1024, []
    x = torch.randint(0, 8, (GATHERED * STRIDES[-1],), device=device, dtype=torch.int8).float()
    out = torch.empty(GATHERED // block, device=device)
    for stride in STRIDES:

        def call(stride=stride):
            gather[(GATHERED // block,)](x, out, STRIDE=stride, BLOCK=block)

        call()
        right(f"stride {stride}", out.double().sum(), x[: GATHERED * stride : stride].double().sum())
        took = seconds(call, timing.Flush(device))
        found.append({"stride": stride, "us": 1e6 * took, "useful_tb_s": 4e-12 * GATHERED / took})
    return found


def waves(device, sms: int) -> list[dict]:
    block, steps, found = 4096, 2000, []
    out = torch.empty(3 * sms * block, device=device)
    for programs in (1, sms // 2, sms, sms + 1, 2 * sms, 2 * sms + 1):

        def call(programs=programs):
            spin[(programs,)](out, steps, BLOCK=block, num_warps=16)

        found.append({"programs": programs, "us": 1e6 * seconds(call)})
    right("spin", out[: (2 * sms + 1) * block], 1.0)  # where x / 2 + 1/2 comes to rest, from any start
    return found


def flight(device, sms: int) -> list[dict]:
    x = torch.ones(2**28, device=device)
    found = []
    for programs in (8, sms // 2, sms, 2 * sms, 4 * sms, 8 * sms, 16 * sms):
        out = torch.empty(programs, device=device)

        def call(programs=programs, out=out):
            stream[(programs,)](x, out, x.numel(), BLOCK=TILE)

        call()
        right("stream", out.double().sum(), float(x.numel()))
        found.append({"programs": programs, "bytes_each": 4 * TILE, "tb_s": 1e-12 * x.nbytes / seconds(call)})
    return found


def host_us(device) -> dict:
    """Microseconds of the host for a call that asks the GPU for next to nothing."""
    a = torch.randn(128, 128, device=device).bfloat16()
    q, weight = torch.randn(1, 8, 128, 128, device=device).bfloat16(), torch.ones_like(a[0])
    sdpa = torch.nn.functional.scaled_dot_product_attention
    calls = {
        "torch.matmul": lambda: torch.matmul(a, a),
        "attention, PyTorch's SDPA": lambda: sdpa(q, q, q),
        "layer norm, PyTorch's": lambda: torch.nn.functional.layer_norm(a, (128,), weight, weight),
        "the course's layernorm_gelu": lambda: layernorm_gelu(a, weight, weight),
    }
    return {name: _host_us(call) for name, call in calls.items()}


def _host_us(call, runs: int = 200, rounds: int = 7) -> float:
    call()
    times = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(runs):
            call()
        times.append((time.perf_counter() - start) / runs)
    torch.cuda.synchronize()
    return 1e6 * median(times)


def launches(device) -> dict:
    x = torch.zeros(SMALL, device=device)

    def chain():
        for _ in range(MANY):
            x.add_(1.0)

    eager = _host_us(chain, runs=20) / MANY
    return {"launched from Python": eager, "replayed in a CUDA graph": 1e6 * seconds(chain) / MANY}


def power(device) -> dict:
    """Time a large matmul in the first 20 ms after a rest and after two seconds of load, with clock and watts."""
    a, b = (torch.randn(PRODUCT, PRODUCT, device=device).bfloat16() for _ in range(2))
    graph = timing.capture([lambda: torch.matmul(a, b)])
    watch = timing.stopwatch(graph)

    def burst(n: int) -> float:
        pairs = [watch() for _ in range(n)]
        torch.cuda.synchronize()
        return median(1e3 * start.elapsed_time(end) for start, end in pairs)

    time.sleep(1.2)
    rested_us = burst(12)
    time.sleep(1.2)
    pairs = [watch() for _ in range(12)]
    rested_mhz, _ = _clock_and_watts()
    torch.cuda.synchronize()
    for _ in range(4):
        burst(300)
    pairs += [watch() for _ in range(600)]
    time.sleep(0.3)
    sustained_mhz, watts = _clock_and_watts()
    torch.cuda.synchronize()
    name = f"cuBLAS, {PRODUCT} x {PRODUCT} x {PRODUCT} bf16"
    return {
        "product": name,
        "rested_us": rested_us,
        "rested_mhz": rested_mhz,
        "sustained_us": burst(200),
        "sustained_mhz": sustained_mhz,
        "watts": watts,
    }


def _clock_and_watts() -> tuple[float, float]:
    query = ["nvidia-smi", "--query-gpu=clocks.sm,power.draw.instant", "--format=csv,noheader,nounits"]
    said = subprocess.run(query, capture_output=True, text=True, check=True).stdout.splitlines()[0]
    clock, watts = (float(part) for part in said.split(","))
    return clock, watts


def main(argv: list[str]) -> int:
    found = kept.begin(argv, HERE)
    if found is None:
        return here.NO_GPU
    device, sms = found.device, found.run["machine"]["sms"]
    found.keep(host_us=host_us(device))
    found.keep(launches=launches(device))
    found.keep(strides=strides(device))
    found.keep(waves=waves(device, sms))
    found.keep(flight=flight(device, sms))
    found.keep(power=power(device))
    print(found.path.read_text(encoding="utf-8"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
