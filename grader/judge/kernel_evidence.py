"""Lower a kernel answer to IR once for all its cases. Then the machine runs it and the compiler compiles it.

The jail that runs the answer's Python replies before any input is drawn, and is never started again.
"""

import math
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np

from grader.bench import gpu
from grader.box.systems import has_processes
from grader.box.warm import ENDLESS, Outcome, cores
from grader.compiler import host as compiler
from grader.compiler.protocol import Compiled, Request
from grader.jail import host as jail
from grader.jail.protocol import Kernel, Lowered, LowerRequest, Plan, PlanRequest, ToldCase, joined, nothing
from grader.judge import branches, held, weight_packing
from grader.judge.evidence import Evidence, background_pool
from grader.machine import host as machine
from grader.machine.protocol import TOLD_OF_WRITERS
from grader.questions import Case, KernelQuestion, corner, on_condition, on_edge, own_numbers, own_scalars
from grader.questions.account import aligned, in_whole_sectors, long_axes, neighbours, tight
from grader.questions.draws import log_uniform
from grader.questions.memory import Placed, as_placed, place, shape_only
from grader.questions.model import TRANSPOSED, UpTo
from grader.questions.reach import sized, stepped

PUBLIC, HIDDEN, METERED, BETWEEN, ALIGNED, CORNER, COMPILED, TIMED = 100, 200, 300, 350, 360, 370, 400, 500
MIRRORED = 351  # another size between two, long along the other axis
TURNED = {353: BETWEEN, 354: MIRRORED}  # these two with their tensors transposed
STRETCHED = 352  # longer along one axis than any other
DEEP = 355  # with the axes at their ends that no program is chosen by
WIDE = 2  # times as wide as the metered case
MOST_ALIGNED = 3  # of the largest cases, compiled as if their sizes were whole blocks, as the metered one
ALIGNED_ONES = range(ALIGNED, ALIGNED + 1 + MOST_ALIGNED)
WHOLE = 371, 372  # smaller corners
FAR = 373  # a larger one, whose inputs repeat what is drawn
LESS_FAR = 366  # one of any size between these two, where an answer may do what it doesn't at the largest
PAIRS = 367, 368, 369  # two axes at their ends, judged by values alone
WAITING = 374  # one for programs that wait for one another in loops, which run one by one
# at sizes that conditions of the cell name, or beyond its numbers
ON_CONDITION = 375, 376, 377, 382, 383, *range(390, 394)
EVERY_PROGRAM = 378  # one that runs whole, for answers of whose other corners drawn programs run
AT_NUMBER = 379, 380, 381  # at numbers of the cell that no case comes near
NOT_LIMITED = (  # in all that they spend
    *(*WHOLE, *PAIRS, FAR, LESS_FAR, WAITING, EVERY_PROGRAM),
    *(BETWEEN, MIRRORED, STRETCHED, DEEP, *TURNED, *ALIGNED_ONES),
)
ON_EDGE = range(310, 316)  # where comparisons and divisions of the cell are just even
OWN_NUMBERS = 384  # one whose inputs are near numbers of the cell
# the metered size at numbers of the cell that multiprocessors may have, and half of it
AT_SMS = 387, 388, 389, 394
OWN_SCALARS = 385, 386  # with a scalar between numbers of the cell
FARS = *PAIRS, FAR, LESS_FAR  # whose inputs may repeat what is drawn
HOLDING = range(LESS_FAR, OWN_NUMBERS + 1)  # corners and others that have such inputs too
LIMITED_IN_PART = CORNER, FAR, LESS_FAR, *ON_CONDITION
IN_PART = *LIMITED_IN_PART, *PAIRS  # of which drawn programs run, if they don't depend on one another
FEW_LIMITED, A_PART = (
    3,
    150,
)  # of so many cases that the jail plans first, one is limited, and cases that it plans next
FEW_OF_THEM = 5  # one case in so many is looked at in several programs first
SHUFFLED_S = 2.0  # of processor time, of hidden cases that also run with their programs in another order
MOST_SEED = 1 << 31
UNWRITTEN = 902  # the purpose that draws what memory holds before anything is written
WRITERS_S = 10.0  # of processor time, to find out who stores what
KNOBS = 1  # the purpose that draws what no case names
SMS = 9, 256  # numbers of a cell that may mean multiprocessors
# multiprocessors of GPUs, from a T4 on
CHIPS = (40, 46, 58, 68, 72, 84, 108, 114, 128, 132, 142, 148, 170, 188)


