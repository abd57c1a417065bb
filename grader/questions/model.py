"""Describe a graded question as one row of data. Rows drive everything that grades: `check`, the command line, the
notebooks' points, the suites and nbgrader."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class Part:
    """Hold one judged part and its points. `judge` names a function of grader/judge/parts.py. If a GPU changes the
    evidence, `gpu` names the function used on a GPU."""

    name: str
    points: float
    judge: str
    gpu: str = ""
    asks: str = field(
        default="", repr=False
    )  # for the lab's table, where criteria_text.py fills {public}, {spills} and the like

    def judged_by(self, mode: str) -> str:
        return self.gpu if mode == "gpu" and self.gpu else self.judge


@dataclass(frozen=True)
class Tensor:
    """Describe one tensor argument. Kernels take it as <name>_ptr and its strides as stride_<name><axis>."""

    name: str
    axes: str  # one letter a dimension, such as "mk"
    shape: tuple  # sizes by name or number, ("M", "K"), or a callable of the case's sizes
    dtype: str = ""  # fixed dtype, or empty for the case's own
    role: str = "in"  # in, out or inout
    unclaimed: str = (
        ""  # the content of an output without inputs, as a sentence for answers that leave it unwritten
    )
    formerly: str = ""  # its name in an earlier edition, which answers may still use

    def sizes(self, sizes: dict) -> tuple[int, ...]:
        shape = self.shape(sizes) if callable(self.shape) else self.shape
        return tuple(sizes[n] if isinstance(n, str) else int(n) for n in shape)


@dataclass(frozen=True)
class Case:
    """Hold one setting of sizes, dtypes and layout. An unusual one carries its why. Hidden ones are named only by `kind`."""

    sizes: dict
    dtype: str = "fp16"
    dtypes: dict = field(default_factory=dict)  # by tensor, where they differ from `dtype`
    # by tensor: "transposed", "padded", "spread 3", or "repeated 0 1" along axes whose strides are 0
    layout: dict = field(default_factory=dict)
    scalars: dict = field(default_factory=dict)
    values: str = "normal"  # how inputs are drawn, read by the question's own `inputs`
    kind: str = "a plain size"
    crossed: bool = (
        False  # drawn by reach.py, at sizes that no budget was made for: judged by its values alone
    )
    parts: tuple[
        Case, ...
    ] = ()  # whose inputs are joined along the question's `rows`, where kinds of values share a case
    # by input, the power of two that a share of its elements is multiplied by, and the share (balanced.py)
    scaled: dict = field(default_factory=dict)
    sm_count: int = 0  # SMs: every case of a check gets the metered case's number, or a drawn one

    def dtype_of(self, tensor: Tensor) -> str:
        return tensor.dtype or self.dtypes.get(tensor.name, self.dtype)


@dataclass(frozen=True)
class Call:
    """Hold one call of a numpy question's function."""

    args: tuple
    kind: str = "a plain case"


@dataclass(frozen=True)
class Together:
    """Hold one call of a ranks question, the arguments of each rank's function after its communicator."""

    each: tuple[tuple, ...]
    kind: str = "a plain case"

    @property
    def args(self) -> tuple:
        """Return what the reference takes."""
        return (self.each,)


@dataclass(frozen=True)
class Mistake:
    """Describe one way to go wrong, for the report and for the suites.

    The report uses `sentence`, and `wrong`, which computes the whole output from the reference's arguments. `variants`
    compute it for other tiles than `wrong`'s, and the diagnosis speaks if any variant matches the whole output.
    `misses` is for a mistake that leaves elements unwritten: each function returns from a case, with one choice of tiles,
    the flags of these elements by output.
    The suites use `cell`, a whole wrong answer in numpy, or `edits` of the right answer. `part` is the part that it loses,
    and `told_as` the mistake that the report names if it isn't this one. A student edition has no cells and no edits."""

    name: str
    sentence: str = ""
    wrong: Callable | None = None
    shows: Callable | None = None
    variants: tuple[Callable, ...] = ()
    misses: tuple[Callable, ...] = ()
    edits: tuple[tuple[str, str], ...] = ()
    cell: str = ""
    part: str = "values"
    told_as: str = ""

    def __post_init__(self):
        if self.cell and self.sentence and self.wrong is None:
            object.__setattr__(self, "wrong", computed_by(self.cell))

    @property
    def made(self) -> bool:
        """Return whether the suites can make this mistake."""
        return bool(self.edits or self.cell)

    @property
    def outputs(self) -> tuple[Callable, ...]:
        return tuple(output for output in (self.wrong, *self.variants) if output)


