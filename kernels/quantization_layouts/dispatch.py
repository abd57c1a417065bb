"""Choose the kernel that runs a quantized layer by a table that calibration measured on this GPU, or else by a rule.

A table's row for a measured (shape, form, group, M) names the fastest candidate that certainly isn't slower than
16 bits, which is itself a candidate. So a layer that also keeps its 16-bit weight loses at no measured M.
Between two values of M the larger value's answer holds, since narrow weights win less at a larger M. For an unmeasured
shape or group the nearest ones decide (nearest.py), unless the layer has timed the likeliest candidates itself (settle.py).
"""

import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import torch

from kernels import require
from kernels.quantization_layouts.arguments import check_layer
from kernels.quantization_layouts.candidates import CANDIDATES, LIBRARY, SIXTEEN, Layer
from kernels.quantization_layouts.cases import usual_group
from kernels.quantization_layouts.direct import direct
from kernels.quantization_layouts.nearest import distance, likely
from kernels.quantization_layouts.packed import Packed
from kernels.quantization_layouts.ring_launch import LARGE, ring, takes
from kernels.quantization_layouts.stream import stream
from kernels.quantization_layouts.tile import tile
from kernels.replays import form
from kernels.require import must

ZERO = "zero"  # int4 with zero points, which some kernels hand from lane to lane
TABLES = Path(__file__).parent / "tables"
ALIKE = {"h100": "h200", "h800": "h200"}  # the same multiprocessors with other memory
STREAM_UP_TO, TILE_UP_TO = 16, 128  # without a table
RING_FROM, RING_WEIGHTS = 3, LARGE  # fewer rows leave it nothing to hide, fewer weights no time for its start
DIRECT_UP_TO = {32: 2}  # rows of X, by the group of a small FP4 weight (H200, 2026-11-24)


@dataclass(frozen=True)
class Choice:
    """Hold a measured row: the candidate to run, and the one to run if no 16-bit weight is kept."""

    n: int
    k: int
    experts: int
    form: str
    m: int
    best: str
    best_packed: str
    group: int = 32
    us: dict = field(default_factory=dict, compare=False)  # of each candidate that was timed

    def is_of(self, w: Packed) -> bool:
        return (self.n, self.k, self.experts, self.group) == (w.n, w.k, w.experts, w.group)


def form_of(w: Packed) -> str:
    """Return the bits and how they are looked up. Together with the shape and M they decide which kernel is fastest."""
    if w.kind == "int4":
        return ZERO if w.zeros is not None else "int4"
    return f"k{w.bits}"


def rows_of(run: dict) -> tuple[Choice, ...]:
    """Read a calibration's JSON as choices, and refuse one that names an unknown candidate."""
    choices = []
    for row in run["rows"]:
        row = {"group": usual_group(row["form"])} | row  # which rows did not say at first
        fields = {name: row[name] for name in Choice.__dataclass_fields__ if name in row}
        for name in ("best", "best_packed"):
            require.one_of(tuple(CANDIDATES), **{name: fields[name]})
        choices.append(Choice(**fields))
    return tuple(choices)


@cache
def table(gpu: str) -> tuple[Choice, ...]:
    """Return the calibration of this GPU ('h200') from all files that begin so, empty if there is none."""
    from kernels.bench.machine import short_name

    runs = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(TABLES.glob(f"{gpu}*.json"))]
    return sum((rows_of(run) for run in runs if short_name(run["machine"]["gpu"]) == gpu), ())


@cache
def table_of_device(index: int) -> tuple[Choice, ...]:
    from kernels.bench.machine import short_name

    name = short_name(torch.cuda.get_device_name(index))
    return table(name) or table(next((like for gpu, like in ALIKE.items() if name.startswith(gpu)), name))


def near(choices: tuple[Choice, ...], w: Packed, rows: int) -> list[Choice]:
    """The measured shapes, those most like this one first, each at the first measured M that is not below `rows`."""
    form = form_of(w)
    if form == ZERO and not any(c.form == ZERO for c in choices):
        form = "int4"  # a table from before zero points were measured
    alike = [c for c in choices if c.form == form and (c.experts > 1) == (w.experts > 1)]
    reach = min(
        rows, max((c.m for c in alike), default=0)
    )  # beyond all that was measured the largest M answers
    shapes: dict = {}
    for c in sorted(alike, key=lambda c: -c.m):
        if c.m >= reach:
            shapes[c.n, c.k, c.experts, c.group] = c
    same = [c for c in shapes.values() if c.is_of(w)]
    others = sorted((c for c in shapes.values() if not c.is_of(w)), key=lambda c: distance(c, w, reach))
    return same + others


