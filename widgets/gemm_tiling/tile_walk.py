"""Wave after wave over the tiles of C: which bands of A and B each reads, and why groups make them fewer."""

from kernels.machines import MACHINES
from widgets import units
from widgets.controls import powers_of_two, select
from widgets.declare import Declaration, Prediction, Stepper
from widgets.gemm_tiling import tile_walk_picture as picture
from widgets.gemm_tiling.tile_walk_model import ELEM_BYTES, Result, run
from widgets.scene import WIDE, Column, Scene, beside_model, figure, table, text


def _one_row(r: Result, width: int, at) -> list[dict]:
    if r.tiles_m > 1:
        return []
    words = "One row of tiles: all of B is read," if width == WIDE else "One row of tiles:"
    more = "whatever the order." if width == WIDE else "all of B is read."
    return [
        text("one-row", at.x, at.y + 70, words, "muted"),
        text("one-row-more", at.x, at.y + 88, more, "muted"),
    ]


def _beside(r: Result, measured: dict) -> tuple[str, ...]:
    modelled = {"tile_flop_per_byte": r.tile_flop_per_byte, "wave_flop_per_byte": r.grouped.flop_per_byte}
    return tuple(
        beside_model(f"FLOP per byte, {name}", measured[key], modelled[key])
        for key, name in picture.MEASURED.items()
        if key in measured
    )


def _formula(r: Result, number: int) -> tuple[tuple[str, str], ...]:
    wave, bm, bn = r.grouped_walk.waves[number], f"{{bm:{r.bm}}}", f"{{bn:{r.bn}}}"
    stage, reuse = units.binary_bytes(r.stage_bytes), units.number(r.reuse_flop_per_element)
    per_byte = units.number(r.tile_flop_per_byte)
    bands = f"({{a_grouped:{wave.a_band_count}}}·{bm} + {{b_grouped:{wave.b_band_count}}}·{bn})"
    return (
        (
            "{tile:reuse} = 2·{bm}·{bn} / ({bm} + {bn})",
            f"2·{bm}·{bn} / ({bm} + {bn}) = {reuse} FLOP per element, {per_byte} per byte",
        ),
        (
            "{wave} = ({a_grouped:bands of A}·{bm} + {b_grouped:bands of B}·{bn})·{k}·bytes",
            f"{bands}·{{k:{r.k}}}·{r.elem_bytes} = {units.si_bytes(wave.bytes_read)}",
        ),
        (
            "one step of K = ({bm} + {bn})·{bk}·bytes",
            f"({bm} + {bn})·{{bk:{r.bk}}}·{r.elem_bytes} = {stage} on chip",
        ),
    )


def _table(r: Result):
    columns = (
        "walk",
        "waves",
        Column("bands of A, first wave", show=units.count),
        Column("bands of B, first wave", show=units.count),
        Column("read by the first wave", "B", units.si_bytes),
        Column("read by all waves shown", "B", units.si_bytes),
        Column("FLOP per byte, first wave"),
    )
    walks = (("row by row", r.row_walk), (f"groups of {r.group_m}", r.grouped_walk))
    return table(
        columns,
        [
            (
                name,
                r.wave_count,
                walk.waves[0].a_band_count,
                walk.waves[0].b_band_count,
                walk.waves[0].bytes_read,
                walk.read_so_far[-1],
                walk.waves[0].flop_per_byte,
            )
            for name, walk in walks
        ],
    )


def _takeaway(r: Result) -> str:
    if min(r.bm, r.bn) == 1:
        return "With one row, reuse stays below 2 in any tile. Only fewer bytes can help."
    if r.tiles_m == 1:
        return "A single row of tiles has only one order. A larger batch or fewer bytes can help."
    if r.group_m == 1:
        return "Row by row, a wave is a thin strip that reads nearly all of B."
    if r.saving_ratio < 1:
        return "A group this high makes the wave a tall strip, and it reads more than row by row."
    return f"A wave is one big tile. The squarer it is, the less it reads: {units.times(r.saving_ratio)} less here."


