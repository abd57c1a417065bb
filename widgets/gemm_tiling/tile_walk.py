"""Which tiles of A and B one wave of programs touches, and why grouping the walk makes them fewer."""

from dataclasses import dataclass

from kernels.gemm_tiling import cost
from kernels.machines import MACHINES, machine
from widgets import units
from widgets.charts import Box, axis_x, limit_up, log
from widgets.controls import powers_of_two, select
from widgets.declare import Declaration, Prediction
from widgets.scene import WIDE, Column, Scene, beside_model, circle, figure, grid, line, rect, table, text

ELEM_BYTES = {"fp16": 2, "fp8": 1}
YOURS = {"tile_flop_per_byte": "your loads", "wave_flop_per_byte": "your waves"}
LADDER, RUNG = 344, 28


@dataclass(frozen=True)
class Wave:
    """What the first programs that run at the same time read, if every band comes from HBM once."""

    a_bands: tuple[int, ...]
    b_bands: tuple[int, ...]
    a_band_count: int
    b_band_count: int
    bytes_read: int
    flop_per_byte: float
    tiles: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Result:
    m: int
    n: int
    k: int
    bm: int  # as the matrix cuts it: never more than m
    bn: int
    bk: int
    group_m: int
    dtype: str
    elem_bytes: int
    machine: str
    tiles_m: int
    tiles_n: int
    programs: int
    reuse_flop_per_element: float
    tile_flop_per_byte: float
    ridge_flop_per_byte: float
    stage_bytes: int
    row: Wave
    grouped: Wave
    saving_ratio: float


def run(m, n, k, bm, bn, bk, group_m, dtype, machine_name) -> Result:
    elem, target = ELEM_BYTES[dtype], machine(machine_name)
    ridge = target.ridge(dtype)
    bm, bn, bk = min(bm, m), min(bn, n), min(bk, k)
    tiles_m, tiles_n = -(-m // bm), -(-n // bn)

    def wave(group: int) -> Wave:
        tiles = cost.wave_tiles(0, target.sms, tiles_m, tiles_n, group)
        rows, columns = {i for i, _ in tiles}, {j for _, j in tiles}
        read = cost.bands_bytes(rows, bm, m, k, elem) + cost.bands_bytes(columns, bn, n, k, elem)
        flops = sum(2 * k * min(bm, m - i * bm) * min(bn, n - j * bn) for i, j in tiles)
        bands = tuple(sorted(rows)), tuple(sorted(columns))
        return Wave(*bands, len(rows), len(columns), read, flops / read, tuple(tiles))

    row, grouped = wave(1), wave(group_m)
    tile_reuse = cost.reuse(bm, bn)
    return Result(
        m, n, k, bm, bn, bk, group_m, dtype, elem, machine_name, tiles_m, tiles_n, len(row.tiles),
        tile_reuse, tile_reuse / elem, ridge, cost.tile_bytes(bm, bn, bk, elem),
        row, grouped, row.bytes_read / grouped.bytes_read,
    )  # fmt: skip


def _panel(id: str, x: float, title: str, wave: Wave, r: Result) -> list[dict]:
    """C as a map of tiles, the bands of A that the wave reads to its left, those of B above it."""
    room = Box(x + 46, 66, 280, 224)
    scale = min(room.w / r.n, room.h / r.m)
    box = Box(room.x, room.y, max(12, r.n * scale), max(12, r.m * scale))
    cells = [0] * (r.tiles_m * r.tiles_n)
    for i, j in wave.tiles:
        cells[i * r.tiles_n + j] = 1
    bands_of_b = f"{wave.b_band_count} of {r.tiles_n} bands of B"
    marks = [
        text(f"{id}-title", x + 46, 18, title, bold=True),
        text(f"{id}-b-name", box.x, 44, bands_of_b, "secondary", "small"),
        rect(f"{id}-b", box.x, 50, box.w, 12, "idle"),
        text(f"{id}-c-name", box.x, box.bottom + 18, f"C: {r.tiles_m} × {r.tiles_n} tiles", "muted", "small"),
        text(f"{id}-wave", max(box.right, box.x + 236), box.bottom + 18, f"■ first wave: {len(wave.tiles)}", "now", "small", "end"),
        text(f"{id}-a-name", x + 22, 76, "A", "primary", "small", "end"),
        text(f"{id}-a-count", x + 22, 92, units.count(wave.a_band_count), "primary", "small", "end"),
        rect(f"{id}-a", x + 30, box.y, 12, box.h, "idle"),
        grid(f"{id}-c", box.x, box.y, box.w, box.h, r.tiles_n, cells, ("idle", "now"),
             ("in a later wave", "in this wave"), "C tile: row {row}, column {column}"),
    ]  # fmt: skip
    for first, last in _runs(wave.b_bands):
        at, wide = box.w * first / r.tiles_n, box.w * (last + 1 - first) / r.tiles_n
        marks.append(
            rect(f"{id}-b{first}", box.x + at, 50, wide, 12, "secondary", f"B bands {first} to {last}")
        )
    for first, last in _runs(wave.a_bands):
        at, high = box.h * first / r.tiles_m, box.h * (last + 1 - first) / r.tiles_m
        marks.append(
            rect(f"{id}-a{first}", x + 30, box.y + at, 12, high, "primary", f"A bands {first} to {last}")
        )
    return marks


def _runs(bands: tuple[int, ...]) -> list[tuple[int, int]]:
    """(0, 1, 2, 5) -> [(0, 2), (5, 5)]"""
    runs: list[tuple[int, int]] = []
    for band in bands:
        if runs and band == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], band)
        else:
            runs.append((band, band))
    return runs


