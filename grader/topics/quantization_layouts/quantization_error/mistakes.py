"""List the mistakes of *quantization error*, a row each."""

from grader.questions.rows import in_cells

ERROR = """s, z = {s}, {z}
stands = {stands}
off = stands - w
return {relative}, {steps}"""
RIGHT_ERROR = {
    "s": "np.repeat(scales.astype(float), group, 1)",
    "z": "np.repeat(zeros.astype(float), group, 1)",
    "stands": "(codes.astype(float) - z) * s",
    "relative": "np.sqrt((off**2).sum() / (w**2).sum())",
    "steps": "(np.abs(off) / s).max()",
}


def error(**changed: str) -> str:
    return ERROR.format(**RIGHT_ERROR | changed)


MISTAKES = in_cells(
    "quantization_error",
    "w, codes, scales, zeros, group",
    {
        "scales in turn": (
            "each scale serves `group` neighbouring columns: repeat every scale with np.repeat, not the whole row of scales",
            error(
                s="np.tile(scales.astype(float), (1, group))", z="np.repeat(zeros.astype(float), group, 1)"
            ),
        ),
        "no zero point": (
            "the zero point is not subtracted: a weight is (code - zero) times its scale",
            error(stands="codes.astype(float) * s"),
        ),
        "subtracted in uint8": (
            "code - zero is negative for about half of the codes, and uint8 has no -1: widen both before you subtract",
            error(z="np.repeat(zeros, group, 1)", stands="(codes - z) * s"),
        ),
        "subtracted in uint8, scaled in fp16": (
            "code - zero is negative for about half of the codes, and uint8 has no -1: widen codes, zero points and scales first",
            error(s="np.repeat(scales, group, 1)", z="np.repeat(zeros, group, 1)", stands="(codes - z) * s"),
        ),
        "eight always": (
            "the zero point is not always 8: each group has its own",
            error(stands="(codes.astype(float) - 8) * s"),
        ),
        "groups taken in turns": (
            "neighbouring columns share a scale: repeat each scale `group` times in a row, rather than the whole row of scales",
            error(
                s="np.tile(scales.astype(float), (1, group))", z="np.tile(zeros.astype(float), (1, group))"
            ),
        ),
        "no root": (
            "this is the ratio of the squares: a root is missing",
            error(relative="(off**2).sum() / (w**2).sum()"),
        ),
        "of magnitudes": (
            "this is a ratio of mean magnitudes: the question asks for the root mean square",
            error(relative="np.abs(off).sum() / np.abs(w).sum()"),
        ),
        "not relative": (
            "the error must be a share of the weights' root mean square",
            error(relative="np.sqrt((off**2).mean())"),
        ),
        "of the weights it gives": (
            "divide by the root mean square of w itself, not by that of the dequantized weights",
            error(relative="np.sqrt((off**2).sum() / (stands**2).sum())"),
        ),
        "the largest in no steps": (
            "the second number counts in steps: divide each error by the scale of its own group",
            error(steps="np.abs(off).max()"),
        ),
        "in steps of the largest scale": (
            "this is the largest error over the largest scale: divide each error by the scale of its own group, then take the largest",
            error(steps="np.abs(off).max() / s.max()"),
        ),
    },
)