@dataclass
class Run:
    """Hold one case as the machine ran it. Inputs and reference never left the referee and the machine."""

    case: Case
    hidden: bool
    plan: Plan | None
    placed: list[Placed]
    inputs: dict
    want: dict
    outcome: Outcome

    def output(self, name: str) -> np.ndarray:
        placed = next(p for p in self.placed if p.spec.name == name)
        return placed.view(self.outcome.arrays[name].view(placed.storage.dtype))

    def written(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """for programs drawn from a large grid, the indices that they wrote, a row each, and the values there"""
        placed = next(p for p in self.placed if p.spec.name == name)
        return placed.indices(self.outcome.arrays[f"at:{name}"]), self.outcome.arrays[name].astype(np.float64)

    def without_counts(self) -> "Run":
        """Drop a judged case's counts where no budget reads them, and return the run."""
        self.outcome.arrays = {n: a for n, a in self.outcome.arrays.items() if ":" not in n}
        return self

    @property
    def whole(self) -> bool:
        """Return whether all programs ran, with all their counts."""
        outputs = (p.spec.name for p in self.placed if p.spec.role != "in")
        return any(f"stores:{name}" in self.outcome.arrays for name in outputs)

    @property
    def launches(self) -> list[dict]:
        return self.outcome.header["launches"]


def is_hidden(purpose: int) -> bool:
    return HIDDEN <= purpose < COMPILED


def no_programs(grid) -> tuple:
    """Follow no program of its own."""
    return ()


def between(small: Case, large: Case, rng: np.random.Generator) -> Case:
    """Return a case whose sizes are between those of two others, every factor equally likely."""
    ends = {name: sorted((size, large.sizes[name])) for name, size in small.sizes.items()}
    sizes = {name: round(log_uniform(rng, *pair)) for name, pair in ends.items()}
    return replace(small, sizes=sizes, kind="a size between the metered and the compiled one")


def mirrored(case: Case, other: Case) -> Case:
    """Return a case that is long where the other is short, because a grid may be walked along either axis."""
    m, n = case.sizes["M"], case.sizes["N"]
    swap = (m < n) == (other.sizes["M"] < other.sizes["N"])
    return replace(case, sizes=case.sizes | {"M": n, "N": m}) if swap else case


def stretched(question: KernelQuestion, small: Case, large: Case, rng: np.random.Generator) -> Case:
    """Return a case with as many numbers of M x N as the large one at most, longer along one of them than any other."""
    short = min(small.sizes["M"], small.sizes["N"])
    most = large.sizes["M"] * large.sizes["N"] / short
    axes = rng.permutation(["M", "N"]).tolist()
    long = round(
        log_uniform(rng, max(large.sizes["M"], large.sizes["N"]), min(most, question.up_to[axes[0]].most))
    )
    kind = "a size far from square"
    return replace(small, sizes=small.sizes | {axes[0]: long, axes[1]: short}, kind=kind)


def deep(question: KernelQuestion, small: Case, rng: np.random.Generator) -> Case:
    """Return a case of long rows of tiles, whose other axes are at their ends."""
    m, n = small.sizes["M"], WIDE * small.sizes["N"]
    ends = {axis: one.drawn(rng) for axis, one in question.up_to.items() if isinstance(one, UpTo)}
    kind = "a size with all other axes as long as they may be"
    return replace(small, sizes=small.sizes | ends | {"M": m, "N": n}, kind=kind)


def numbers(question: KernelQuestion, case: Case) -> int:
    """Return the numbers of all tensors of a case."""
    return sum(math.prod(tensor.sizes(case.sizes)) for tensor in question.tensors)


def print_line(row: dict) -> str:
    """Return the text of tl.device_print with its program."""
    program = ", ".join(map(str, row["program"]))
    return f"program ({program}), line {row['line']}: {row['text']}"


@dataclass
class KernelEvidence(Evidence):
    runs: dict[int, Run] = field(default_factory=dict)
    ahead: dict[int, Future] = field(default_factory=dict)
    places: dict[int, Outcome] = field(default_factory=dict)  # of large cases, the stores of all programs
    telling: dict[int, list] = field(default_factory=dict)  # programs that go a way of a condition, by case
    few: dict[int, dict] = field(
        default_factory=dict
    )  # of corners, by part the limit that its grid is too small for
    corner_runs: dict = field(default_factory=dict)  # of corners: programs of whole tiles, with all counts
    compiling: Future | None = None
    compiling_others: Future | None = None
    on_gpu: object = None  # in gpu mode the answer's way there
    shown: bool = False  # a seed that isn't secret drew every case, so all may be shown
    doubt: Exception | None = None  # what the machine could not decide, where nothing else is wrong

    def __post_init__(self):
        question: KernelQuestion = self.question
        self.lock, self.search_lock = threading.RLock(), threading.RLock()
        self.known: dict[int, Case] = {}  # by purpose, without those that the cell's text asks for
        self.searched = False
        self.order: list[int] = []  # of the cases, as the jail heard of them
        self._shown: Lowered | Outcome | None = None
        self._lowered: Lowered | Outcome | None = None
        self.weights: dict[int, dict] = {}  # by purpose, where the answer prepares some
        self.made: dict[int, dict] = {}  # and the arrays that it made from them
        self.changed: dict[int, tuple] = {}  # names of the weights that it changed in place, and the line
        self._printed: list[dict] = []
        drawn = self.rng(KNOBS)
        cases = {PUBLIC + i: case for i, case in enumerate(question.public)}
        cases |= {HIDDEN + i: case for i, case in enumerate(self.hidden_cases())}
        if question.metered:
            cases[METERED] = question.metered(self.rng(METERED))
        if question.compile_case:
            cases[COMPILED] = question.compile_case
        if question.speed and self.mode == "gpu":
            cases[TIMED] = question.speed.case
        metered = cases[METERED].sm_count if METERED in cases else 0
        number = metered or int(drawn.integers(9, 64))  # few, so that small cases have waves too
        hidden = [purpose for purpose in cases if HIDDEN <= purpose < METERED]
        real = {COMPILED, *drawn.permutation(hidden)[::2].tolist()}  # half, which gives none away
        for purpose, case in cases.items():
            own = purpose in hidden and case.sm_count
            told = int(drawn.choice(self.chips())) if purpose in real else number
            self.known[purpose] = replace(case, sm_count=own or told)
        if TIMED in cases:
            self.known[TIMED] = replace(cases[TIMED], sm_count=gpu.first_gpu()[1])
        if COMPILED in cases and METERED in cases and self.budgets_waves():
            small, large = self.known[METERED], self.known[COMPILED]
            wide = self.known[BETWEEN] = between(small, large, self.rng(BETWEEN))
            self.known[MIRRORED] = mirrored(between(small, large, self.rng(MIRRORED)), wide)
            turned = {tensor.name: TRANSPOSED for tensor in question.tensors if len(tensor.axes) > 1}
            self.known |= {one: replace(self.known[of], layout=turned) for one, of in TURNED.items()}
            if {"M", "N"} <= set(question.up_to):
                self.known[STRETCHED] = stretched(question, small, large, self.rng(STRETCHED))
                self.known[DEEP] = deep(question, small, self.rng(DEEP))
        if METERED in cases and question.prepare is None:
            held = [purpose for purpose in hidden if not cases[purpose].crossed]  # whose spending is limited
            largest = sorted(held, key=lambda purpose: -numbers(question, cases[purpose]))[:MOST_ALIGNED]
            for place, purpose in enumerate([METERED, *largest] if COMPILED in cases else [METERED]):
                self.known[ALIGNED + place] = replace(
                    aligned(question, self.known[purpose]), layout={}, kind="sizes that are whole blocks"
                )
        self.told_of_large = int(drawn.choice([number, *self.chips()]))
        self.known |= self.corners(self.told_of_large)

    @property
    def cases(self) -> dict[int, Case]:
        """Return all cases by purpose. Those at numbers and conditions of the cell are searched for once somebody asks,
        because an answer whose public cases are wrong never comes so far."""
        with self.search_lock:
            if not self.searched:
                self.searched = True
                try:
                    self.search(self.cell, self.told_of_large)
                except BaseException:  # it may run ahead, and whoever asks next has to hear of it
                    self.searched = False
                    raise
        return self.known

    def search(self, cell: branches.Reader, told: int) -> None:
        """Add the cases that the cell's text asks for."""
        named = cell.numbers()
        self.add(self.on_condition(cell, named, told))
        self.add(self.at_numbers(named, told))
        self.add(self.on_edge(told))
        if self.question.free and self.question.up_to:
            known = [case for one, case in self.known.items() if one < METERED]
            case = own_numbers.drawn(self.question, known, self.own, self.rng(OWN_NUMBERS))
            self.add({OWN_NUMBERS: replace(case, sm_count=told)})
        self.add(self.own_scalars(cell.constants(), told))
        self.add(self.at_multiprocessors(named))

    def add(self, found: dict[int, Case]) -> None:
        """Add cases in a new dict, since another thread may walk the old one."""
        self.known = self.known | found

    @cases.setter
    def cases(self, cases: dict[int, Case]) -> None:
        self.known, self.searched = cases, True

    @cached_property
    def cell(self) -> branches.Reader:
        return branches.Reader(self.source, self.question.entry)

    @cached_property
    def own(self) -> np.ndarray:
        """Return the sizes of numbers of the cell at which it may treat inputs apart."""
        return own_numbers.ends(self.cell.constants())

    def case(self, purpose: int) -> Case:
        return self.known[purpose] if purpose in self.known else self.cases[purpose]

    def corners(self, told: int) -> dict[int, Case]:
        """Return a corner for drawn programs, and a smaller one for answers whose programs need one another."""
        question, found = self.question, {}
        for purpose, most in (
            (CORNER, corner.LARGE),
            *((one, corner.WHOLE) for one in WHOLE),
            (WAITING, corner.FEW),
            (EVERY_PROGRAM, corner.EVERY),
        ):
            if purpose not in (CORNER, EVERY_PROGRAM) or question.in_corners:
                found[purpose] = corner.corner(question, self.known.get(METERED), most, self.rng(purpose))
        if question.far and question.in_corners:
            for purpose, most in ((FAR, corner.FAR), (LESS_FAR, corner.less_far(self.rng(KNOBS)))):
                found[purpose] = corner.far(question, self.known.get(METERED), most, self.rng(purpose))
        if question.in_corners:
            found |= dict(zip(PAIRS, corner.pairs(question, self.rng(PAIRS[0])), strict=False))
        return {purpose: replace(case, sm_count=told) for purpose, case in found.items() if case}

    def on_condition(self, cell: branches.Reader, numbers: list[int], told: int) -> dict[int, Case]:
        """Return cases that go ways of the cell's own conditions that no limited case goes."""
        rng = self.rng(ON_CONDITION[0])
        if not cell.functions or len(self.question.up_to) < 1:
            return {}

        of_grid = partial(on_condition.programs, numbers=numbers, rng=rng)
        limited = [
            case for purpose, case in self.known.items() if purpose not in NOT_LIMITED and not case.crossed
        ]
        strict = partial(in_whole_sectors, self.question, neighbours(self.question, self.known.get(METERED)))
        long = {
            f"long along {axis}": partial(tight, self.question, axis) for axis in long_axes(self.question)
        }

        in_part = [self.known[one] for one in (CORNER, COMPILED) if one in self.known]

        def ways(case: Case, programs=of_grid) -> dict:
            weights = weight_packing.arguments(self.question.prepare, case)
            task = self.told(replace(case, sm_count=case.sm_count or told))
            if any(case is one for one in in_part):  # the programs that go a way may not be among those drawn
                programs = no_programs
            return cell.branches(task, programs, weights)

        if not any(any(ways(case).values()) for case in limited[::FEW_OF_THEM]):
            ways = partial(ways, programs=no_programs)  # no condition of the cell depends on the program
        most = on_condition.LARGE if self.question.in_corners else corner.WHOLE
        plans = partial(self.ways_of_plans, told=told, rng=rng)
        found = on_condition.search(self.question, numbers, ways, plans, limited, strict, long, most, rng)
        known = [*limited, *(one.case for one in found)]
        more = on_condition.beyond(self.question, cell.numbers_of_kernels(), known, rng)
        found += [on_condition.Telling(more, [])] if more else []
        found = dict(zip(ON_CONDITION, found, strict=False))
        self.telling = {purpose: one.programs for purpose, one in found.items()}
        return {purpose: replace(one.case, sm_count=told) for purpose, one in found.items()}

    def ways_of_plans(
        self, limited: list[Case], drawn: list[Case], told: int, rng: np.random.Generator
    ) -> list[dict]:
        """Return by what the plans of these cases differ, as ways. The jail plans them in parts, the first of which mixes
        the limited cases with drawn ones, and stops at a part that takes too long."""
        cases = [replace(case, sm_count=case.sm_count or told) for case in (*limited, *drawn)]
        mixed = rng.permutation(min(len(cases), FEW_LIMITED * len(limited))).tolist()
        order = [*mixed, *range(len(mixed), len(cases))]
        parts = [mixed, *(order[at : at + A_PART] for at in range(len(mixed), len(order), A_PART))]
        ways: list[dict] = [{} for _ in cases]
        for part in parts:
            request = PlanRequest(
                self.source, self.question.entry, [self.told(cases[number]) for number in part]
            )
            outcome, plans = jail.plan(request, self.level)
            self.spent_s += outcome.cpu_s
            for number, plan in zip(part, plans, strict=True):
                facts = dict(plan.facts)
                if facts and self.too_few(cases[number], plan.programs):
                    facts["too few programs"] = "yes"
                ways[number] = {((on_condition.PLAN, name), value): None for name, value in facts.items()}
            if not plans[-1].facts:
                break
        return ways

    def too_few(self, case: Case, programs: tuple[int, ...]) -> bool:
        """Return whether a plan has fewer programs than half of what the question asks for at a case's size."""
        if 2 * sum(programs) >= case.sm_count:
            return False
        asked = (budget for rule in self.question.budgets.values() for budget in rule(case))
        least = min((budget.least for budget in asked if budget.count == "programs"), default=0)
        return 2 * sum(programs) < min(least, case.sm_count)

    def at_multiprocessors(self, numbers: list[int]) -> dict[int, Case]:
        """Return cases of the metered size for a cell that asks for the number of multiprocessors, with numbers at or next to a
        number of the cell. One more has half of the size, and the largest number."""
        metered = self.known.get(METERED)
        named = [n for n in numbers if SMS[0] <= n <= SMS[1]]
        if metered is None or "sm_count" not in self.source:
            return {}
        rng = self.rng(AT_SMS[0])
        telling = [n for n in named if n & (n - 1)] or named  # powers of two are mostly sizes of blocks
        beside = np.unique([n + more for n in telling for more in (-1, 0, 1)]).astype(int)
        most = min(len(AT_SMS) - 1, len(beside))
        chosen = rng.choice(beside, most, replace=False).tolist()
        kind = "the metered size on another number of multiprocessors"
        axes = {axis: one for axis, one in self.question.up_to.items() if isinstance(one, UpTo)}
        half = {axis: stepped(one, metered.sizes[axis] / 2) for axis, one in axes.items()}
        half = sized(self.question, metered.sizes | half)
        cases = [*(replace(metered, sm_count=n) for n in chosen), replace(half, sm_count=max(CHIPS))]
        return {one: replace(case, kind=kind) for one, case in zip(AT_SMS, cases, strict=False)}

    def at_numbers(self, numbers: list[int], told: int) -> dict[int, Case]:
        """Return cases at numbers of the cell that are no size of another case, nor near one."""
        known, rng = list(self.known.values()), self.rng(AT_NUMBER[0])
        found = on_condition.at_numbers(self.question, numbers, known, rng)
        return {
            purpose: replace(case, sm_count=told) for purpose, case in zip(AT_NUMBER, found, strict=False)
        }

    def on_edge(self, told: int) -> dict[int, Case]:
        """Return small cases at which comparisons of the cell are just even, or one beside it."""
        if not self.cell.functions or not self.question.up_to:
            return {}
        known = [case for purpose, case in self.known.items() if purpose < METERED]

        def gaps(case: Case) -> dict:
            return self.cell.gaps(self.told(replace(case, sm_count=case.sm_count or told)))

        found = on_edge.search(self.question, gaps, known, self.rng(ON_EDGE[0]))
        return {purpose: replace(case, sm_count=told) for purpose, case in zip(ON_EDGE, found, strict=False)}

    def own_scalars(self, constants: list[float], told: int) -> dict[int, Case]:
        """Return cases with a scalar between numbers of the cell."""
        if not self.question.any_scalar:
            return {}
        known = [case for one, case in self.known.items() if one < METERED]
        found = own_scalars.cases(self.question, constants, known, self.rng(OWN_SCALARS[0]))
        return {one: replace(case, sm_count=told) for one, case in zip(OWN_SCALARS, found, strict=False)}

    def chips(self) -> tuple[int, ...]:
        """Return the numbers of multiprocessors that the compiled case and half of the hidden ones are told."""
        return (gpu.first_gpu()[1],) if self.mode == "gpu" else CHIPS

    def budgets_waves(self) -> bool:
        """Return whether the question limits waves, which asks for grouped programs."""
        rules = self.question.budgets.values()
        return any(budget.count == "wave" for rule in rules for budget in rule(self.known[METERED]))

    @property
    def public(self) -> list[int]:
        return [purpose for purpose in self.known if PUBLIC <= purpose < HIDDEN]

    @property
    def hidden(self) -> list[int]:
        return [purpose for purpose in self.known if HIDDEN <= purpose < METERED]

    @property
    def target(self) -> int:
        return gpu.first_gpu()[0] if self.mode == "gpu" else self.question.targets[0]

    # ---- from the jail: plans and texts

    def lowered(self) -> Lowered | Outcome:
        """Return what the jail sent for all cases, in an order that gives no case away, or an Outcome if nothing
        crossed. The texts of shown cases come first."""
        with self.lock:
            if self._lowered is None:
                shown, cases = self.shown_lowered(), self.cases
                hidden = self.permuted([purpose for purpose in cases if is_hidden(purpose)])
                self._lowered = shown
                if hidden and isinstance(shown, Lowered):
                    found = self._asked(hidden)
                    found = found if isinstance(found, Lowered) else nothing(found, hidden)
                    self.order += hidden
                    self._lowered = self._prepared(joined([shown, found]), hidden)
        return self._lowered

    def shown_lowered(self) -> Lowered | Outcome:
        """Return what the jail sent for the shown cases, from a process that never hears of the others and so can print none
        of their sizes."""
        with self.lock:
            if self._shown is None:
                shown = self.permuted([purpose for purpose in self.known if not is_hidden(purpose)])
                found = self._asked(shown) if shown else Lowered((), (), ())
                self.order = shown
                self._shown = self._prepared(found, shown) if isinstance(found, Lowered) else found
        return self._shown

    def permuted(self, purposes: list[int]) -> list[int]:
        self.say(f"lowering {len(purposes)} cases to Triton IR")
        return [purposes[i] for i in self.rng(KNOBS + 1).permutation(len(purposes))]

    def _asked(self, purposes: list[int]) -> Lowered | Outcome:
        tasks = [self.told(self.case(purpose)) for purpose in purposes]
        request = LowerRequest(self.source, self.question.entry, tasks, self.target)
        outcome, found = jail.lower(request, self.level)
        self.count(outcome)
        return found if found is not None else outcome

    def told(self, case: Case) -> ToldCase:
        return ToldCase(
            sizes=dict(case.sizes),
            scalars={n: ("fp32" if isinstance(v, float) else "i32", v) for n, v in case.scalars.items()},
            sm_count=case.sm_count,
            tensors=tuple(shape_only(spec, case).as_task() for spec in self.question.tensors),
            packs=weight_packing.caps(self.question.prepare, case),
        )

    def _prepared(self, found: Lowered, purposes: list[int]) -> Lowered:
        """Add the arrays that the answer makes of the weights of these cases, in a process of their own."""
        return weight_packing.prepare(self, found, purposes) if self.question.prepare else found

    def of_case(self, purpose: int) -> Lowered | Outcome:
        """Return what holds a case's plan. A shown case needs no hidden one."""
        return self.lowered() if self._lowered or is_hidden(purpose) else self.shown_lowered()

    def plan(self, purpose: int) -> Plan | dict:
        """Return the plan of a case, or its error as a dict."""
        found = self.of_case(purpose)
        if isinstance(found, Outcome):
            return found.error
        return found.plans[self.order.index(purpose)]

    def texts(self, purpose: int) -> tuple[str, ...]:
        return self.of_case(purpose).texts

    # ---- from the machine: values and counts

    def draw(self, purpose: int) -> tuple[dict, list[Placed]]:
        """Return what the reference takes, and every tensor of the launches as placed in memory, prepared ones
        included."""
        case = self.case(purpose)
        if self.question.prepare:
            self.of_case(purpose)
        rng = self.rng(purpose)
        drawn = self.question.drawn_inputs
        if purpose in HOLDING and self.question.free:
            drawn = self.with_own_numbers
        inputs = (
            corner.repeated(self.question, case, rng, drawn) if purpose in (*FARS, DEEP) else drawn(case, rng)
        )
        made = [as_placed(name, array) for name, array in self.made.get(purpose, {}).items()]
        return self.weights.get(purpose, {}) | inputs, [*place(self.question, case, inputs), *made]

    def with_own_numbers(self, case: Case, rng: np.random.Generator) -> dict:
        """Return drawn inputs, some of which are near numbers of the cell."""
        return own_numbers.held(self.question, case, self.question.drawn_inputs(case, rng), self.own, rng)

    def run(self, purpose: int, **how) -> Run:
        """Run one case on the machine, metered. Each runs once."""
        if purpose not in self.runs:
            started = self.ahead.pop(purpose, None)
            self.runs[purpose] = started.result() if started else self.run_once(purpose, **how)
            self.count(self.runs[purpose].outcome)
        run = self.runs[purpose]
        if not run.hidden:
            self.heard(self._prints(purpose, run), run.outcome.header.get("prints_left_out", 0))
        return run

    def _prints(self, purpose: int, run: Run) -> str:
        found = self.of_case(purpose)
        said = found.printed[self.order.index(purpose)] if isinstance(found, Lowered) else ""
        return "\n".join(filter(None, [said.strip(), *map(print_line, run.outcome.header.get("prints", []))]))

    @property
    def has_room_ahead(self) -> bool:
        """Return whether work may run in the background: a process does one task at a time."""
        return self.eager and cores() > 1 and has_processes()

    def run_ahead(self, purposes: Iterable[int], how: Callable[[int], dict] = lambda purpose: {}) -> None:
        """Start cases in parallel, if there are cores for them, and processes."""
        if self.has_room_ahead:
            for purpose in purposes:
                if purpose not in self.runs and purpose not in self.ahead:
                    self.ahead[purpose] = background_pool().submit(self.run_once, purpose, **how(purpose))

    def run_once(self, purpose: int, **how) -> Run:
        """Run one case on the machine, and keep nothing."""
        plan, case, hidden = self.plan(purpose), self.case(purpose), is_hidden(purpose) and not self.shown
        if isinstance(plan, dict):
            return Run(case, hidden, None, [], {}, {}, Outcome(header={"error": plan}))
        inputs, placed = self.draw(purpose)
        outcome = self.interpret(purpose, placed, **how)
        want = {} if how.get("programs") or outcome.error else self.question.reference(inputs, case)
        return Run(case, hidden, plan, placed, inputs, want, outcome)

    def interpret(self, purpose: int, placed: list[Placed], **how) -> Outcome:
        return self.launch(self.case(purpose), self.plan(purpose), self.texts(purpose), placed, **how)

    def launch(self, case: Case, plan: Plan, texts: tuple[str, ...], placed: list[Placed], **how) -> Outcome:
        anything = np.random.default_rng([self.seed, UNWRITTEN, *case.sizes.values()])
        settings = {"sm_count": case.sm_count, "repeatable": self.question.repeatable}
        settings |= {"fill": int(anything.integers(1 << 62)), **how}
        values = machine.numbers(case, plan, placed)
        return machine.run_case(texts, plan, placed, values=values, level=self.level, **settings)

    def purpose_of(self, run: Run) -> int | None:
        """Return the purpose of a case that ran once, or None for a run made of another."""
        return next((purpose for purpose, one in self.runs.items() if one is run), None)

    def poisoned(self, run: Run) -> list[dict]:
        """Return the masked loads without other= that reach a result of this case, by line, and the affected outputs."""
        purpose = self.purpose_of(run)
        found = self.interpret(purpose, run.placed, operation="poison", counting="values")
        return [] if found.error else found.header.get("poison", [])

    def writers(self, run: Run, name: str) -> dict[str, np.ndarray]:
        """Return the program, the line and the launch that stored each element of an output, in the output's shape.
        Return {} if the run doesn't end."""
        purpose = self.purpose_of(run)
        found = self.interpret(purpose, run.placed, operation="writers", counting="values", seconds=WRITERS_S)
        if found.error:
            return {}
        placed = next(p for p in run.placed if p.spec.name == name)
        return {what: placed.view(found.arrays[f"{what}:{name}"]) for what in TOLD_OF_WRITERS}

    def lines(self, run: Run, programs: list[int] | None = None) -> list[dict]:
        """Return how many bytes each line of a case asks for, by tensor and kind of access, or nothing if the run doesn't
        end. `programs` are those that ran."""
        purpose = next((p for p, one in self.known.items() if one is run.case), None)
        if purpose is None:
            return []
        return self.lines_of(purpose, run.placed, **({"programs": [programs]} if programs else {}))

    def lines_of(self, purpose: int, placed: list[Placed], **how) -> list[dict]:
        found = self.interpret(
            purpose, placed, operation="lines", counting="values", seconds=WRITERS_S, **how
        )
        return [] if found.error else found.header["lines"]

    def with_zeros(self, run: Run, **how) -> Run:
        """Run the same case with zeros in all masked-off lanes, as today's GPUs have them. The result must not depend
        on a lane without other=."""
        purpose = self.purpose_of(run)
        outcome = self.interpret(purpose, run.placed, poison=1, counting="values", **how)
        return replace(run, outcome=self.count(outcome))

    def shuffled(self, run: Run) -> Run | None:
        """Run a public, hidden or metered case again with its programs in another order, if that doesn't take long."""
        purpose = self.purpose_of(run)
        if purpose is None or purpose > METERED or (run.hidden and run.outcome.cpu_s > SHUFFLED_S):
            return None
        outcome = self.interpret(purpose, run.placed, shuffled=1 + self.seed % MOST_SEED, counting="values")
        return replace(run, outcome=self.count(outcome))

    def printed_text(self, number: int) -> dict:
        """Return a text as the machine prints it, for the compiler and the bench, with its accesses and what steers them:
        {"text", "accesses", "steers", "content"} or {"error"}."""
        with self.lock:
            if number >= len(self._printed):
                texts = (self._lowered or self._shown).texts
                self._printed += machine.print_texts(texts[len(self._printed) :], self.level)
        return self._printed[number]

    def ir_of(self, step: Kernel) -> str:
        """Return a kernel's text as the machine prints it, or an empty one if it can't be printed."""
        return self.printed_text(step.text).get("text", "")

    def lines_found(self, find: Callable[[str], list[int]]) -> Iterator[int]:
        """Yield the lines of the cell that `find` returns for the kernels' texts of the metered case, or of a public one."""
        for step in self.steps(METERED if METERED in self.cases else self.public[0]):
            yield from find(self.ir_of(step))

    # ---- from the compiler

    def begin(self) -> None:
        """Compile while the machine runs. With two cores a check takes as long as the slower job."""
        if COMPILED in self.known and compiler.is_here():
            self.compiling = self.compiling or background_pool().submit(self._compile)
        if self.on_gpu is not None:
            self.on_gpu.begin()

    def go_on(self) -> None:
        """Compile what only an answer needs whose public cases are right."""
        if compiler.is_here():
            self.compiling_others = self.compiling_others or background_pool().submit(self._compile_others)

    def compiled(self) -> tuple[Outcome, list[Compiled], list[Compiled]]:
        """Return what the compiler said of the compiled case's kernels for every target, and of the forms that launch(p)
        gives them in other cases for the first target."""
        self.begin()
        self.go_on()
        outcome, rows = self.compiling.result()
        if outcome.error:
            return self.count(outcome), [], []
        self.count(outcome)
        other, others = self.compiling_others.result()
        if other.end == ENDLESS:  # large blocks take LLVM long, and nothing is known of their spills
            return outcome, rows, []
        return self.count(other), rows, others

    def compiled_elsewhere(self) -> list[Compiled]:
        """Return what the compiler said of the forms of the largest blocks, for a question that compiles nothing else."""
        if not compiler.is_here():
            return []
        self.go_on()
        outcome, rows = self.compiling_others.result()
        return [] if outcome.error else rows

    def _compile(self) -> tuple[Outcome, list[Compiled]]:
        plan = self.plan(COMPILED)
        if isinstance(plan, dict):
            return Outcome(header={"error": plan}), []
        return self._compiled(plan.steps, self.question.targets)

    def _compile_others(self) -> tuple[Outcome, list[Compiled]]:
        self.lowered()
        return self._compiled(self.other_forms(), (self.target,))

    def _compiled(self, steps: Iterable[Kernel], targets: tuple[int, ...]) -> tuple[Outcome, list[Compiled]]:
        known = {}
        for step in steps:
            row = self.printed_text(step.text)
            if "error" in row:
                return Outcome(header={"error": row["error"]}), []
            settings = {"num_warps": step.num_warps, "num_stages": step.num_stages}
            known[step.name, step.text, *settings.values()] = {
                "name": step.name,
                "text": row["text"],
                **settings,
            }
        if not known:
            return Outcome(), []
        return compiler.compile_kernels(Request((*known.values(),), targets), self.level)

    def steps(self, purpose: int) -> tuple[Kernel, ...]:
        plan = self.plan(purpose)
        return () if isinstance(plan, dict) else plan.steps

    def other_forms(self) -> list[Kernel]:
        """Return, of the kernels to which launch(p) gives other blocks, warps or stages than at the compiled size, the one
        with most numbers for each lane, the one with most in shared memory, and the one of whose blocks most live at a
        time."""
        forms = {}
        for purpose in sorted(self.cases, key=lambda one: (one != COMPILED, one not in ALIGNED_ONES)):
            for step in self.steps(purpose):
                blocks = held.of(self.ir_of(step))
                form = step.name, step.num_warps, step.num_stages, frozenset(blocks.shapes)
                most = blocks.largest
                amounts = most / step.num_warps, most * step.num_stages, blocks.as_written / step.num_warps
                forms.setdefault(form, (purpose, step, amounts))
        others = [(step, amounts) for purpose, step, amounts in forms.values() if purpose != COMPILED]
        return [max(others, key=lambda row: row[1][place])[0] for place in range(3)] if others else []

    def in_flight(self) -> list[Future]:
        return [*filter(None, (self.compiling, self.compiling_others)), *self.ahead.values()]

    def settle(self) -> None:
        """Wait for this answer's own work, so that nothing computes during timing."""
        for future in self.in_flight():
            future.exception()

    def end(self) -> None:
        for future in self.in_flight():
            future.cancel()
        if self.on_gpu is not None:
            self.on_gpu.end()