def computed_by(cell: str) -> Callable:
    """Return the last function that a cell defines. The cell runs when the function is first called."""

    @cache
    def made() -> Callable:
        import numpy as np

        names = {"math": math, "np": np}
        exec(compile(cell, "<a known mistake>", "exec"), names)
        return [value for value in names.values() if callable(value) and hasattr(value, "__code__")][-1]

    return lambda *arguments: made()(*arguments)


REPEATED = "repeated "  # and the numbers of axes
WIDE = " wide"  # ends a repeated layout whose other strides are those of the whole tensor, as one column of it has them
TRANSPOSED = "transposed"
TRANSPOSED_PADDED = f"{TRANSPOSED} padded"  # with gaps between its columns


def repeated_axes(layout: str) -> list[int]:
    return [int(axis) for axis in layout.removeprefix(REPEATED).removesuffix(WIDE).split()]


def repeated(inputs: dict, case: Case) -> dict:
    """Return inputs where a stride of 0 along some axes means equal numbers all along them, as torch's expand makes them."""
    import numpy as np

    found = dict(inputs)
    for name, layout in case.layout.items():
        if layout.startswith(REPEATED):
            value, shape = found[name], found[name].shape
            for axis in repeated_axes(layout):
                value = value.take([0], axis)
            found[name] = np.ascontiguousarray(np.broadcast_to(value, shape))
    return found


# what `wrong` may raise where the mistake gives no output at all
NO_OUTPUT = (ArithmeticError, LookupError, TypeError, ValueError)


@dataclass(frozen=True, kw_only=True)
class Budget:
    """A limit on what a launch may spend, from the topic's cost model for the drawn case, never from the answer's
    grid."""

    what: str  # "read of A"
    count: str = "dedup"  # one of COUNTS
    # an operand, "scratch", or "all" for every operand and all scratch (unused for operations)
    tensor: str = "all"
    access: str = "load"  # load, store, atomic or any
    most: float = math.inf
    least: float = 0.0
    model: str = ""  # `most` as a readable sum: "9 passes over K + 11%"
    look: str = "which elements each program reads, and how often"
    over: str = ""  # where to look above `most`, if `look` speaks of too little
    per: tuple = ()  # for a time, (the number of its units, the name of one unit)
    exact: bool = False  # `most` counts whole blocks at these very sizes, so that no case needs more room
    of_work: bool = True  # of programs: whether those that share the bytes share the operations too
    on_any_gpu: bool = False  # and whether each case asks for half of its own GPU, however large that is
    share: Callable | None = None  # of `most`: takes the indices that drawn programs wrote, by output

    @property
    def look_above(self) -> str:
        return self.over or self.look


COUNTS = {
    "requested": "bytes asked for, lane by lane",
    "dedup": "bytes without duplicates inside one access",
    "sectors": "bytes in whole 32-byte sectors",
    "wave": "bytes unique within a window of as many working programs as there are multiprocessors",
    "unique": "bytes that were touched at all",
    "programs": "programs that share it: all bytes over those of the program that moves most",
    "dot": "FLOP in tl.dot on operands that tensor cores take",
    "wide dot": "FLOP in tl.dot on operands of 32 bits and more, which tensor cores take at half the rate or not at all",
    "operations": "floating-point operations on elements outside tl.dot",
    "work": "operations of every kind: on floats and whole numbers, special ones, and a sixteenth of the FLOP in tl.dot",
    "time": "seconds that a chip takes: the larger of memory, operations by their kind, and tl.dot",
    "integers": "operations on whole numbers outside tl.dot, those that make addresses and masks among them",
}


