"""List the mistakes of *subtracted*, a row each."""

from grader.questions.families import dense, one_stride, same_strides, within_limit
from grader.topics.roofline.shared_mistakes import GRID_OF_TILES, changed, gives, of_ladder

MISTAKES = of_ladder(
    ("y",),
    {
        "sign": gives(
            "the sign is reversed: the question asks for x - z",
            lambda t, c: t["z"] - t["x"],
            by=[("x - z", "z - x")],
        ),
        "sum": gives("this is x + z: subtract z", lambda t, c: t["x"] + t["z"], by=[("x - z", "x + z")]),
        "x alone": gives("this is x itself: z is missing", lambda t, c: t["x"], by=[("x - z", "x")]),
        "x's strides for z": changed(
            ("offs_m * stride_zm + offs_n * stride_zn", "offs_m * stride_xm + offs_n * stride_xn")
        ),
        "strides of x swapped": changed(
            ("offs_m * stride_xm + offs_n * stride_xn", "offs_m * stride_xn + offs_n * stride_xm")
        ),
        "y taken for dense": changed(("offs_m * stride_ym + offs_n * stride_yn", "offs_m * N + offs_n")),
        "columns without a stride": changed(("offs_n * stride_xn", "offs_n")),
        "rows masked alone": changed((" & (offs_n < N)", "")),
        "columns masked alone": changed(("(offs_m < M) & ", "")),
        "one axis of programs": changed(("tl.program_id(1)", "tl.program_id(0)")),
        "grid rounded down": changed((GRID_OF_TILES, "(max(1, p.M // 16), max(1, p.N // 32))")),
        "grid the other way round": changed(
            (GRID_OF_TILES, GRID_OF_TILES.replace("M", "?").replace("N", "M").replace("?", "N"))
        ),
        "x loaded twice": changed(
            (
                "    z =",
                "    x = (x + tl.load(x_ptr + offs_m * stride_xm + offs_n * stride_xn, mask=mask, volatile=True)) / 2\n    z =",
            ),
            part="traffic",
        ),
    },
)


SHORTCUTS = {
    **{f"stride {axis} of {name} taken for 1": one_stride(name, axis) for name in "xzy" for axis in (0, 1)},
    **{f"{name} taken for dense": dense(name) for name in "xzy"},
    "x's strides for z": same_strides("x", "z"),
    "x's strides for y": same_strides("x", "y"),
    "M up to 128": within_limit("M", 128),
    "N up to 128": within_limit("N", 128),
}
