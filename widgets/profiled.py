"""Time a decode step of a small mixture-of-experts model in plain PyTorch, part by part, recorded or on your own
GPU.

    python -m widgets.profiled FILE        keep the quickest of thirty steps on this machine

An event is (name, start, duration), in µs, and names of the MoE layer's parts begin with "moe.". On a GPU the times
come from its events, elsewhere from one thread's processor time. The layer is written the obvious way, which sorts the
(token, expert) pairs, asks for the counts, and loops.
"""

import json
import sys
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path

from kernels.next_bottleneck import cost

KEPT = Path(find_spec("kernels").origin).parent / "moe_routing/results/decode_step_cpu.json"
STEPS, WARM_UP = 30, 3
Event = tuple[str, float, float]
PARTS = {"routed": "moe.router"} | {one: f"moe.{one}" for one in ("router", "order", "experts", "combine")}


@dataclass(frozen=True)
class Sizes:
    tokens: int = 16  # one of each sequence in the batch
    context: int = 512  # keys that each sequence sees
    blocks: int = 2
    hidden: int = 512
    heads: int = 8
    experts: int = 16
    top_k: int = 2
    intermediate: int = 512
    vocabulary: int = 8192


class Clock:
    """Mark parts of a step as they are queued, and say afterwards when each ran."""

    def __init__(self, torch, device: str):
        self.torch, self.gpu, self.marks = torch, device == "cuda", []

    def now(self):
        if not self.gpu:
            return time.thread_time_ns()  # what others do on this machine costs nothing
        event = self.torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    @contextmanager
    def part(self, name: str):
        start = self.now()
        yield
        self.marks.append((name, start, self.now()))

    def events(self) -> list[Event]:
        if self.gpu:
            self.torch.cuda.synchronize()
        first = self.marks[0][1]
        between = (lambda a, b: 1e3 * a.elapsed_time(b)) if self.gpu else (lambda a, b: (b - a) / 1e3)
        return [(name, between(first, start), between(start, end)) for name, start, end in self.marks]


class Model:
    """Hold random weights, because their values change no time."""

    def __init__(self, torch, device: str, sizes: Sizes):
        self.torch, self.sizes, s = torch, sizes, sizes
        dtype = torch.bfloat16 if device == "cuda" else torch.float32
        made = torch.Generator(device).manual_seed(0)

        def new(*shape):
            drawn = torch.randn(*shape, generator=made, device=device)
            return (drawn / shape[-1] ** 0.5).to(dtype)

        self.x = new(s.tokens, s.hidden)
        self.cache = new(2, s.tokens, s.heads, s.context, s.hidden // s.heads)
        self.blocks = [
            {
                "qo": new(2, s.hidden, s.hidden),
                "router": new(s.experts, s.hidden),
                "gate_up": new(s.experts, 2 * s.intermediate, s.hidden),
                "down": new(s.experts, s.hidden, s.intermediate),
            }
            for _ in range(s.blocks)
        ]
        self.vocabulary = new(s.vocabulary, s.hidden)

    def step(self, clock: Clock) -> None:
        """Decode one token for each sequence."""
        x = self.x
        for block in self.blocks:
            with clock.part("norm"):
                y = self._norm(x)
            with clock.part("attention"):
                x = x + self._attention(y, block["qo"])
            with clock.part("norm"):
                y = self._norm(x)
            x = x + self._layer(y, block, clock)
        with clock.part("logits"):
            _ = self._norm(x) @ self.vocabulary.T

    def _norm(self, x):
        return self.torch.nn.functional.rms_norm(x, x.shape[-1:])

    def _attention(self, y, qo):
        s, k, v = self.sizes, *self.cache
        q = (y @ qo[0].T).view(s.tokens, s.heads, 1, -1)
        out = self.torch.nn.functional.scaled_dot_product_attention(q, k, v)
        return out.reshape(s.tokens, s.hidden) @ qo[1].T

    def _layer(self, y, block, clock: Clock):
        torch, s = self.torch, self.sizes
        with clock.part("moe.router"):
            best, chosen = torch.topk(y @ block["router"].T, s.top_k)
            weights = torch.softmax(best.float(), -1)
        with clock.part("moe.order"):
            order = torch.argsort(chosen.flatten(), stable=True)
            counts = torch.bincount(chosen.flatten(), minlength=s.experts).tolist()
            rows = y[order // s.top_k]
        with clock.part("moe.experts"):
            parts = rows.split(counts)
            found = [self._expert(rows, e, block) for e, rows in enumerate(parts) if len(rows)]
        with clock.part("moe.combine"):
            back = torch.empty_like(rows)
            back[order] = torch.cat(found)
            out = (back.view(s.tokens, s.top_k, -1) * weights[..., None]).sum(1).to(y.dtype)
        return out

    def _expert(self, rows, e: int, block):
        gate, up = (rows @ block["gate_up"][e].T).chunk(2, -1)
        return (self.torch.nn.functional.silu(gate) * up) @ block["down"][e].T


def profiled(device: str = "", sizes: Sizes | None = None, steps: int = STEPS) -> dict:
    """Return the quickest step on a GPU, if there is one, or else on this machine's processor."""
    import torch

    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    where = torch.cuda.get_device_name() if device == "cuda" else "one thread of a processor"
    sizes = sizes or Sizes()
    model, found, threads = Model(torch, device, sizes), [], torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.inference_mode():
            for _ in range(WARM_UP + steps):
                clock = Clock(torch, device)
                model.step(clock)
                found.append(clock.events())
    finally:
        torch.set_num_threads(threads)
    quickest = min(found[WARM_UP:], key=lambda events: events[-1][1] + events[-1][2])
    return {"where": where, "torch": torch.__version__, "sizes": asdict(sizes), "events": quickest}


def recorded_step() -> dict:
    """Return the step that is kept with the course, lesson 07's trace of a GPU, or a CPU's while no GPU's is there."""
    trace = cost.trace("graph")
    if trace.measured:
        events = [
            (PARTS.get(one.slot, one.slot), 1e6 * (one.start_s - trace.launches[0].start_s), 1e6 * one.took_s)
            for one in trace.launches
        ]
        return {"where": trace.where, "case": trace.case, "events": events}
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    return kept | {"events": [tuple(event) for event in kept["events"]]}


def main(words: list[str]) -> int:
    if len(words) != 1:
        print(__doc__)
        return 64
    found = profiled()
    rounded = [(name, round(start, 1), round(us, 1)) for name, start, us in found["events"]]
    rows = ",\n  ".join(map(json.dumps, rounded))
    head = json.dumps(found | {"events": []}).removesuffix("[]}")
    Path(words[0]).write_text(f"{head}[\n  {rows}\n]}}\n", encoding="utf-8")
    print(f"{len(rounded)} events of a step on {found['where']} in {words[0]}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
