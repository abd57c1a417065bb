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
            "the scales follow one after another here: each is for `group` neighbouring columns, so repeat it, np.repeat",
            error(
                s="np.tile(scales.astype(float), (1, group))", z="np.repeat(zeros.astype(float), group, 1)"
            ),
        ),
        "no zero point": (
            "the zero point is not subtracted: a weight is (code - zero) times its scale",
            error(stands="codes.astype(float) * s"),
        ),
        "subtracted in uint8": (
            "code - zero is below 0 for half of the codes and uint8 has no -1: widen both before you subtract",
            error(z="np.repeat(zeros, group, 1)", stands="(codes - z) * s"),
        ),
        "subtracted in uint8, scaled in fp16": (
            "code - zero is below 0 for half of the codes and uint8 has no -1: widen codes, zero points and scales first",
            error(s="np.repeat(scales, group, 1)", z="np.repeat(zeros, group, 1)", stands="(codes - z) * s"),
        ),
        "eight always": (
            "the zero point is not always 8: each group has its own",
            error(stands="(codes.astype(float) - 8) * s"),
        ),
        "groups taken in turns": (
            "neighbours share a scale: repeat each scale `group` times, one after the other, rather than the row of scales",
            error(
                s="np.tile(scales.astype(float), (1, group))", z="np.tile(zeros.astype(float), (1, group))"
            ),
        ),
        "no root": (
            "this is the ratio of the squares: a root is missing",
            error(relative="(off**2).sum() / (w**2).sum()"),
        ),
        "of magnitudes": (
            "the root of the mean square is asked for: this is a ratio of mean magnitudes",
            error(relative="np.abs(off).sum() / np.abs(w).sum()"),
        ),
        "not relative": (
            "the error is asked for as a share of the weights' own root mean square",
            error(relative="np.sqrt((off**2).mean())"),
        ),
        "of the weights it gives": (
            "the share is of w as it was, not of what the codes stand for",
            error(relative="np.sqrt((off**2).sum() / (stands**2).sum())"),
        ),
        "the largest in no steps": (
            "the second number counts in steps: each error over its own group's scale",
            error(steps="np.abs(off).max()"),
        ),
        "in steps of the largest scale": (
            "each error counts in steps of its own group's scale, and the largest of these is asked for: this is the largest error over the largest scale",
            error(steps="np.abs(off).max() / s.max()"),
        ),
    },
)
