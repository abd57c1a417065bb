"""Kernels lowered by Triton's front end and run on the machine in this process."""

import inspect
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from tilescope.lowering import text_of
from tilescope.machine.dtypes import NAMES
from tilescope.machine.limits import Limits
from tilescope.machine.read import read
from tilescope.machine.report import Report
from tilescope.machine.run import Launching, run
from tilescope.machine.storage import Storage
from tilescope.machine.verify import verify

BF16, E4M3, E5M2 = (np.dtype(t) for t in (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2))


@dataclass
class Ran:
    report: Report
    tensors: dict[str, Storage]

    @property
    def launch(self):
        return self.report.launches[0]

    @property
    def error(self) -> dict:
        assert self.report.error is not None, "the run went well"
        return self.report.error

    def counts(self, tensor: str, kind: str) -> dict:
        return self.launch.tensors[tensor][kind]


def lowered(kernel, tensors: dict, constants: dict, scalars: dict, **more):
    """The kernel's module for these tensors and numbers, read and held to the list, and its arguments."""
    types, constexprs, arguments = {}, {}, []
    for place, name in enumerate(inspect.signature(kernel.fn).parameters):
        if name in constants:
            types[name], constexprs[(place,)] = "constexpr", constants[name]
        elif name in tensors:
            kind = NAMES[tensors[name].dtype]
            types[name] = "*i1" if kind == "bool" else f"*{kind}"
            arguments.append(("tensor", name))
        else:
            types[name] = "fp32" if isinstance(scalars[name], float) else "i32"
            arguments.append((types[name], scalars[name]))
    module = read(text_of(kernel, types, constexprs, **more), cell=kernel.fn.__code__.co_filename)
    verify(module)
    return module, arguments


def on_machine(
    kernel,
    grid,
    tensors: dict[str, np.ndarray],
    constants=None,
    *,
    roles=None,
    shapes=None,
    wave=16,
    limits=None,
    options=None,
    scalars=None,
    **more,
) -> Ran:
    """One launch. Tensors named `o...` are outputs, `s...` scratch, all others inputs, unless `roles` says otherwise;
    `shapes` gives (shape, strides, axes) of those that are views."""
    module, arguments = lowered(kernel, tensors, constants or {}, scalars or {}, **(options or {}))
    guess = {"o": "out", "s": "scratch"}
    stored = []
    for name, content in tensors.items():
        role = (roles or {}).get(name, guess.get(name[0], "in"))
        shape, strides, axes = (shapes or {}).get(name, (content.shape, None, ""))
        stored.append(Storage(name, len(stored), content.reshape(-1), role, shape, strides, axes))
    step = Launching(module, (*grid, 1, 1)[:3], arguments)
    report = run([step], stored, wave=wave, limits=limits or Limits(seconds=20.0), **more)
    return Ran(report, {t.name: t for t in stored})


def line_of(kernel, words: str) -> int:
    """The line of the test file on which a kernel says `words`."""
    lines, first = inspect.getsourcelines(kernel.fn)
    return first + next(i for i, line in enumerate(lines) if words in line)
