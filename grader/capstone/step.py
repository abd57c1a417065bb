"""Run one decode step with the learner's kernels in its slots, and the same step in plain PyTorch.

A CPU runs the speaking model's step. The machine counts every launch and every byte, and computes an H200's shortest
possible time from these counts. A GPU runs the step with the real model's shapes, timed by a profiler.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import torch

from grader.capstone import answers, graph, recorded
from kernels import decode_step, timing
from kernels.machines import machine
from kernels.next_bottleneck import cost_step, learner, plain
from kernels.next_bottleneck.cache import PagedCache
from kernels.next_bottleneck.shapes import QWEN3_30B_A3B, Shape
from kernels.next_bottleneck.slots import SLOTS, Filling
from kernels.next_bottleneck.step import Sampling, Step, generate
from kernels.next_bottleneck.weights import drawn
from kernels.speaking_model import kept
from kernels.speaking_model.tokens import END

OWN = ("next_bottleneck.residual_norm", "next_bottleneck.rotary_cache")  # answered in the capstone itself
TRIED = Shape(64, 1, 4, 2, 32, experts=4, top_k=2, intermediate=32, vocabulary=96, page=4)
BOUND = 0.02  # of the logits' spread, the allowed difference of a right answer
KEYS = 4096  # of the sequence, where the real shapes are timed
WHOSE = {"learner": "yours", "course": "the course's", "plain": "plain PyTorch"}


@dataclass(frozen=True)
class Spent:
    """Holds the cost of a slot in one step: launches, bytes, and seconds (at best, or measured)."""

    launches: int
    bytes: float
    seconds: float


class Capstone:
    """The step and its fillings. `labs` is the folder of the learner's labs, by default the one above this
    notebook."""

    def __init__(self, labs: Path | str | None = None):
        self.labs = Path(labs) if labs else Path.cwd().parent
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        if self.device == "cpu":
            from tilescope import launcher

            launcher.install()
            torch.set_num_threads(1)  # a model of this size isn't faster with more threads
        self.h200 = machine("H200")
        self.weights, self.tokenizer = kept.weights().to(self.device), kept.tokenizer()
        asked = dict.fromkeys(slot.question for slot in SLOTS if slot.origin == "lab")
        self.answers = {question: answers.found(question, self.labs) for question in asked}
        self.own: dict = {}
        self.own_in_a_graph: dict = {}
        self.kept: dict = {}  # numbers of this run, by name
        self._use()

    def improve(self, **launches: Callable) -> None:
        """Put launch functions of this notebook into their slots: improve(residual_norm=launch_norm)."""
        known = [question.split(".")[1] for question in OWN]
        for name, launch in launches.items():
            if name not in known:
                raise ValueError(f"launches must be for {' or '.join(known)}, got {name}. Name the question")
            question = f"next_bottleneck.{name}"
            self.answers[question] = answers.Answer(question, launch)
        self._use()

    # ---- who fills which slot

    def _use(self) -> None:
        """Fill the slots with all answers that give plain PyTorch's logits. Keep the reason for each rejected
        answer."""
        there = {q: one.launch for q, one in self.answers.items() if one.launch and not one.why}
        if there and self._trouble(there):
            for question, launch in there.items():
                if trouble := self._trouble({question: launch}):
                    self.answers[question] = replace(self.answers[question], why=trouble)
            there = {q: one.launch for q, one in self.answers.items() if one.launch and not one.why}
        self.own, self.own_in_a_graph = (learner.fill(there, in_a_graph=held) for held in (False, True))
        yours = {slot.name: plain.FILLINGS[slot.name] for slot in SLOTS if slot.question in OWN}
        self.fillings = decode_step.fillings("course", **yours | self.own)

    def _trouble(self, launches: dict[str, Callable]) -> str:
        """Return why answers can't be used, "" if a small step with them says the same as in plain PyTorch."""
        weights = drawn(TRIED, dtype=torch.float16, device=self.device, seed=1)
        logits = []
        try:
            for own in (learner.fill(launches), {}):
                cache = PagedCache(TRIED, sequences=2, most=12, dtype=weights.dtype, device=self.device)
                step = Step(weights, cache, decode_step.fillings("plain", **own), guard=True)
                step.read(1, [5])
                first = step.read(0, [1, 2, 3, 4, 5])
                second = step.decode([1, 0], [6, 7])
                logits.append((torch.cat([first, second]), step.next_of(second, [1, 0])))
        except NotImplementedError:
            return "not started"
        except Exception as error:  # whatever an answer raises
            return answers.first_line(error)
        (mine, my_tokens), (want, tokens) = logits
        off = ((mine - want).abs().max() / want.std()).item()
        if off < BOUND and my_tokens == tokens:
            return ""
        if math.isnan(off):
            return "its logits aren't numbers (NaN). Check the answer in its lab"
        return f"its logits differ by {off:.2%} of their spread. Check the answer in its lab"

    def slots(self) -> list[tuple[str, str, str, str]]:
        """Return (slot, question, whose filling, why it is not yours) for each slot."""
        rows = []
        for slot in SLOTS:
            one = self.answers.get(slot.question)
            why = "" if slot.name in self.own else one.why if one else "no lab asks for it"
            if slot.question in OWN and one is None:
                why = "you write it below"
            rows.append((slot.name, slot.question or "", WHOSE[self.fillings[slot.name].source], why))
        return rows

    # ---- what the step spends

    @cached_property
    def prompt(self) -> list[int]:
        return self.tokenizer.encode("The kernel")

    @property
    def shape(self) -> Shape:
        """Return the real model's layers on a GPU, fewer if memory is small, or the speaking model's on a CPU."""
        if self.device == "cpu":
            return self.weights.shape
        large = torch.cuda.get_device_properties(0).total_memory > 60e9
        return replace(QWEN3_30B_A3B, layers=8 if large else 1, group=32)

    @property
    def keys(self) -> int:
        return len(self.prompt) + 1 if self.device == "cpu" else KEYS

    def works(self, by: str = "course") -> dict[str, cost_step.Work]:
        """Return the bytes, operations and launches of each slot. The last norm counts as one of the norms."""
        found = cost_step.step_work(self.shape, 1, self.keys, by=by)
        found["norm"] += found.pop("last norm")
        return found

    @property
    def bound_s(self) -> float:
        """Return seconds that no step can beat, since all bytes must move at no more than the memory's full rate."""
        return cost_step.total(self.works()).bytes / self.bandwidth

    @cached_property
    def bandwidth(self) -> float:
        """Return the byte/s of an H200's memory on paper, or of this GPU's memory, measured by a copy."""
        if self.device == "cpu":
            return self.h200.bandwidth
        one = torch.empty(2**29, dtype=torch.uint8, device=self.device)
        other = torch.empty_like(one)
        return 2 * len(one) / timing.elapsed(lambda: other.copy_(one))

    def at_best(self, launches: int, moved: float, flop: float) -> float:
        """Return a slot's seconds if launched one after the other, by its largest limit."""
        work = cost_step.Work(moved, flop, launches)
        launch_s = self.h200.launch_s if self.device == "cpu" else recorded.SHORTEST_S
        return work.seconds(self.bandwidth, self.h200.rate("fp16"), launch_s)

    def predicted(self, by: str = "plain") -> dict[str, Spent]:
        """Return what the formulas say of each slot."""
        return {
            name: Spent(work.launches, work.bytes, self.at_best(work.launches, work.bytes, work.flop))
            for name, work in self.works(by).items()
        }

    def measured(self, by: str = "own") -> dict[str, Spent]:
        """Return the cost of each slot, counted on a CPU, profiled on a GPU. `by` is "own" or "plain"."""
        fillings = self.fillings if by == "own" else decode_step.fillings("plain")
        return self._counted(fillings) if self.device == "cpu" else self._profiled(fillings)

    def _counted(self, fillings: dict) -> dict[str, Spent]:
        def step_of(mark):
            step = self._step(mark(fillings))
            step.read(0, self.prompt[:-1])
            return step

        def run(step):
            at = len(self.prompt) - 1
            step.cache.lens[0] = at  # each run decodes the same token
            step.next_of(step.decode([0], [self.prompt[-1]]), [0])

        flop = {name: work.flop for name, work in self.works().items()}
        return {
            name: Spent(one.launches, one.bytes, self.at_best(one.launches, one.bytes, flop.get(name, 0.0)))
            for name, one in decode_step.counted(step_of, run).items()
        }

    def _profiled(self, fillings: dict) -> dict[str, Spent]:
        from kernels.next_bottleneck.timeline import annotated, events_of, labels

        def telling(name: str, one: Filling) -> Filling:
            return Filling(lambda weight, shape: annotated(name, one.make(weight, shape)), one.source)

        call = self._timed_call({name: telling(name, one) for name, one in fillings.items()})
        call()
        events = events_of(call)
        ran = [e for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
        ran.sort(key=lambda e: e["ts"])
        bytes_of = {name: work.bytes for name, work in self.works().items()}
        found: dict[str, list[float]] = {}
        for (slot, _), event in zip(labels(events), ran, strict=True):
            found.setdefault(slot, []).append(1e-6 * event["dur"])
        return {name: Spent(len(us), bytes_of.get(name, 0.0), sum(us)) for name, us in found.items()}

    # ---- the step itself

    def _step(self, fillings: dict, most: int = 64, sampling: Sampling = Sampling()) -> Step:
        w = self.weights
        cache = PagedCache(w.shape, sequences=1, most=most, dtype=w.dtype, device=self.device)
        return Step(w, cache, fillings, sampling)

    @cached_property
    def _real(self):
        return drawn(self.shape, device=self.device)

    def _timed_call(self, fillings: dict) -> Callable:
        """Time one step at the real shapes. The last key is written at every call, always the same."""
        weights, shape = self._real, self.shape
        cache = PagedCache(shape, sequences=1, most=KEYS, dtype=weights.dtype, device=self.device)
        cache.grow(0, KEYS)
        rng = torch.Generator(self.device).manual_seed(0)
        for one in (*cache.keys, *cache.values):
            one.normal_(generator=rng)
        token = torch.tensor([7], dtype=torch.int32, device=self.device)
        lens = torch.tensor([KEYS], dtype=torch.int32, device=self.device)
        step, table = Step(weights, cache, fillings), cache.table.contiguous()

        def call():
            logits = step.logits(token, lens, table)
            return logits, step.sample(logits, lens)

        return call

    def logits_differ(self) -> tuple[float, bool]:
        """Return the largest difference to plain PyTorch's logits, as a share of their spread, and whether the token
        is the same."""
        found = []
        for fillings in (self.fillings, decode_step.fillings("plain")):
            step = self._step(fillings)
            step.read(0, self.prompt[:-1])
            logits = step.decode([0], [self.prompt[-1]])
            found.append((logits, step.next_of(logits, [0])))
        (mine, my_token), (want, token) = found
        off = ((mine - want).abs().max() / want.std()).item()
        self.kept |= {"logits_differ": off, "same_token": my_token == token}
        return off, my_token == token

    def gap_closed(self, own: dict[str, Spent], plain: dict[str, Spent]) -> float:
        """Return the share of the gap between the plain step and its bound that your step closes."""
        plain_s, own_s = (sum(one.seconds for one in spent.values()) for spent in (plain, own))
        self.kept |= {"plain_s": plain_s, "own_s": own_s, "bound_s": self.bound_s}
        self.kept["gap_closed"] = cost_step.gap_closed(plain_s, own_s, self.bound_s)
        return self.kept["gap_closed"]

    def closed_by_you(self, own: dict[str, Spent], plain: dict[str, Spent]) -> float:
        """Return the part of this share that your answers close. A missing answer can't raise the result."""
        yours = [name for name in self.own if name in own and name in plain]
        saved = sum(plain[name].seconds - own[name].seconds for name in yours)
        self.kept["closed_by_you"] = saved / (sum(one.seconds for one in plain.values()) - self.bound_s)
        return self.kept["closed_by_you"]

    def speak(
        self, prompt: str = "The kernel", tokens: int = 24, temperature: float = 0.0, seed: int = 0
    ) -> str:
        """Return what the model says after a prompt, on these fillings."""
        given = self.tokenizer.encode(prompt)
        if not given:
            raise ValueError(
                f"prompt must hold a letter that the tokenizer knows, got {prompt!r}. Write English"
            )
        step = self._step(self.fillings, len(given) + tokens, Sampling(temperature, seed))
        self.kept["said"] = prompt + self.tokenizer.decode(generate(step, [given], tokens, END)[0]).rstrip(
            "\n"
        )
        return self.kept["said"]

    # ---- as a graph

    def asks_the_host(self) -> dict[str, str]:
        """Return slot -> the call by which its filling waits for a number from the GPU, which no graph can hold."""
        return graph.asking(self)

    def captured(self) -> dict:
        """Return eager and replayed seconds of the step on a GPU, and the slots that needed other fillings."""
        self.kept["captured"] = graph.captured(self)
        return self.kept["captured"]

    # ---- tables and sentences of the notebook

    def recorded(self) -> recorded.Recorded:
        """Return the real model's step, predicted and as it was recorded on an H200."""
        return recorded.recorded(self.h200)

    def side_by_side(self, one: dict[str, Spent], other: dict[str, Spent]) -> list[tuple]:
        """Return (slot, launches, launches, KB, KB, µs, µs) for each slot, and for their sum."""
        nothing = Spent(0, 0.0, 0.0)
        pairs = [
            (name, one.get(name, nothing), other.get(name, nothing)) for name in dict.fromkeys([*one, *other])
        ]
        rows = [
            (name, a.launches, b.launches, a.bytes / 1e3, b.bytes / 1e3, 1e6 * a.seconds, 1e6 * b.seconds)
            for name, a, b in pairs
        ]
        return [*rows, ("all", *(sum(row[i] for row in rows) for i in range(1, 7)))]

    def cures(self, spent: dict[str, Spent]):
        """Return (names, seconds, share of each that can be removed) of all slots, for the decision rule."""
        import numpy as np

        least = self.predicted("course")
        names = [name for name in spent if name in least]
        times = np.array([spent[name].seconds for name in names])
        floor = np.array([least[name].seconds for name in names])
        return names, times, np.maximum(0.0, 1 - floor / times)

    def graph_words(self) -> str:
        """Say which slots can't be in a graph, and the time of a replay, measured on a GPU, recorded elsewhere."""
        return graph.words(self)
