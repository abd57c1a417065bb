"""Turn the result of an answer's launch(p) into plain data and check it against its caps."""

import difflib
import math
from dataclasses import dataclass, field

from frames import DTYPES  # the box's own, on its path

from ..protocol import (
    MOST_ALONG,
    MOST_PROGRAMS,
    MOST_SCRATCH,
    MOST_SCRATCH_BYTES,
    MOST_STAGES,
    MOST_STEPS,
    WARPS,
)

STEP_KEYS = {"kernel", "grid", "constexprs", "num_warps", "num_stages"}


class BadPlan(ValueError):
    pass


@dataclass
class Plan:
    scratch: dict = field(default_factory=dict)
    steps: list = field(default_factory=list)
    packed: dict = field(
        default_factory=dict
    )  # arrays that a function of the cell makes, name -> shape, dtype

    def as_json(self) -> dict:
        return {"scratch": self.scratch, "steps": self.steps, "packed": self.packed}


def read(
    value,
    kernels: set[str],
    tuned: set[str] = frozenset(),
    packs: dict | None = None,
    most: int = MOST_SCRATCH_BYTES,
) -> Plan:
    """Read a Plan from the result of launch(p). `kernels` are the names of the answer's @triton.jit functions,
    `tuned` those that a decorator would choose settings for, `packs` the caps of arrays that the cell prepares, and `most`
    the bytes that scratch may have."""
    need(
        isinstance(value, dict),
        f'launch(p) must return a dict {{"steps": [step, ...]}}, got {named(value)}',
    )
    known = {"scratch", "steps"} | ({"packed"} if packs else set())
    unknown = ", ".join(sorted(map(str, set(value) - known)))
    need("kernel" not in value, 'launch(p) returned a step: put it into a list, {"steps": [step]}')
    need(
        not unknown,
        f'launch(p) must return {{"steps": [step, ...]}}, with "scratch" too if a kernel needs some; got {unknown} as well',
    )
    scratch, steps = value.get("scratch") or {}, value.get("steps")
    need(
        isinstance(scratch, dict) and len(scratch) <= MOST_SCRATCH,
        f"scratch must be a dict of at most {MOST_SCRATCH} buffers",
    )
    need(
        isinstance(steps, list | tuple) and 1 <= len(steps) <= MOST_STEPS,
        f"steps must be a list of 1 to {MOST_STEPS} launches",
    )
    plan = Plan(
        {str(name): _scratch(name, row) for name, row in scratch.items()},
        [_step(row, kernels, tuned) for row in steps],
        _packed(value.get("packed"), packs) if packs else {},
    )
    total = bytes_of(plan.scratch)
    need(
        total <= most,
        f"scratch must fit in {most >> 20} MiB, got {total >> 20} MiB",
    )
    return plan


def bytes_of(arrays: dict) -> int:
    return sum(math.prod(row["shape"]) * DTYPES[row["dtype"]].itemsize for row in arrays.values())


def _packed(rows, packs: dict) -> dict:
    """Shapes and dtypes of what `pack` makes, within the bytes that the question allows."""
    entry, most = packs["entry"], packs["most_arrays"]
    need(
        isinstance(rows, dict) and 1 <= len(rows) <= most,
        f'launch(p) must name what {entry} makes, "packed": {{name: (shape, dtype)}}, with 1 to {most} arrays; got {named(rows)}',
    )
    found = {}
    for name, row in rows.items():
        pair = isinstance(row, tuple | list) and len(row) == 2
        need(pair, f"packed {name!r} must be (shape, dtype), got {row!r}"[:300])
        found[str(name)] = _array("packed", name, *row)
    total = bytes_of(found)
    need(
        total <= packs["most_bytes"],
        f"what {entry} makes must fit in {packs['most_bytes']:,} bytes at this size, got shapes of {total:,}",
    )
    return found


def need(condition, sentence: str) -> None:
    if not condition:
        raise BadPlan(sentence)


def named(value) -> str:
    """Return a value's kind in a learner's words."""
    if value is None:
        return "nothing (is there a return?)"
    kind = type(value).__name__
    return f"{'an' if kind[:1] in 'aeiou' else 'a'} {kind}"


def whole_number(value, what: str, low: int, high: int) -> int:
    value = getattr(value, "value", value)  # a tl.constexpr counts as its number
    number = isinstance(value, int) or (hasattr(value, "__index__") and not isinstance(value, bool))
    need(
        number and low <= int(value) <= high,
        f"{what} must be a whole number from {low} to {high}, got {value!r}"[:300],
    )
    return int(value)