def choose(layer: Layer, rows: int, choices: tuple[Choice, ...] = ()) -> str:
    """Return the candidate's name. Without a table that knows the form, the rule of the kernels' own design decides."""
    return likeliest(layer, rows, choices)[0]


def likeliest(layer: Layer, rows: int, choices: tuple[Choice, ...] = ()) -> list[str]:
    """Return the names of candidates, the one to choose first, then others that the nearest measured shapes make likely.

    Behind a row that was measured for this very layer, and behind a rule, there are no others.
    """
    require.count(rows=rows)
    w, packed_alone = layer.packed, layer.dense is None
    found = near(choices, w, rows)
    if not found or w.kind in ("fp4", "int8"):
        return [_by_rule(layer, rows)]
    first = found[0]
    others = likely([c for c in found if c.us], w, rows, packed_alone, SIXTEEN) if first.us else []
    if not first.is_of(w) and others:
        return others
    answer = first.best_packed if packed_alone else first.best
    return [answer] if first.m == rows else [answer, *(name for name in others if name != answer)]


def _by_rule(layer: Layer, rows: int) -> str:
    w, packed_alone = layer.packed, layer.dense is None
    if w.kind in ("fp4", "int8"):
        if rows > TILE_UP_TO or (w.kind == "int8" and not takes(w)):
            return LIBRARY if packed_alone else SIXTEEN
        small = w.n * w.k < LARGE and rows <= DIRECT_UP_TO.get(w.group, 0)
        return "ring" if takes(w) and not small else "direct"
    large = w.n * w.k * w.experts >= RING_WEIGHTS
    if takes(w) and w.kind == "int4" and (RING_FROM if large else STREAM_UP_TO + 1) <= rows <= TILE_UP_TO:
        return "ring"
    if rows <= STREAM_UP_TO:
        return "stream"
    if rows <= TILE_UP_TO:
        return "tile"
    return SIXTEEN if layer.dense is not None else LIBRARY


# With the configuration that the kernel chooses for the shape.
OWN_PICK = {"stream": stream, "tile": tile, "ring": ring, "direct": direct}


def linear(x, layer: Layer, out=None, offsets=None, most=None, choices=None) -> torch.Tensor:
    """out (rows, N) = x (rows, K) times the layer's weight, by the fastest kernel known for these rows here.

    Rows of several experts are in expert order. With `offsets` they may differ in number, and then the library, which
    needs equal numbers, is left out. Nothing waits for the GPU, so a call may be captured in a graph.
    """
    must(
        isinstance(layer, Layer), "layer", "a Layer", type(layer).__name__, "make one with candidates.layer()"
    )
    w = layer.packed
    if choices is not None:
        x, out, each = check_layer(x, w, out, offsets, most)
        if out.numel() and each:
            _run(choose(layer, each, choices), x, layer, out, offsets, most)
        return out
    key = form(x), form(out), form(offsets), most, type(most), layer.dense is None
    given = w.parts if offsets is None else (offsets, *w.parts)
    ready = w.replays.get(key)
    if ready:
        made = x.new_empty(x.shape[0], w.n) if out is None else out
        if ready(x, made, *given):
            return made
    if ready is False:  # checked before, and a library's product, which nothing replays
        made = x.new_empty(x.shape[0], w.n) if out is None else out
        return _run(w.chosen[key], x, layer, made, offsets, most)
    rows, out, each = check_layer(x, w, out, offsets, most)
    if not out.numel() or not each:
        return out
    name = w.settled.get((each, layer.dense is None)) or choose(
        layer, each, table_of_device(x.device.index or 0) if x.is_cuda else ()
    )
    if rows is not x:  # a copy, since x doesn't have the kernels' layout
        return _run(name, rows, layer, out, offsets, most)
    with w.replays.recording(key, x, out, *given):
        _run(name, x, layer, out, offsets, most)
    if w.replays.get(key) is False:
        w.chosen[key] = name
    return out


def _run(name: str, x, layer: Layer, out, offsets, most) -> torch.Tensor:
    if offsets is not None:
        each = x.shape[0] if most is None else most
        run = direct if layer.packed.kind == "fp4" else stream if each <= STREAM_UP_TO else tile
        if name in CANDIDATES and CANDIDATES[name].ragged:
            return CANDIDATES[name].call(x, layer, out, offsets=offsets, most=most)
        return run(x, layer.packed, out, offsets, most)
    if name in OWN_PICK:
        return OWN_PICK[name](x, layer.packed, out)
    return CANDIDATES[name].call(x, layer, out)
