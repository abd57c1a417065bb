"""Measure the layer on one rank: compare it with one device's, time it, and time the bare link.

Every function is called with the rank's `here` and returns plain numbers. The command joins those of all ranks.
"""

import functools
import math
import time
from statistics import median

import torch
import torch.distributed as dist

from kernels.expert_load_balance import cases, experts
from kernels.expert_load_balance.communicator import Communicator
from kernels.expert_load_balance.dispatch import Slots, plan
from kernels.expert_load_balance.layer import alone, expert_parallel
from kernels.expert_load_balance.overlap import SPLITS

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
WARM = 3
BIT_SHAPE = cases.Shape("for bits", 8, 2, 64, 128)
FORMS = {  # how the layer is run when its bits are compared
    "plain": {},
    "replicated": {"placement": "replicated"},
    "copies at home first": {"placement": "replicated", "home_first": True},
    "in 3 parts of the experts": {"parts": 3},
    "in 3 parts of the tokens": {"parts": 3, "split": "tokens"},
    "replicated, in 2 parts": {"placement": "replicated", "parts": 2},
}


class Watch:
    """Note when each stage begins, by events on a GPU's stream, else the clock. It tells the launcher too."""

    def __init__(self, here):
        self.here, self.gpu, self.steps = here, here.device != "cpu", []

    def now(self):
        if not self.gpu:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def line_up(self) -> None:
        """Let all ranks begin a step together."""
        self.here.stage("lining up", waits=True)
        dist.all_reduce(torch.zeros(1, device=self.here.device))
        self.steps.append([])

    def __call__(self, name: str, waits: bool = False) -> None:
        self.here.stage(name, waits)
        self.steps[-1].append((name, self.now()))

    def read(self) -> tuple[list[float], dict[str, float]]:
        """Return the seconds of each step, and the median seconds of each stage."""
        if self.gpu:
            torch.cuda.synchronize()
        spans = [
            {a[0]: self.between(a[1], b[1]) for a, b in zip(step, step[1:], strict=False)}
            for step in self.steps[WARM:]
        ]
        stages = {name: median(span[name] for span in spans) for name in spans[0]}
        return [sum(span.values()) for span in spans], stages

    def between(self, start, end) -> float:
        return 1e-3 * start.elapsed_time(end) if self.gpu else end - start


def all_weights(here, shape, dtype: str) -> experts.Weights:
    """Return every expert's weights, the same on each rank, kept for as long as the shape stays."""
    key = (shape, dtype)
    if here.kept.get("key") != key:
        here.kept.clear()
        if here.device != "cpu":
            torch.cuda.empty_cache()
        here.kept["weights"] = experts.draw(
            shape.experts, shape.hidden, shape.intermediate, dtype=DTYPES[dtype], device=here.device
        )
        here.kept["key"] = key
    return here.kept["weights"]


def tokens_of(here, setting, counts):
    """Return x, topk_ids and topk_weights of all ranks' tokens, and the slice that is this rank's."""
    shape, total, mine = setting.shape, sum(counts), sum(counts[: here.rank])
    rng = torch.Generator(here.device).manual_seed(total)
    x = torch.randn(total, shape.hidden, generator=rng, device=here.device).to(DTYPES[setting.dtype])
    topk_ids, topk_weights = (
        torch.from_numpy(a).to(here.device)
        for a in cases.routing(setting.skew, total, shape.top_k, shape.experts, seed=total)
    )
    return (x, topk_ids, topk_weights), slice(mine, mine + counts[here.rank])


def layer_of(here, setting, make_experts):
    """Return a setting's layer as a function of this rank's tokens and a listener to its stages, and the layer's slots."""
    slots = Slots(setting.placed, here.ranks, here.device)
    local = make_experts(all_weights(here, setting.shape, setting.dtype).of(slots.held[here.rank]))
    form = {"experts": local, "slots": slots, "to": Communicator(), "home_first": setting.home_first}
    if setting.parts > 1:
        layer = functools.partial(SPLITS[setting.split], parts=setting.parts, **form)
        return lambda mine, stage: layer(*mine, stage=stage), slots
    return lambda mine, stage: expert_parallel(*mine, stage=stage, **form), slots


