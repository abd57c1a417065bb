"""List the mistakes of *quantize groups*, a row each."""

from grader.questions.rows import in_cells
from grader.topics.quantization_layouts.shared_concepts import quantize_groups

QUANTIZE = """blocks = w.reshape(len(w), -1, group)
low, high = {low}, {high}
wide = {wide} if zero_points else {symmetric}
scales = wide.astype(np.float16)
kept = {kept}.astype(float)
step = {step}
zeros = {zeros} if zero_points else np.full(scales.shape, 8.0)
codes = {rounded} + zeros[..., None]
codes = {cut}
return codes.reshape(w.shape).astype(np.uint8), scales, zeros.astype(np.uint8)"""
RIGHT_QUANTIZE = {
    "low": "np.minimum(blocks.min(-1), 0)",
    "high": "np.maximum(blocks.max(-1), 0)",
    "wide": "(high - low) / 15",
    "symmetric": "np.abs(blocks).max(-1) / 7",
    "kept": "scales",
    "step": "np.divide(1.0, kept, out=np.zeros_like(kept), where=kept > 0)",
    "zeros": "np.clip(np.rint(-low * step), 0, 15)",
    "rounded": "np.rint(blocks * step[..., None])",
    "cut": "np.clip(codes, 0 if zero_points else 1, 15)",
}


def quantize(**changed: str) -> str:
    return QUANTIZE.format(**RIGHT_QUANTIZE | changed)


MISTAKES = in_cells(
    "quantize_groups",
    "w, group, zero_points",
    {
        "cut off": (
            "round codes to the nearest integer, np.rint: here the fraction is cut off",
            quantize(rounded="np.floor(blocks * step[..., None])"),
        ),
        "an eighth": (
            "without zero points the codes 1 to 15 represent -7 to 7 times the scale: the largest magnitude is 7 steps, not 8",
            quantize(symmetric="np.abs(blocks).max(-1) / 8"),
        ),
        "a fifteenth": (
            "without zero points the largest magnitude is 7 steps from zero, so divide it by 7: a fifteenth of the range is the scale with zero points",
            quantize(symmetric="(high - low) / 15"),
        ),
        "the scale before rounding": (
            "the codes are computed with an unrounded scale: round it to fp16 first, then divide",
            quantize(kept="wide"),
        ),
        "scales in float64": (
            "scales are stored in fp16, but these have more digits: use .astype(np.float16), and divide by the stored scale",
            quantize().replace(".astype(np.float16)", ""),
        ),
        "divided in fp16": (
            "one over the scale is rounded to fp16 as well: widen the stored scale to float64, then divide",
            quantize(
                step="np.divide(1.0, kept, out=np.zeros_like(kept), where=kept > 0).astype(np.float16).astype(float)"
            ),
        ),
        "cut off, not rounded": (
            "round codes to the nearest integer: here the digits after the point are dropped",
            quantize(rounded="np.trunc(blocks * step[..., None])"),
        ),
        "zero not in range": (
            "the range must contain 0, or the zero point may not be one of the sixteen codes: low is at most 0, and high at least 0",
            quantize(low="blocks.min(-1)", high="blocks.max(-1)"),
        ),
        "the range from 0 up": (
            "the range must contain 0, or the zero point may not be one of the sixteen codes: high is at least 0, even if every weight is negative",
            quantize(high="blocks.max(-1)"),
        ),
        "a zero point beyond the codes": (
            "if the stored scale was rounded down, -low / scale can exceed 15: clip the zero point to 0..15 as well",
            quantize(zeros="np.rint(-low * step)"),
        ),
        "halves upwards": (
            "of two equally near codes np.rint takes the even one: np.floor(x + 0.5) takes the larger",
            quantize(rounded="np.floor(blocks * step[..., None] + 0.5)"),
        ),
        "halves of zero points upwards": (
            "of two equally near codes np.rint takes the even one, for a zero point as well: np.floor(x + 0.5) takes the larger",
            quantize(zeros="np.clip(np.floor(-low * step + 0.5), 0, 15)"),
        ),
        "the sum rounded": (
            "round w / scale on its own, then add the zero point: of two equally near codes, rounding the sum may take the other",
            quantize(
                rounded="(np.rint(blocks * step[..., None] + zeros[..., None]) - zeros[..., None])",
            ),
        ),
        "the zero point before rounding": (
            "round the zero point on its own, then add it: rounding it together with the weight gives other codes",
            quantize(
                rounded="np.rint(blocks * step[..., None] - (low * step)[..., None])",
                cut="np.clip(codes - zeros[..., None], 0, 15) if zero_points else np.clip(np.rint(blocks * step[..., None]) + 8, 1, 15)",
            ),
        ),
        "not clipped": (
            "if a scale is rounded down, the largest weight can fall beyond the codes: clip to 0..15, or to 1..15 without zero points",
            quantize(cut="codes % 256"),
        ),
        "no zero points": (
            "zero_points is True, but these are the codes without zero points",
            quantize(
                wide="np.abs(blocks).max(-1) / 7",
                zeros="np.full(scales.shape, 8.0)",
                cut="np.clip(codes, 1, 15)",
            ),
        ),
        "divided by no scale": (
            "in a group whose stored scale is 0 every code equals the zero point: here it is 0 / 0, which is NaN",
            quantize(
                step="np.where(kept > 0, 1 / np.where(kept > 0, kept, 1), np.inf)",
                zeros="np.nan_to_num(np.clip(np.rint(-low * step), 0, 15))",
                cut="np.nan_to_num(np.clip(codes, 0 if zero_points else 1, 15))",
            ),
        ),
        "zero point from the top": (
            "the zero point is the code for 0, and low is that many steps below 0: zero = -low / scale",
            quantize(zeros="np.clip(np.rint(high * step), 0, 15)"),
        ),
    },
)


SHORTCUTS = {
    "groups of 128": lambda w, group, zero_points: quantize_groups(w, 128, zero_points),
    "never zero points": lambda w, group, zero_points: quantize_groups(w, group, False),
}
