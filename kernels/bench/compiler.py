"""Measure what lesson 07 says of a compiler, a profiler and two streams (python -m kernels.bench.compiler [FILE]).

Writes FILE, or kernels/next_bottleneck/results/ground/<gpu>.json, and the code that Inductor generates next to it.
"""

import contextlib
import sys
import time
from functools import partial
from pathlib import Path
from statistics import median
from unittest import mock

import torch
import torch._dynamo
import torch.nn.functional as F
from torch._inductor import choices
from torch._inductor import config as inductor
from torch._inductor.utils import run_and_get_code

from kernels import timing
from kernels.bench import here, kept
from kernels.roofline.layernorm_gelu import layernorm_gelu

HERE = Path(__file__).parents[1] / "next_bottleneck" / "results" / "ground"
ROWS, COLS = 16384, 4096
HIDDEN, LAYERS, BATCH = 1024, 16, 4  # a small decoder's feed-forward blocks, one step of four requests
LONG = 16384  # tokens of a step that the GPU and not the host limits
FORMS = {"two loops": None, "one read": lambda features, cooperative: True}


def forms(device) -> tuple[list[dict], dict[str, str]]:
    """Time LayerNorm(GELU(x)) in our kernel and in Inductor's, both as it comes and with the row kept in registers."""
    x = torch.randn(ROWS, COLS, device=device).bfloat16()
    weight, bias = torch.randn(COLS, device=device).bfloat16(), torch.randn(COLS, device=device).bfloat16()
    watches = {"ours": timing.stopwatch(timing.capture([lambda: layernorm_gelu(x, weight, bias)]))}
    codes, want = {}, _layernorm_gelu(x[:64].float(), weight.float(), bias.float())
    for name, rule in FORMS.items():
        torch._dynamo.reset()
        kept = choices.InductorChoices.should_use_persistent_reduction if rule is None else rule
        with mock.patch.object(
            choices.InductorChoices, "should_use_persistent_reduction", staticmethod(kept)
        ):
            call = torch.compile(_layernorm_gelu, dynamic=False)
            out, (codes[name],) = run_and_get_code(call, x, weight, bias)
        if not torch.allclose(out[:64].float(), want, rtol=0.02, atol=0.02):
            raise AssertionError(f"{name} must be right before it is timed")
        watches[name] = timing.stopwatch(timing.capture([partial(call, x, weight, bias)]))
    times = timing.interleave(watches, 1.0, warm=0.5)
    return [{"form": name, "us": 1e6 * median(took)} for name, took in times.items()], codes


def _layernorm_gelu(x, weight, bias):
    return F.layer_norm(F.gelu(x), x.shape[1:], weight, bias)


class Block(torch.nn.Module):
    """Run a feed-forward block with its norm and residual."""

    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(HIDDEN)
        self.up, self.down = torch.nn.Linear(HIDDEN, 4 * HIDDEN), torch.nn.Linear(4 * HIDDEN, HIDDEN)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Stack(torch.nn.Module):
    """Run blocks one after another, in a loop. The graph breaks after the first one if asked to."""

    def __init__(self, broken: bool = False):
        super().__init__()
        self.blocks, self.broken = torch.nn.ModuleList(Block() for _ in range(LAYERS)), broken

    def forward(self, x):
        for i, block in enumerate(self.blocks):
            x = x + block.down(F.gelu(block.up(block.norm(x))))
            if self.broken and i == 0:
                torch._dynamo.graph_break()
        return x


class Unrolled(torch.nn.Module):
    """Run the same blocks without a loop, in which Dynamo can stop and go on, with a break after each group of
    blocks."""

    def __init__(self, breaks: int = 0):
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block() for _ in range(LAYERS))
        each = LAYERS // (breaks + 1)
        lines = ["def forward(x):"]
        for i in range(LAYERS):
            lines.append(f"    x = blocks[{i}](x)")
            if breaks and i % each == each - 1 and i < LAYERS - 1:
                lines.append("    graph_break()")
        known = {"blocks": list(self.blocks), "graph_break": torch._dynamo.graph_break}
        exec("\n".join([*lines, "    return x"]), known)
        self.forward = known["forward"]


def _step_us(call, runs: int = 50, rounds: int = 7) -> float:
    """Return the microseconds of a step that a user waits for, host included."""
    for _ in range(10):
        call()
    times = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(runs):
            call()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) / runs)
    return 1e6 * median(times)


def _ready(model, device):
    return model.to(device).bfloat16().eval()


def _compiled(model, x, mode: str) -> dict:
    torch._dynamo.reset()
    start = time.perf_counter()
    call = torch.compile(model, mode=mode)
    call(x)
    call(x)  # the second call records the graph, if the mode asks for one
    torch.cuda.synchronize()
    took = time.perf_counter() - start
    return {"compile_s": took, "us": _step_us(lambda: call(x))}