def _bands(count: int) -> str:
    return "1 band" if count == 1 else f"{units.count(count)} bands"


def _caption(r: Result, number: int) -> str:
    row, grouped = (walk.waves[number] for walk in (r.row_walk, r.grouped_walk))
    steps = len(r.row_walk.waves)
    shown = f", of which the first {steps} are steps here" if steps < r.wave_count else ""
    return (
        f"Wave {number + 1} of {units.count(r.wave_count)}{shown}: row by row it reads {_bands(row.a_band_count)} of A and "
        f"{row.b_band_count} of B, in groups {grouped.a_band_count} and {grouped.b_band_count}."
    )


def frames(r: Result, measured: dict | None = None, width: int = WIDE) -> list[Scene]:
    measured = measured or {}
    tile_at, row_at, grouped_at, read_at, ladder_at, height = picture.places(width)
    titles = ("Row by row", f"In groups of {r.group_m}")
    fixed = picture.tile(r, tile_at) + picture.still("row", row_at, "C, row by row", r)
    fixed += picture.still("grouped", grouped_at, f"C, in groups of {r.group_m}", r) + _one_row(
        r, width, row_at
    )
    edge, shared, known = picture.group_edge(grouped_at, r), _table(r), _beside(r, measured)
    read, ladder = picture.read(r, read_at), picture.ladder(r, measured, ladder_at)
    reuse = figure("FLOP per element, one tile", r.reuse_flop_per_element, term="tile")
    scenes = []
    for i, saving in enumerate(r.savings):
        row = figure("row by row, so far", r.row_walk.read_so_far[i], units.si_bytes, "hot", "read_row")
        grouped = figure(
            f"groups of {r.group_m}, so far",
            r.grouped_walk.read_so_far[i],
            units.si_bytes,
            "primary",
            "read_grouped",
        )
        ratio = figure("fewer bytes", saving, units.times)
        scenes.append(
            Scene(
                summary=f"A {r.bm} × {r.bn} tile does {reuse.text} FLOP for each element it loads; after {i + 1} of "
                f"{units.counted(r.wave_count, 'wave')} of {r.programs} programs, {row.text} are read row by row and "
                f"{grouped.text} in groups of {r.group_m}, a saving of {ratio.text}.",
                takeaway=_takeaway(r),
                marks=fixed
                + picture.panel("row", titles[0], row_at, r.row_walk.waves[i], i, r)
                + picture.panel("grouped", titles[1], grouped_at, r.grouped_walk.waves[i], i, r)
                + edge
                + read(i)
                + ladder(i),
                figures=(reuse, row, grouped, ratio),
                table=shared,
                height=height,
                formula=_formula(r, i),
                beside=known,
                caption=_caption(r, i),
                width=width,
            )
        )
    return scenes


SIMULATOR = Declaration(
    title="Tile walk and reuse",
    question="In which order should programs walk the tiles of C to read the least?",
    controls=(
        powers_of_two("m", "Rows of A (M)", 8192, 1, 8192, help="How many tokens are in flight."),
        picture.BM,
        picture.BN,
        picture.GROUP,
        powers_of_two("n", "Columns of B (N)", 8192, 256, 8192, more=True),
        powers_of_two("k", "Depth (K)", 8192, 256, 8192, more=True),
        powers_of_two(
            "bk",
            "Tile depth (bk)",
            64,
            16,
            256,
            more=True,
            help="Sets the shared memory of one step, and nothing else here.",
        ),
        select("dtype", "Element type", "fp16", list(ELEM_BYTES), more=True),
        select(
            "machine_name",
            "GPU",
            "H200",
            list(MACHINES),
            more=True,
            help="Its multiprocessors run one program each at a time.",
        ),
    ),
    presets={
        "8192 square, groups of 8": {},
        "Walk row by row": {"group_m": 1},
        "Tall tile, groups of 4": {"bm": 256, "bn": 64, "group_m": 4},
        "Decode, M = 1": {"m": 1},
        "Batch of 64, tiles of 64 rows": {"m": 64, "bm": 64},
    },
    run=run,
    stepper=Stepper("wave", frames),
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
)
