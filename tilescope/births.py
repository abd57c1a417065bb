"""Find the birth of a NaN or an infinity: the first operation that makes one from finite numbers."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from .call import Call
from .findings import Finding
from .machine.bounds import ids
from .machine.frame import Frame
from .machine.interpreter import Launch
from .machine.narrow import NARROW, widened
from .machine.program import Ready, Step
from .machine.tree import Function, Op
from .recorder import TYPES
from .sources import operations, source_of, variables
from .words import number_in_words

NAMES = {"nan": "a NaN", "infinity": "an infinity"}
SIGNS = {"arith.addf": "+", "arith.subf": "-", "arith.mulf": "*", "arith.divf": "/", "arith.remf": "%"}
CONVERTS = ("arith.truncf", "arith.extf", "arith.sitofp", "arith.uitofp", "tt.fp_to_fp", "tt.bitcast")
SHAPES = ("tt.splat", "tt.expand_dims", "tt.broadcast", "tt.reshape", "tt.trans")
CALLS = {
    "arith.negf": "-",
    "arith.select": "tl.where",
    "tt.reduce": "a reduction",
    "tt.scan": "a scan",
    "tt.precise_sqrt": "tl.sqrt_rn",
    "tt.precise_divf": "tl.div_rn",
    "tt.clampf": "tl.clamp",
    **{f"arith.{which}{kind}f": f"tl.{which}imum" for which in ("max", "min") for kind in ("num", "imum")},
}
WHOLE = ("tt.dot", "tt.reduce", "tt.scan", "tt.histogram")  # a lane of theirs is made of many


@dataclass
class Birth:
    """The first at one line."""

    kind: str  # "nan" or "infinity"
    line: int
    op: Op
    program: int
    lane: tuple[int, ...]
    operands: list[tuple[str, str]]  # (name, value in words)
    lanes: int  # in which the operation made one, at that time


class Births(Launch):
    """A launch that looks at every result."""

    def __init__(self, found: dict[tuple[int, str], Birth], watched: dict[int, Ready], *given):
        super().__init__(*given)
        self.found, self.watched = found, watched

    def block(self, block: Ready, frame: Frame) -> Step:
        if id(block) not in self.watched:
            steps = [
                replace(step, perform=partial(self.seen, step), bound=True)
                if step.perform is not None and not step.bound and step.operands and step.results
                else step
                for step in block.steps
            ]
            self.watched[id(block)] = replace(block, steps=steps)
        return super().block(self.watched[id(block)], frame)

    @staticmethod
    def seen(step: Step, launch: "Births", *values):
        found = step.perform(*values)
        for result in [found] if isinstance(found, np.ndarray) else found:
            if is_float(result):
                launch.look(step, tuple(map(widened, values)), widened(result))
        return found

    def look(self, step: Step, values: tuple, result: np.ndarray) -> None:
        for kind, test in (("nan", np.isnan), ("infinity", np.isinf)):
            if (step.line, kind) in self.found:
                continue
            bad = test(result)
            if not bad.any():
                continue
            floats = [v for v in values if is_float(v)]
            known = [np.isnan(v) if kind == "nan" else ~np.isfinite(v) for v in floats]
            if step.op.name in WHOLE or any(v.ndim != result.ndim for v in floats):
                rows = [k.reshape(len(k), -1).any(1).reshape(-1, *[1] * (result.ndim - 1)) for k in known]
            else:
                rows = known
            for one in rows:
                bad = bad & ~one
            if bad.any():
                self.found[step.line, kind] = self.birth(kind, step, values, bad)

    def birth(self, kind: str, step: Step, values: tuple, bad: np.ndarray) -> Birth:
        row, *lane = (int(i) for i in np.argwhere(bad)[0])
        program = int(self.frame.programs[row if len(bad) > 1 else 0])
        shape = step.op.result_types[0].shape
        operands = []
        for name, value, type in zip(step.operands, values, step.op.operand_types, strict=True):
            mine = value[row if len(value) > 1 and row < len(value) else 0]
            if len(type.shape) == len(shape) and step.op.name not in WHOLE:
                at = tuple(0 if side == 1 else i for side, i in zip(mine.shape, lane, strict=True))
                operands.append((name, number_in_words(mine[at])))
            else:
                finite = mine.astype(np.float64)
                operands.append((name, f"{finite.min():.5g} to {finite.max():.5g}"))
        return Birth(kind, step.line, step.op, program, tuple(lane), operands, int(bad.sum()))


def is_float(value: np.ndarray) -> bool:
    return value.dtype.kind == "f" or value.dtype in NARROW


def births(again) -> list[Finding]:
    """Runs a checked launch once more, and finds the first birth of each kind at each line."""
    found: dict[tuple[int, str], Birth] = {}
    again(launch=partial(Births, found, {}))
    call, kernel = again.call, again.call.module.kernel
    names = handed_on(kernel, variables(kernel, source_of(call.file, call.kernel, kernel.line)[1]))
    return [finding(call, birth, names) for birth in found.values()]


def handed_on(kernel: Function, names: dict[str, str]) -> dict[str, str]:
    """Add the names of values that are another one in a larger shape, as m[:, None] is m."""
    for op in operations(kernel.blocks):
        if op.name in SHAPES and not names.get(op.results[0]):
            names[op.results[0]] = names.get(op.operands[0], "")
    return names


def spelled(op: Op, operands: list[str]) -> str:
    """Write an operation as a kernel's source does."""
    if op.name in SIGNS:
        left, right = (f"({one})" if "=" in one else one for one in operands)
        return f"{left} {SIGNS[op.name]} {right}"
    if op.name in CONVERTS:
        return f"{operands[0]} as {TYPES.get(op.result_types[0].scalar, op.result_types[0].scalar)}"
    if op.name == "tt.extern_elementwise":
        name = "libdevice." + str(op.attributes["symbol"]).removeprefix("__nv_")
    else:
        name = CALLS.get(op.name, f"tl.{op.name.split('.')[-1]}")
    return f"{name}({', '.join(operands)})"


def finding(call: Call, birth: Birth, names: dict[str, str]) -> Finding:
    x, y, _ = call.grid
    program = [birth.program % x, birth.program // x % y, birth.program // (x * y)]
    operands = [f"{names[name]} = {value}" if names.get(name) else value for name, value in birth.operands]
    where = f"lane {birth.lane[0] if len(birth.lane) == 1 else birth.lane} of " if birth.lane else ""
    message = (
        f"{spelled(birth.op, operands)} makes {NAMES[birth.kind]} in {where}program {ids(program, call.grid)}"
    )
    more = f", and in {birth.lanes - 1:,} more lane{'s' * (birth.lanes > 2)}" if birth.lanes > 1 else ""
    return Finding(
        birth.kind,
        message + more,
        call.kernel,
        call.file,
        birth.line or None,
        programs=[program],
        lane=list(birth.lane),
        operands=operands,
    )