@dataclass(frozen=True)
class Speed:
    """Give full points at or below `full` times the bar's time, none above `none`."""

    bar: str
    case: Case
    full: float
    none: float
    bound: Callable = None  # (case) -> (flops, bytes), for the physics veto
    # one of grader/questions/samples.py, where the whole timed case is too much for float64
    sampled: Callable = None
    # a ladder instead of the ramp between full and none: (times the baseline's time, share of the points), quickest
    # first
    steps: tuple[tuple[float, float], ...] = ()

    def __post_init__(self):
        limits, shares = [step[0] for step in self.steps], [step[1] for step in self.steps]
        rising = limits == sorted(set(limits)) and all(self.full < limit <= self.none for limit in limits)
        if not rising or shares != sorted(set(shares), reverse=True) or not all(0 < s < 1 for s in shares):
            raise ValueError(
                f"steps must rise from above full to none with falling shares between 1 and 0, got {self.steps}"
            )


NEAR = 8  # how many of the largest sizes an end is drawn from, so that its last digit can't be known


@dataclass(frozen=True)
class UpTo:
    """An axis without a set of sizes: the largest size, the one of other axes' ends, and what divides all sizes."""

    most: int
    least: int = 2
    step: int = 1

    def drawn(self, rng: np.random.Generator) -> int:
        """Return one of the last sizes. No size is below the least, where few sizes fit between."""
        return self.most - self.step * int(rng.integers(min(NEAR, (self.most - self.least) // self.step + 1)))


@dataclass(frozen=True)
class Free:
    """Say of an input that it may hold any finite number, up to these sizes: beyond them honest answers may overflow.

    Results don't depend on one another along the axis `along`, or for no two elements if there is none. `WHOLE` says that
    all depend on one another. If not `anywhere`, only a small case has such numbers."""

    fp16: float
    wide: float  # in a wider dtype
    along: str = ""
    anywhere: bool = True
    least: float = 0.0  # the smallest such number, or 0 for 1 / the largest one
    lowest: float = -math.inf  # the lowest negative one


WHOLE = "*"  # the axis of an input whose numbers all matter for every result
ORDINARY = "0", "inf", "-inf", "nan"  # constants that numbers may be compared with in any question
ANYTHING = "anything"  # stands for all others
ONE_ANOTHER = "one another"  # stands for numbers that no text holds
SCRATCH, WEIGHTS, DOT = "scratch", "weights", "tl.dot"  # names beside those of tensors, as `Steers` uses them


@dataclass(frozen=True)
class Steers:
    """Say that numbers of an input may choose which elements of some tensors are loaded, by an address or a mask, and if
    `whether`, also by a branch or a loop. Numbers of all other inputs steer no load and no tl.dot."""

    by: str  # an input, or WEIGHTS: the arrays that an answer prepares
    of: tuple[str, ...] = ()  # tensors, SCRATCH, WEIGHTS or DOT, or all if it names none
    whether: bool = False


@dataclass(frozen=True)
class Gap:
    """Points in proportion to the share of a gap that an answer closes: what a plain version spends, over what must be
    spent. Both are functions of a case that return (launches, bytes)."""

    plain: Callable
    least: Callable
    words: str  # whose the plain version is


@dataclass(frozen=True)
class Prepare:
    """A function of the answer's cell that makes arrays of a case's weights, once, before the rest of the case is
    drawn.

    launch(p) names the arrays, and kernels take them as inputs. No kernel gets the weights themselves.
    """

    entry: str
    weights: Callable  # (case, rng) -> {argument: array or plain value}, in the order of the arguments
    most_bytes: Callable  # case -> bytes that all its arrays may take
    shapes: Callable  # case -> {argument: shape or plain value}, as of weights
    most_arrays: int = 4


ROOT = Path(__file__).parents[2]


def shelf(slug: str) -> str:
    """Return the folder of a topic's labs, with its number in the course: "05_flash_attention"."""
    rooms = (ROOT / room for room in ("labs", "solutions", "course"))
    found = sorted({path.name.split(".")[0] for room in rooms for path in room.glob(f"[0-9][0-9]_{slug}*")})
    return found[0] if found else slug


@dataclass(frozen=True, kw_only=True)
class Question:
    """The fields of every kind of question. `kind` is a kind's name for people. If an answer `compiles`, its check
    takes seconds and its cell holds kernels. Any other answer is plain Python, judged by what it returns."""

    id: str
    notebook: str
    asks: str
    parts: tuple[Part, ...]
    entry: str
    where: str = ""
    hints: tuple[str, ...] = ()
    mistakes: tuple[Mistake, ...] = ()
    bonus: bool = False
    reference: Callable
    public: tuple = ()
    hidden: Callable[[np.random.Generator], Iterable]

    @property
    def slug(self) -> str:
        return self.id.split(".")[0]

    @property
    def name(self) -> str:
        return self.id.split(".")[1]

    @property
    def compiled_part(self) -> bool:
        """Return whether a part judges what the compiler says."""
        return any(part.judge == "compiled" for part in self.parts)

    @property
    def points(self) -> float:
        return sum(part.points for part in self.parts)

    @property
    def notebook_path(self) -> str:
        return f"{shelf(self.slug)}/{self.notebook}.ipynb"


@dataclass(frozen=True, kw_only=True)
class NumpyQuestion(Question):
    """A function of numpy arrays and plain values. `reference` takes the same arguments."""

    kind = "numpy"
    compiles = False
    rtol: float = 1e-9
    atol: float = 1e-12
    # (*arguments, result) -> sentence, by a function of the module, if more than one result is right
    agree: Callable | None = None


@dataclass(frozen=True, kw_only=True)
class RanksQuestion(Question):
    """A function of a communicator and of one rank's data. `reference` takes all ranks' data and gives a result for
    each. All functions of `each` see a tuple with the arguments of each rank."""

    kind = "ranks"
    compiles = False
    agree = None
    rtol: float = 1e-9
    atol: float = 1e-12
    most_bytes: Callable  # each -> bytes that each rank may send to others, in all its exchanges
    model: str  # the same as a sum that can be read
    most_exchanges: int
    # each -> bytes that each rank may receive of the others, where that is judged
    most_received: Callable | None = None
    # name -> (sentence, each -> the bytes of rows that each rank sends by that habit), to explain why a rank sends
    # too much
    habits: dict = field(default_factory=dict)
    of_tokens: int  # the first arguments of a rank, which have a row for each token
    # (rng, each) -> the same experts in other places, for the second call of a case
    moved: Callable | None = None
    # (rng, whole numbers of an answer's cell) -> a case whose sizes may be near such numbers
    near: Callable | None = None
    # (rng, all numbers of an answer's cell) -> a case whose rows hold such numbers
    holding: Callable | None = None
    # (each, rank, index of a wrong element) -> where its row comes from, in words
    whence: Callable | None = None


SPILLS_ELSEWHERE = 1536  # at odd strides too, where right attention in tiles of 128 keys spills 1,120


@dataclass(frozen=True, kw_only=True)
class KernelQuestion(Question):
    """@triton.jit functions and a launch(p). reference(inputs, case) gives {output: float64 array}."""

    kind = "kernel"
    compiles = True
    entry: str = "launch"
    tensors: tuple[Tensor, ...]
    inputs: Callable  # (case, rng) -> {input: array of the case's dtype}
    prepare: Prepare | None = None
    tolerance: Callable  # (inputs, case, want) -> {output: largest allowed absolute error, scalar or array}
    # (inputs, case, outputs, want) -> sentence, where equality is not the question
    agree: Callable | None = None
    signed: tuple[str, ...] = ()  # outputs whose zeros must have their sign, as in a copy
    # axis -> UpTo(its largest size), or a tuple of all its sizes: the table says it, and a case goes there (reach.py)
    up_to: dict = field(default_factory=dict)
    sized: Callable | None = None  # sizes by name -> Case, where some sizes depend on others
    sized_in_part: Callable | None = None  # the same for a case on conditions, if a few programs afford more
    # an axis along which results don't depend on one another, so kinds of values can share a case (reach.py), and the
    # kinds that share none
    rows: str = ""
    alone: tuple[str, ...] = ()
    joined: tuple[str, ...] = ()  # inputs that differ by kind, if not all do
    # inputs that may hold any finite number, so that some are near numbers of the cell (own_numbers.py)
    free: dict[str, Free] = field(default_factory=dict)
    # scalars that may have any value between those of hidden cases (own_scalars.py)
    any_scalar: tuple[str, ...] = ()
    alike: tuple[str, ...] = ()  # inputs whose numbers may coincide in any way (coincidences.py)
    # more inputs that may be regular but for one place (regular.py): of their "numbers", or of their "rows" as a whole
    regular: dict[str, str] = field(default_factory=dict)
    regular_case: Callable | None = None  # rng -> a case for these, if no plain hidden one has long rows
    balanced: tuple[dict[str, int], ...] = ()  # inputs that may be large where others are faint (balanced.py)
    repeats: bool = True  # whether any input may be the same all along an axis, with a stride of 0 there
    # (a case with a long axis) -> the case that is tried, or None where such sizes and values don't go together
    crossed: Callable | None = None
    # rng -> Case, drawn near a stated size: its bytes and operations are budgeted
    metered: Callable | None = None
    budgets: dict = field(default_factory=dict)  # by part: (case) -> [Budget]
    # axis -> lanes that a block may have along it: operations are judged for sizes rounded up to this number
    blocks: dict = field(default_factory=dict)
    # case -> FLOP that the operation itself needs, the useful work in a picture
    useful: Callable | None = None
    most_launches: int = 1
    compile_case: Case | None = None  # compiled for the targets, with its values judged too
    # one of grader/questions/samples.py, where the compiled case is too large to run whole
    sampled: Callable | None = None
    # the same for a hidden case with all axes long, of which drawn programs run (corner.py), or None to leave it out
    in_corners: Callable | None = None
    # axes along which results don't depend on one another, if a hidden case is larger than memory along them (far.py)
    far: str = ""
    targets: tuple[int, ...] = (90,)
    instruction: dict = field(default_factory=dict)  # target -> instruction that must be in use
    most_spills: int = 0
    steered: tuple[Steers, ...] = ()  # by numbers of inputs, where sizes and program ids don't steer all
    compared: tuple[
        str, ...
    ] = ()  # what numbers may be compared with beside ORDINARY ones, and maxima and sums of many at all
    vector: int = 64  # bits that one instruction of a load or a store must move, where its lanes are neighbours in memory
    repeatable: bool = True
    speed: Speed | None = None
    gap: Gap | None = None  # where a part `gap` is judged, at the metered size

    @property
    def most_spills_elsewhere(self) -> int:
        """Return the bytes that may spill with the tile, num_warps or num_stages of other sizes than the compiled one."""
        return max(self.most_spills, SPILLS_ELSEWHERE)

    def drawn(self, case: Case, rng: np.random.Generator) -> dict:
        """Return all that the reference takes of a case: the weights for preparation, and the kernels' inputs."""
        weights = self.drawn_weights(case, rng) if self.prepare else {}
        return weights | self.drawn_inputs(case, rng)

    @property
    def may_be_regular(self) -> dict[str, str]:
        """Return the inputs that may be regular but for one place, by name, and in which way."""
        return dict.fromkeys(self.alike, "numbers") | self.regular

    def drawn_weights(self, case: Case, rng: np.random.Generator) -> dict:
        """Return the weights of a case for preparation."""
        from grader.questions import powers

        return powers.applied(case.scaled, self.prepare.weights(case, rng), rng)

    def drawn_inputs(self, case: Case, rng: np.random.Generator) -> dict:
        """Return the kernels' inputs of a case. Parts of a case are joined along its rows, and share the first one's
        other tensors."""
        import numpy as np

        from grader.questions import coincidences, powers, regular

        if case.scaled:
            return powers.applied(case.scaled, self.inputs(case, rng), rng)
        if case.kind in coincidences.KINDS:
            return coincidences.applied(case.kind, self.alike, self.inputs(case, rng), rng)
        if case.kind in regular.KINDS:
            return regular.applied(case.kind, self.may_be_regular, self.inputs(case, rng), rng)
        if not case.parts:
            return repeated(self.inputs(case, rng), case)
        each = [self.inputs(part, rng) for part in case.parts]
        at = {one.name: one.axes.find(self.rows.lower()) for one in self.tensors}
        joined = self.joined or [name for name in each[0] if at[name] >= 0]
        first = self.inputs(case, rng) if self.joined else each[0]
        return first | {name: np.concatenate([part[name] for part in each], at[name]) for name in joined}
