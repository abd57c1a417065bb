"""Wave after wave over the tiles of C: which bands of A and B each reads, and why groups make them fewer."""

from kernels.machines import MACHINES
from widgets import units
from widgets.controls import powers_of_two, select
from widgets.declare import Declaration, Prediction, Stepper
from widgets.gemm_tiling import tile_walk_picture as picture
from widgets.gemm_tiling.tile_walk_model import ELEM_BYTES, Result, Stand, run
from widgets.scene import WIDE, Column, Scene, beside_model, figure, only, table, text


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


def _formula(r: Result, stand: Stand) -> tuple[tuple[str, str], ...]:
    ended = picture.done(r, stand.grouped)
    wave, bm, bn = r.grouped_walk.waves[0 if ended else stand.grouped], f"{{bm:{r.bm}}}", f"{{bn:{r.bn}}}"
    stage, reuse = units.binary_bytes(r.stage_bytes), units.number(r.reuse_flop_per_element)
    per_byte = units.number(r.tile_flop_per_byte)
    words = "{wave} = ({a_grouped:bands of A}·{bm} + {b_grouped:bands of B}·{bn})·{k}·bytes"
    bands = f"({{a_grouped:{wave.a_band_count}}}·{bm} + {{b_grouped:{wave.b_band_count}}}·{bn})"
    if ended:  # no band is drawn any more: an earlier wave stands for all
        lit = ("bm", "bn", "k")
        words, bands = f"first {only(lit, words)}", only(lit, bands)
    return (
        (
            "{tile:reuse} = 2·{bm}·{bn} / ({bm} + {bn})",
            f"2·{bm}·{bn} / ({bm} + {bn}) = {reuse} FLOP per element, {per_byte} per byte",
        ),
        (
            words,
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
    if r.total_ratio < 1:
        return "A group this high makes the wave a tall strip, and it reads more than row by row."
    return f"A wave is one big tile. The squarer it is, the less it reads: {units.times(r.total_ratio)} less here."


def _bands(count: int) -> str:
    return "1 band" if count == 1 else f"{units.count(count)} bands"


def _caption(r: Result, stand: Stand) -> str:
    row, grouped = r.row_walk.waves[stand.row], r.grouped_walk.waves[stand.grouped]
    steps = len(r.row_walk.waves)
    shown = f", of which the first {steps} are steps here" if steps < r.wave_count else ""
    if stand.row == stand.grouped == r.wave_count - 1 and r.wave_count > 1:
        return f"Both are done with all {units.count(r.wave_count)} waves."
    if stand.row == stand.grouped:
        return (
            f"Wave {stand.row + 1} of {units.count(r.wave_count)}{shown}: row by row it reads "
            f"{_bands(row.a_band_count)} of A and {row.b_band_count} of B, in groups {grouped.a_band_count} and "
            f"{grouped.b_band_count}."
        )
    ended = [
        name
        for name, number in (("Row by row", stand.row), (f"The walk in groups of {r.group_m}", stand.grouped))
        if picture.done(r, number)
    ]
    if ended:
        other = stand.grouped if stand.row == r.wave_count - 1 else stand.row
        return f"{ended[0]} is done. With as many bytes the other is at wave {other + 1} of {units.count(r.wave_count)}."
    return (
        f"Row by row is at wave {stand.row + 1} of {units.count(r.wave_count)}{shown}, groups at wave {stand.grouped + 1}: "
        f"these read {_bands(row.a_band_count)} of A and {row.b_band_count} of B, and {grouped.a_band_count} and "
        f"{grouped.b_band_count}."
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
    least = figure("fewer bytes for the same waves", r.total_ratio, units.times)
    scenes = []
    for stand in r.race:
        budget = max(r.row_walk.read_so_far[stand.row], r.grouped_walk.read_so_far[stand.grouped])
        both = figure("read by each, at most", budget, units.si_bytes)
        row = figure("of C done row by row", stand.row_share, _done, "hot", "read_row")
        grouped = figure(
            f"of C done in groups of {r.group_m}", stand.grouped_share, _done, "primary", "read_grouped"
        )
        scenes.append(
            Scene(
                summary=f"C takes {units.counted(r.wave_count, 'wave')} of {units.counted(r.programs, 'program')}; when each walk has read "
                f"at most {both.text}, row by row has done {row.text} of C and groups of {r.group_m} have done "
                f"{grouped.text}; for the same waves row by row reads {least.text} the bytes.",
                takeaway=_takeaway(r),
                marks=fixed
                + picture.panel("row", titles[0], "hot", row_at, r.row_walk.waves[stand.row], stand.row, r)
                + picture.panel(
                    "grouped",
                    titles[1],
                    "primary",
                    grouped_at,
                    r.grouped_walk.waves[stand.grouped],
                    stand.grouped,
                    r,
                )
                + edge
                + read(stand)
                + ladder(stand),
                figures=(row, grouped, both, least),
                table=shared,
                height=height,
                formula=_formula(r, stand),
                beside=known,
                caption=_caption(r, stand),
                width=width,
            )
        )
    return scenes


def start(r: Result) -> int:
    """Open when one walk is done and the other isn't. Of two that read alike, in the midst."""
    return r.finish if r.total_ratio != 1 else len(r.race) // 2


def _done(share: float) -> str:
    return units.percent(share, 0 if share == 1 or share > 0.1 else 1)


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
    stepper=Stepper("wave", frames, start),
    prediction=Prediction(
        "132 programs run at once, each on a 128 × 128 tile of an 8192 square GEMM. Walking in groups of "
        "8 rows of tiles instead of row by row, how many times fewer bytes do all waves together read?",
        "total_ratio",
        "times fewer",
        0.15,
    ),
    measures={
        "tile_flop_per_byte": "FLOP for each byte that the kernel's programs loaded",
        "wave_flop_per_byte": "FLOP for each byte when what a wave loads twice counts once",
    },
    source="GEMM & MoE kernels; Real kernels",
)
