"""Which kernel family at which M: the source's rule as a map over M, or what calibration found at each measured M."""

from widgets.charts import Box, axis_x, log, text_width
from widgets.quantization_layouts.kbit_model import Result
from widgets.scene import line, rect, text

SCALAR, MMA, LIBRARY = "scalar GEMV", "MMA", "dequant + library"
CALIBRATED_LIBRARY = "dequantize + library"
SAID = {
    SCALAR: "scalar GEMV",
    MMA: "tensor cores",
    LIBRARY: "dequantize, then a library GEMM",
    CALIBRATED_LIBRARY: "dequantize + library",
}
SHORT = {SCALAR: "GEMV", MMA: "MMA", LIBRARY: "dequant + library", CALIBRATED_LIBRARY: "dequant"}
MOST_M = 1088


def _size(id: str, name: str, place: float, rise: float, at: Box, low: float) -> list[dict]:
    """A size that the session sees: a line down to its place, named on the side that has room."""
    left = place - 6 - text_width(name, "small", True) > 0
    return [
        line(f"{id}-at", place, at.y - rise - 8, place, low, "now", name),
        text(
            f"{id}-name",
            place + (-6 if left else 6),
            at.y - rise,
            name,
            "now",
            "small",
            "end" if left else "start",
            bold=True,
        ),
    ]


def _box(
    i: int, left: float, right: float, at: Box, family: str, name: str, tip: str, used: bool, size: str
) -> list[dict]:
    return [
        rect(f"lane{i}", left + 1, at.y, right - left - 2, at.h, "primary" if used else "idle", tip),
        text(
            f"lane{i}-name",
            (left + right) / 2,
            at.y + 21,
            name,
            "inverse" if used else "ink",
            size,
            "middle",
            on="" if used else "idle",
        ),
    ]


def ruled(r: Result, at: Box) -> list[dict]:
    """The dispatch rule of dense layers as a map over M, with the two sizes a session sees."""
    x, wide = log(1, MOST_M, at.x, at.right), at.w > 400
    marks = [text("lane-title", 0, at.y - 48, "Which kernel a dense layer takes at M rows", bold=True)]
    # the two sizes lie under the map: they are read above and below it, and strike no name out
    marks += _size("decode", f"decode: M = {r.decode_m}", x(r.decode_m), 10, at, at.bottom + 6)
    marks += _size("prefill", f"with prefill: M = {r.prefill_m}", x(r.prefill_m), 26, at, at.bottom + 6)
    for i, (family, first, last) in enumerate(((SCALAR, 1, 4), (MMA, 5, 16), (LIBRARY, 17, MOST_M))):
        left, right = x(first - 0.5) if i else at.x, x(last + 0.5)
        tip = f"{SAID[family]}: M from {first}" + ("" if last == MOST_M else f" to {last}")
        name, used = (SAID if wide else SHORT)[family], family in (r.decode_family, r.prefill_family)
        marks += _box(i, left, right, at, family, name, tip, used, "body" if wide else "small")
    ticks = (1, 4, 16, 64, 256, 1024) if wide else (4, 16, 64, 256)
    return marks + axis_x("m", x, at.bottom + 6, "rows of the matmul (M)", ticks=ticks)


def counted(r: Result, at: Box) -> list[dict]:
    """For each measured M, the family that is fastest at most of the seven shapes; those that the session takes are lit."""
    wide, pitch = at.w > 400, at.w / len(r.cells)
    taken = {r.counted_m} | ({r.prefill_m} if r.prompt_share else set())
    middle = {cell.m: at.x + (i + 0.5) * pitch for i, cell in enumerate(r.cells)}
    whole = len(r.shapes)
    title = f"k = {r.k}: the fastest kernel at each measured M"
    marks = [text("lane-title", 0, at.y - 48, title, bold=True)]
    marks += _size("decode", f"decode: M = {r.decode_m}", middle[r.counted_m], 10, at, at.y)
    if r.prompt_share:
        marks += _size("prefill", f"with a prompt: M = {r.prefill_m}", middle[r.prefill_m], 26, at, at.y)
    for i, cell in enumerate(r.cells):
        left, of = at.x + i * pitch, f"{cell.shapes} of {whole}"
        name = (SAID if wide else SHORT)[cell.family]
        tip = f"M = {cell.m}: {SAID[cell.family]} is fastest at {of} shapes"
        marks += _box(
            i, left, left + pitch, at, cell.family, name, tip, cell.m in taken, "body" if wide else "small"
        )
        marks += [
            text(f"lane{i}-m", middle[cell.m], at.bottom + 17, f"M = {cell.m}", "ink", "small", "middle"),
            text(
                f"lane{i}-of",
                middle[cell.m],
                at.bottom + 33,
                f"{of} shapes" if wide else of,
                "muted",
                "small",
                "middle",
            ),
        ]
    return marks