def _rungs(r: Result, measured: dict) -> list[tuple[str, float, str]]:
    return [
        ("one tile alone", r.tile_flop_per_byte, "secondary"),
        ("wave, row by row", r.row.flop_per_byte, "hot"),
        (f"wave, groups of {r.group_m}", r.grouped.flop_per_byte, "primary"),
        *((YOURS[key], measured[key], "measured") for key in YOURS if key in measured),
    ]


def _ladder(r: Result, rungs: list[tuple[str, float, str]]) -> list[dict]:
    """Arithmetic per byte read: one tile alone, then the wave as one big tile, beside what the GPU needs."""
    box = Box(150, LADDER, 530, 8 + RUNG * len(rungs))
    x = log(0.5, 5000, box.x, box.right)
    marks = axis_x("ladder", x, box.bottom, "FLOP per byte read", top=box.y, ticks=(1, 10, 100, 1000))
    need = f"{r.machine} needs {units.number(r.ridge_flop_per_byte)}"
    above = Box(box.x, box.y - 14, box.w, box.h + 14)
    marks += limit_up("ridge", above, x(r.ridge_flop_per_byte), need, "end")
    for i, (name, value, role) in enumerate(rungs):
        y = box.y + 20 + RUNG * i
        shown = units.number(value)
        marks += [
            text(f"rung{i}-name", box.x - 10, y + 4, name, anchor="end"),
            line(f"rung{i}-line", box.x, y, x(value), y, role),
            circle(f"rung{i}", x(value), y, 6, role, f"{name}: {shown} FLOP per byte"),
            text(f"rung{i}-value", x(value) + 12, y + 4, shown, role, bold=True),
        ]
    return marks


def _order_does_not_matter(r: Result) -> list[dict]:
    if r.tiles_m > 1:
        return []
    words = "One row of tiles: all of B is read, whatever the order."
    return [text("one-row", WIDE / 2, 190, words, "muted", anchor="middle")]


def _beside(r: Result, measured: dict) -> tuple[str, ...]:
    modelled = {"tile_flop_per_byte": r.tile_flop_per_byte, "wave_flop_per_byte": r.grouped.flop_per_byte}
    return tuple(
        beside_model(f"FLOP per byte, {YOURS[key]}", measured[key], modelled[key])
        for key in YOURS
        if key in measured
    )


def _formula(r: Result) -> tuple[tuple[str, str], ...]:
    bands = f"({r.grouped.a_band_count}·{r.bm} + {r.grouped.b_band_count}·{r.bn})"
    stage, reuse = units.binary_bytes(r.stage_bytes), units.number(r.reuse_flop_per_element)
    return (
        (
            "reuse = 2·bm·bn / (bm + bn)",
            f"2·{r.bm}·{r.bn} / ({r.bm} + {r.bn}) = {reuse} FLOP per element",
        ),
        (
            "wave = (bands of A·bm + bands of B·bn)·K·bytes",
            f"{bands}·{r.k}·{r.elem_bytes} = {units.si_bytes(r.grouped.bytes_read)}",
        ),
        (
            "one step of K = (bm + bn)·bk·bytes",
            f"({r.bm} + {r.bn})·{r.bk}·{r.elem_bytes} = {stage} in shared memory",
        ),
    )


