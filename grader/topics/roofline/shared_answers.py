"""Words that right answers of roofline share."""

ID, ARANGE = "tl.program_id(0)", "tl.arange(0, "


def anyhow(kernel: str, line: str) -> dict:
    """Return forms that any first kernel may take. `line` is the first line of its body."""
    return {
        "one warp, one stage": (
            (),
            [(f'"kernel": {kernel},', f'"kernel": {kernel}, "num_warps": 1, "num_stages": 1,')],
        ),
        "two warps": ((), [(f'"kernel": {kernel},', f'"kernel": {kernel}, "num_warps": 2,')]),
        "a print on the device": (
            (),
            [(line, f'if {ID} == 0:\n        tl.device_print("program", {ID})\n    {line}')],
        ),
        "a barrier": ((), [(line, f"tl.debug_barrier()\n    {line}")]),
        "a plan made by dict()": ((), [('{"steps": [{', "dict(steps=[{"), ("}]}", "}])")]),
    }


def tile(m: int, n: int, was: tuple[int, int] = (16, 32)) -> list[tuple[str, str]]:
    return [
        (f'"BLOCK_M": {was[0]}, "BLOCK_N": {was[1]}', f'"BLOCK_M": {m}, "BLOCK_N": {n}'),
        (
            f"(triton.cdiv(p.M, {was[0]}), triton.cdiv(p.N, {was[1]}))",
            f"(triton.cdiv(p.M, {m}), triton.cdiv(p.N, {n}))",
        ),
    ]
