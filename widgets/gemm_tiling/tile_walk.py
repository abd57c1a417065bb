"""Walk the tiles of C wave after wave, and show the bands of A and B that each reads, and why groups need fewer."""

from dataclasses import replace

from kernels.machines import MACHINES
from widgets import units
from widgets.controls import powers_of_two, select
from widgets.declare import Declaration, Prediction, Stepper
from widgets.gemm_tiling import tile_walk_picture as picture
from widgets.gemm_tiling.tile_walk_model import ELEM_BYTES, Result, best_groups, run
from widgets.scene import WIDE, Column, Scene, figure, table

BM = powers_of_two("bm", "Tile rows (bm)", 128, 16, 256)
BN = powers_of_two("bn", "Tile columns (bn)", 128, 16, 256)


def _formula(r: Result, wave: int) -> tuple[tuple[str, str], ...]:
    said = []
    for id, name, walk in (("row", "row by row", r.row_walk), ("grouped", "in groups", r.grouped_walk)):
        one = walk.waves[wave]
        said.append(
            (
                f"a wave {name} = ({{a_{id}:bands of A}} · {{bm}} + {{b_{id}:bands of B}} · {{bn}}) · {{k}} · bytes",
                f"({{a_{id}:{one.a_band_count}}} · {{bm:{r.bm}}} + {{b_{id}:{one.b_band_count}}} · {{bn:{r.bn}}}) · "
                f"{{k:{r.k}}} · {r.elem_bytes} = {units.si_bytes(one.bytes_read)}",
            )
        )
    return tuple(said)


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
        return "With one row every order reads all of B. Only fewer bytes can help."
    if r.tiles_m == 1:
        return "A single row of tiles has only one order. A larger batch or fewer bytes can help."
    if r.group_m == 1:
        least = f" {_least(r)}" if r.best_group > 1 else ""
        share = "all" if r.row_walk.waves[0].b_band_count == r.tiles_n else "much"
        return f"Row by row, a wave is a thin strip that reads {share} of B.{least}"
    best = _least(r)
    if r.total_ratio < 1:
        return f"This group's wave is a strip too, and reads more than row by row. {best}"
    if r.total_ratio < 1.02:
        return f"This group's waves are no squarer than rows, and read as much. {best}"
    if r.group_m in (good := best_groups(r)):
        others = " and ".join(str(group) for group in good if group != r.group_m)
        rival = f" Groups of {others} are as good." if others else ""
        ratio = units.times(r.total_ratio, 2)
        return f"Nearly square waves read about {ratio} less in all than rows.{rival}"
    if r.group_m > r.best_group:
        return f"A group this high turns the wave into a strip again, standing up. {best}"
    return f"A wave is one big tile: the squarer it is, the less it reads. {best}"


def _least(r: Result) -> str:
    return f"Groups of {' and '.join(map(str, best_groups(r)))} read least."


def _bands(count: int) -> str:
    return "1 band" if count == 1 else f"{units.count(count)} bands"


def _caption(r: Result, wave: int) -> str:
    row, grouped = r.row_walk.waves[wave], r.grouped_walk.waves[wave]
    steps = len(r.row_walk.waves)
    shown = f" (the first {steps} are steps here)" if steps < r.wave_count else ""
    said = f"Wave {wave + 1} of {units.count(r.wave_count)}{shown}"
    first = f"{_bands(row.a_band_count)} of A and {row.b_band_count} of B"
    if (row.a_bands, row.b_bands) == (grouped.a_bands, grouped.b_bands):
        return f"{said}: both walks read {first}."
    return f"{said}: row by row reads {first}, groups {grouped.a_band_count} and {grouped.b_band_count}."


def frames(r: Result, measured: dict | None = None, width: int = WIDE) -> list[Scene]:
    row_at, grouped_at, below, race_at, height = picture.places(width)
    titles = ("Row by row", f"In groups of {r.group_m}" if r.group_m > 1 else "Groups of 1: the same")
    fixed = picture.still("row", row_at, titles[0], "hot", r)
    fixed += picture.still("grouped", grouped_at, titles[1], "primary", r)
    small, race = picture.race(r, race_at)
    fixed += picture.thick(r, row_at) + small
    edge, shared = picture.group_edge(grouped_at, r), _table(r)
    counted = [
        replace(at, x=at.x - picture.BAND - 5, y=below, w=at.w + picture.BAND + 5)
        for at in (row_at, grouped_at)
    ]
    legend = (
        ("now", f"the wave: {units.counted(r.programs, 'program')}, a tile each"),
        ("secondary", "what it reads of A and B"),
    )
    scenes = []
    for wave, (one, other) in enumerate(zip(r.row_walk.waves, r.grouped_walk.waves, strict=True)):
        row = figure("read row by row so far", r.row_walk.read_so_far[wave], units.si_bytes, "hot")
        grouped = figure(
            f"read in groups of {r.group_m}",
            r.grouped_walk.read_so_far[wave],
            units.si_bytes,
            "primary",
        )
        least = figure("as much row by row, so far", r.ratios[wave], units.times)
        share = figure("of C done by each", r.shares[wave], _done)
        scenes.append(
            Scene(
                summary=f"C takes {units.counted(r.wave_count, 'wave')} of {units.counted(r.programs, 'program')}; when each walk "
                f"has done {share.text} of C, row by row has read {row.text}, {least.text} the bytes of "
                f"groups of {r.group_m}, {grouped.text}.",
                takeaway=_takeaway(r),
                marks=fixed
                + picture.panel("row", titles[0], row_at, one, wave, r)
                + picture.panel("grouped", titles[1], grouped_at, other, wave, r)
                + picture.bands("row", counted[0], one, r)
                + picture.bands("grouped", counted[1], other, r)
                + edge
                + race(wave),
                figures=(row, grouped, least, share),
                table=shared,
                height=height,
                formula=_formula(r, wave),
                caption=_caption(r, wave),
                width=width,
                legend=legend,
            )
        )
    return scenes


def start(r: Result) -> int:
    """Open when both are well under way, and a wave still has its whole shape."""
    return len(r.ratios) * 3 // 4


def _done(share: float) -> str:
    return units.percent(share, 0 if share == 1 or share > 0.1 else 1)


SIMULATOR = Declaration(
    title="Tile walk and reuse",
    question="In which order should programs walk the tiles of C to read the least?",
    controls=(
        powers_of_two("m", "Rows of A (M)", 8192, 1, 8192, help="How many tokens are in flight."),
        BM,
        BN,
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
        "Groups of 32": {"group_m": 32},
        "Tall tile, groups of 4": {"bm": 256, "bn": 64, "group_m": 4},
        "Decode, M = 1": {"m": 1},
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
    source="GEMM & MoE kernels; Real kernels",
)