def _table(r: Result):
    columns = (
        "walk",
        Column("bands of A", show=units.count),
        Column("bands of B", show=units.count),
        Column("bytes read", "B", units.si_bytes),
        "FLOP per byte",
    )
    walks = (("row by row", r.row), (f"groups of {r.group_m}", r.grouped))
    rows = [(name, w.a_band_count, w.b_band_count, w.bytes_read, w.flop_per_byte) for name, w in walks]
    return table(columns, rows)


def scene(r: Result, measured: dict | None = None) -> Scene:
    rungs = _rungs(r, measured or {})
    reuse = figure("FLOP per element, one tile", r.reuse_flop_per_element)
    row = figure("read row by row", r.row.bytes_read, units.si_bytes, "hot")
    grouped = figure(f"read in groups of {r.group_m}", r.grouped.bytes_read, units.si_bytes, "primary")
    saving = figure("saving", r.saving_ratio, units.times)
    thin = min(r.bm, r.bn) == 1
    return Scene(
        summary=f"A {r.bm} × {r.bn} tile does {reuse.text} FLOP for each element it loads; "
        f"the first {r.programs} programs read {row.text} row by row "
        f"and {grouped.text} in groups of {r.group_m}, a saving of {saving.text}.",
        takeaway="With one row, reuse stays below 2 whatever the tile: only fewer bytes can help."
        if thin
        else "A wave is one big tile: the squarer its outline, the fewer bytes it reads.",
        marks=_panel("row", 0, "Row by row", r.row, r)
        + _panel("grouped", 366, f"In groups of {r.group_m} rows", r.grouped, r)
        + _order_does_not_matter(r)
        + _ladder(r, rungs),
        figures=(reuse, row, grouped, saving),
        table=_table(r),
        height=LADDER + 46 + RUNG * len(rungs),
        formula=_formula(r),
        beside=_beside(r, measured or {}),
    )


SIMULATOR = Declaration(
    title="Tile walk and reuse",
    question="In which order should the tiles of C be walked, so that a wave of programs reads the least?",
    controls=(
        powers_of_two("m", "Rows of A (M)", 8192, 1, 8192, help="How many tokens are in flight."),
        powers_of_two("bm", "Tile rows (bm)", 128, 16, 256),
        powers_of_two("bn", "Tile columns (bn)", 128, 16, 256),
        powers_of_two("group_m", "Rows of tiles in a group", 8, 1, 32, help="1 walks C row by row."),
        powers_of_two("n", "Columns of B (N)", 8192, 256, 8192, more=True),
        powers_of_two("k", "Depth (K)", 8192, 256, 8192, more=True),
        powers_of_two("bk", "Tile depth (bk)", 64, 16, 256, more=True,
                      help="Sets the shared memory of one step, and nothing else here."),
        select("dtype", "Element type", "fp16", list(ELEM_BYTES), more=True),
        select("machine_name", "GPU", "H200", list(MACHINES), more=True,
               help="Its multiprocessors run one program each at a time."),
    ),
    presets={
        "8192 square, groups of 8": {},
        "Walk row by row": {"group_m": 1},
        "Tall tile": {"bm": 256, "bn": 64, "group_m": 4},
        "Decode, M = 1": {"m": 1},
        "Decode batch of 64": {"m": 64, "bm": 64},
    },
    run=run,
    scene=scene,
    prediction=Prediction(
        "132 programs run at once, each on a 128 × 128 tile of an 8192 square GEMM. Walking in groups of "
        "8 rows of tiles instead of row by row, how many times fewer bytes does this wave read?",
        "saving_ratio",
        "times fewer",
        0.15,
    ),
    measures={
        "tile_flop_per_byte": "FLOP for each byte that the kernel's programs loaded",
        "wave_flop_per_byte": "FLOP for each byte when what a wave loads twice counts once",
    },
    source="GEMM & MoE kernels; Real kernels",
)  # fmt: skip