@torch.no_grad()
def modes(device) -> list[dict]:
    """Time one step in eager mode and in the three modes of torch.compile."""
    x = torch.randn(BATCH, HIDDEN, device=device).bfloat16()
    model = _ready(Stack(), device)
    found = [{"mode": "eager", "us": _step_us(lambda: model(x))}]
    for mode in ("default", "reduce-overhead", "max-autotune"):
        found.append({"mode": mode, **_compiled(_ready(Stack(), device), x, mode)})
    return found


@torch.no_grad()
def breaks(device) -> list[dict]:
    """Time the same step with graph breaks. The last case has a single one, inside a loop."""
    x = torch.randn(BATCH, HIDDEN, device=device).bfloat16()
    cases = [(str(n), lambda n=n: Unrolled(n)) for n in (0, 3, 15)] + [("1, in a loop", lambda: Stack(True))]
    return [
        {"breaks": name, "mode": mode, **_compiled(_ready(make(), device), x, mode)}
        for mode in ("default", "reduce-overhead")
        for name, make in cases
    ]


@torch.no_grad()
def shapes(device) -> list[dict]:
    """Time the first call with each batch: compiled, compiled again for any batch, and then not again."""
    torch._dynamo.reset()
    call, found = torch.compile(_ready(Stack(), device)), []
    for batch in (4, 8, 24, 40, 1):
        x = torch.randn(batch, HIDDEN, device=device).bfloat16()
        start = time.perf_counter()
        call(x)
        torch.cuda.synchronize()
        took = time.perf_counter() - start
        found.append({"batch": batch, "first_call_s": took, "us": _step_us(lambda x=x: call(x))})
    return found


@torch.no_grad()
def watched(device) -> list[dict]:
    """Time a short and a long eager step: alone, watched more and more closely, and alone again.

    It runs after all other timings, in case a process that was watched once stays slower.
    """
    model = _ready(Stack(), device)
    cuda = torch.profiler.ProfilerActivity.CUDA
    both = [torch.profiler.ProfilerActivity.CPU, cuda]
    everything = {"record_shapes": True, "profile_memory": True, "with_stack": True}
    ways = {"not yet": None, "kernels": {"activities": [cuda]}, "kernels and host": {"activities": both}}
    ways |= {"everything": {"activities": both, **everything}, "no longer": None}
    xs = {batch: torch.randn(batch, HIDDEN, device=device).bfloat16() for batch in (BATCH, LONG)}
    found = []
    for name, how in ways.items():
        for batch, x in xs.items():
            with contextlib.nullcontext() if how is None else torch.profiler.profile(**how):
                found.append({"watched": name, "batch": batch, "us": _step_us(lambda x=x: model(x), 20, 5)})
    return found


def streams(device) -> list[dict]:
    """Time matmuls and a copy to the host: each alone, one after the other, on two streams, and badly."""
    a = torch.randn(8192, 8192, device=device).bfloat16()
    x = torch.randn(2**26, device=device)  # 268 MB
    pinned, plain = torch.empty(x.shape, pin_memory=True), torch.empty(x.shape)
    side = torch.cuda.Stream()

    def matmuls():
        for _ in range(4):
            torch.matmul(a, a)

    def two_streams(target, non_blocking):
        with torch.cuda.stream(side):
            target.copy_(x, non_blocking=non_blocking)
        matmuls()
        torch.cuda.current_stream().wait_stream(side)

    cases = {
        "matmul alone": matmuls,
        "copy alone": lambda: pinned.copy_(x, non_blocking=True),
        "one stream": lambda: (pinned.copy_(x, non_blocking=True), matmuls()),
        "two streams": lambda: two_streams(pinned, True),
        "two streams, without non_blocking": lambda: two_streams(pinned, False),
        "two streams, pageable memory": lambda: two_streams(plain, True),
    }
    return [{"case": name, "ms": 1e-3 * _step_us(call, runs=1, rounds=15)} for name, call in cases.items()]


def main(argv: list[str]) -> int:
    found = kept.begin(argv, HERE)
    if found is None:
        return here.NO_GPU
    inductor.force_disable_caches = True  # every compilation is timed, and each form is generated again
    rows, codes = forms(found.device)
    found.keep(forms=rows)
    for name, code in codes.items():
        kernel = code[code.index("@triton.jit") :].split("'''")[0]
        (found.path.parent / f"{found.path.stem}_{name.replace(' ', '_')}.txt").write_text(
            kernel, encoding="utf-8"
        )
    for measure in (streams, breaks, shapes, modes, watched):
        start = time.perf_counter()
        rows = measure(found.device)
        found.keep(**{measure.__name__: rows})
        took = time.perf_counter() - start
        print(f"{measure.__name__}: {took:.0f} s", *rows, sep="\n  ", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