def same_bits(here) -> list[str]:
    """Compare every form of the layer with one device's, in fp32 with fixed tiles, and name the forms that differ."""
    wrong = []
    for named, counts in cases.CHECKED_TOKENS.items():
        counts = counts(here.ranks)
        for skew in cases.SKEWS:
            plain = cases.Setting(BIT_SHAPE, here.ranks, 24, skew, dtype="fp32")
            everyone, own = tokens_of(here, plain, counts)
            weights = all_weights(here, BIT_SHAPE, "fp32")
            wanted = alone(*everyone, experts.in_fixed_tiles(weights), BIT_SHAPE.experts)[own]
            for form, changes in FORMS.items():
                setting = cases.Setting(BIT_SHAPE, here.ranks, 24, skew, dtype="fp32", **changes)
                layer, _ = layer_of(here, setting, experts.in_fixed_tiles)
                here.stage(f"bits of {form}", waits=True)
                if not torch.equal(layer([part[own] for part in everyone], here.stage), wanted):
                    wrong.append(f"{form}, {skew}, {named}")
    return wrong


def best_experts(here, setting):
    """Use torch's grouped product where it runs and is right, else a product an expert."""
    if setting.dtype != "bf16" or here.device == "cpu":
        return experts.one_by_one
    if "best" not in here.kept:
        weights = all_weights(here, setting.shape, setting.dtype).of([0, 1])
        rows = torch.randn(24, setting.shape.hidden, device=here.device).to(DTYPES[setting.dtype])
        try:
            wrong = error(experts.grouped(weights)(rows, [7, 17]), experts.one_by_one(weights)(rows, [7, 17]))
        except (RuntimeError, AttributeError, NotImplementedError):
            wrong = float("inf")
        here.kept["best"] = experts.grouped if wrong < 1e-2 else experts.one_by_one
    return here.kept["best"]


def error(got: torch.Tensor, wanted: torch.Tensor) -> float:
    """Return the norm of the difference over the norm of the expected result, infinite if an element is not finite."""
    if not wanted.numel():
        return 0.0
    found = float((got.float() - wanted.float()).norm() / wanted.float().norm())
    return found if math.isfinite(found) else math.inf


def timed(here, setting, steps: int) -> dict:
    """Measure steps of one setting, their seconds, stages, rows sent to each rank, and error against one device."""
    here.stage("drawing weights and tokens")
    make, watch = best_experts(here, setting), Watch(here)
    everyone, own = tokens_of(here, setting, [setting.tokens] * here.ranks)
    mine = [part[own] for part in everyone]
    layer, slots = layer_of(here, setting, make)
    for _ in range(WARM + steps):
        watch.line_up()
        out = layer(mine, watch)
    seconds, stages = watch.read()
    here.stage("comparing with one device")
    single = make(all_weights(here, setting.shape, setting.dtype))
    wanted = alone(*everyone, single, setting.shape.experts)[own]
    return {
        "seconds": seconds,
        "stages": stages,
        "rows_to": plan(mine[1], slots, here.rank, setting.home_first).counts.sum(1).tolist(),
        "row_bytes": mine[0][0].nbytes,
        "error": error(out, wanted),
        "experts": make.__name__,
    }


def one_device(here, setting, steps: int) -> list[float]:
    """Return the seconds of all ranks' tokens on this rank's device alone, which then holds every expert."""
    here.stage("one device does it all")
    make = best_experts(here, setting)
    everyone, _ = tokens_of(here, setting, [setting.tokens] * here.ranks)
    single = make(all_weights(here, setting.shape, setting.dtype))
    watch = Watch(here)
    for _ in range(WARM + steps):
        watch.line_up()
        watch("alone")
        alone(*everyone, single, setting.shape.experts)
        watch("done")
    return watch.read()[0]


def link(here, size: int, steps: int) -> list[float]:
    """Return the seconds of a plain, even all-to-all in which each rank hands out `size` bytes, its own share included."""
    here.stage("a plain all-to-all", waits=True)
    rows = torch.randint(0, 255, (size // here.ranks * here.ranks,), dtype=torch.uint8, device=here.device)
    came, watch = torch.empty_like(rows), Watch(here)
    for _ in range(WARM + steps):
        watch.line_up()
        watch("link", waits=True)
        dist.all_to_all_single(came, rows)
        watch("done")
    return watch.read()[0]


def describe(here) -> dict:
    """Return the machine and the versions that this rank sees."""
    from kernels.bench import machine

    found = {"versions": machine.versions()}
    if here.device == "cpu":
        found["machine"] = {"cpu": machine.platform.machine(), "torch_threads_a_rank": 1}
    else:
        found["machine"] = machine.describe(torch.device(here.device))
        found["versions"]["nccl"] = ".".join(map(str, torch.cuda.nccl.version()))
    return found