def _scratch(name, row) -> dict:
    need(
        isinstance(row, tuple | list) and len(row) == 3,
        f"scratch {name!r} must be (shape, dtype, fill), got {row!r}"[:300],
    )
    *array, fill = row
    need(
        isinstance(fill, int | float) and math.isfinite(fill) or fill in (math.inf, -math.inf),
        f"fill of scratch {name!r} must be a number, got {fill!r}",
    )
    return {**_array("scratch", name, *array), "fill": str(float(fill))}


def meant(name: str, known, before: str = "") -> str:
    """Return the name with the nearest known one."""
    lower = {one.lower(): one for one in known}
    near = difflib.get_close_matches(name.lower(), lower, 1, 0.6)
    return f"{name} (did you mean {before}{lower[near[0]]}?)" if near else name


def _array(kind: str, name, shape, dtype) -> dict:
    """Return a shape and a dtype as plain data. `kind` says in a sentence what the array is."""
    need(str(name).isidentifier(), f"a {kind} name must be an identifier, got {name!r}")
    dtype = str(getattr(dtype, "name", dtype))
    dtype = {
        "int32": "i32",
        "int64": "i64",
        "int16": "i16",
        "int8": "i8",
        "uint32": "u32",
        "uint16": "u16",
        "uint8": "u8",
        "float32": "fp32",
        "float16": "fp16",
        "bfloat16": "bf16",
    }.get(dtype, dtype)
    need(
        dtype in DTYPES,
        f"dtype of {kind} {name!r} must be one of {', '.join(DTYPES)}, got {meant(dtype, DTYPES)}",
    )
    need(
        isinstance(shape, int | tuple | list),
        f"the shape of {kind} {name!r} must be whole numbers, got {named(shape)}",
    )
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    sizes = [whole_number(n, f"a size of {kind} {name!r}", 1, 1 << 30) for n in shape]
    return {"shape": sizes, "dtype": dtype}


def _step(row, kernels: set[str], tuned: set[str]) -> dict:
    need(
        isinstance(row, dict),
        f'a step must be a dict {{"kernel": ..., "grid": ...}}, got {named(row)}',
    )
    need(
        set(row) <= STEP_KEYS,
        f"a step may hold {', '.join(sorted(STEP_KEYS))}, got {', '.join(sorted(map(str, set(row) - STEP_KEYS)))} as well",
    )
    need("kernel" in row and "grid" in row, 'a step must name its "kernel" and its "grid"')
    kernel = row["kernel"]
    name = (
        kernel
        if isinstance(kernel, str)
        else getattr(kernel, "__name__", None) or getattr(getattr(kernel, "fn", None), "__name__", "?")
    )
    need(
        name not in tuned,
        f"kernel {name} is decorated with an autotuner or heuristics; leave @triton.jit alone above it and give its settings in the step",
    )
    need(
        name in kernels,
        f"{name} isn't a kernel of this cell: "
        + (f"its kernels are {', '.join(sorted(kernels))}" if kernels else "write @triton.jit above its def"),
    )
    grid = row["grid"]
    need(
        isinstance(grid, int | tuple | list) or hasattr(grid, "__index__"),
        f"grid must be 1 to 3 whole numbers, got {named(grid)}; launch(p) knows the sizes, so write for instance (triton.cdiv(p.M, BLOCK_M),)",
    )
    grid = tuple(grid) if isinstance(grid, tuple | list) else (grid,)
    need(1 <= len(grid) <= 3, f"grid must have 1 to 3 sizes, got {grid!r}")
    names = (f"size {place} of the grid (CUDA limits the second and the third)" for place in (1, 2, 3))
    grid = [whole_number(*each) for each in zip(grid, names, (1, 1, 1), MOST_ALONG, strict=False)]
    grid += [1] * (3 - len(grid))
    need(
        math.prod(grid) <= MOST_PROGRAMS,
        f"grid must have at most {MOST_PROGRAMS} programs, got {math.prod(grid)}",
    )
    warps = whole_number(row.get("num_warps", 4), "num_warps", 1, WARPS[-1])
    need(warps in WARPS, f"num_warps must be a power of two up to {WARPS[-1]}, got {warps}")
    return {
        "kernel": name,
        "grid": grid,
        "constexprs": {str(k): _constexpr(k, v) for k, v in (_dict(row.get("constexprs"))).items()},
        "num_warps": warps,
        "num_stages": whole_number(row.get("num_stages", 3), "num_stages", 1, MOST_STAGES),
    }


def _constexpr(name, value):
    value = getattr(value, "value", value)
    plain = (
        isinstance(value, bool | int | str)
        or (isinstance(value, float) and math.isfinite(value))
        or value is None
    )
    need(
        plain and len(str(value)) < 200,
        f"constexpr {name} must be a number, a bool or a short string, got {type(value).__name__}",
    )
    return value


def _dict(value) -> dict:
    need(value is None or isinstance(value, dict), f"constexprs must be a dict, got {named(value)}")
    return value or {}
