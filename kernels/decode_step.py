"""Let the model speak, on the course's kernels or on PyTorch (python -m kernels.decode_step [PROMPT] [--by
course|plain])."""

import argparse
import sys
import time
from importlib import import_module
from importlib.util import find_spec

import torch

from kernels.next_bottleneck import plain
from kernels.next_bottleneck.slots import Filling, filled

BY = ("course", "plain")
WIRING = "kernels.course_fillings"


def course() -> dict[str, Filling]:
    """Return the slots that the course's kernels fill, or none without kernels."""
    return import_module(WIRING).COURSE if find_spec(WIRING) else {}


def fillings(by: str = "course", **own: Filling) -> dict[str, Filling]:
    """Return a filling for every slot: the course's kernels or plain PyTorch, and `own` ones where given.

    A student edition has no tuned kernels. There plain PyTorch replaces them, and a step's `sources` says so.
    """
    if by not in BY:
        raise ValueError(f"by must be one of {', '.join(BY)}, got {by!r}; pick a listed one")
    return filled(plain.FILLINGS | (course() if by == "course" else {}), **own)


def counted(step_of, run) -> dict:
    """Return each slot's launches and bytes, by its name, while run(step) ran on a CPU.

    `step_of(mark)` makes the step and puts its fillings through mark(). It runs once before, so that costs of a first
    call don't count.
    """
    from kernels.next_bottleneck.counted import Meter
    from tilescope import launcher

    launcher.install()
    meter = Meter()
    step = step_of(meter.marked)
    run(step)
    launcher.METERS.append(meter.kernel)
    try:
        with meter.operations():
            run(step)
    finally:
        launcher.METERS.remove(meter.kernel)
    return meter.slots


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(prog="python -m kernels.decode_step", description=__doc__)
    parser.add_argument("prompt", nargs="?", default="The kernel")
    parser.add_argument("--by", choices=BY, default="course")
    parser.add_argument("--tokens", type=int, default=24)
    parser.add_argument("--temperature", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(argv)
    from kernels.next_bottleneck.cache import PagedCache
    from kernels.next_bottleneck.step import Sampling, Step, generate
    from kernels.speaking_model import kept
    from kernels.speaking_model.tokens import END

    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu" and options.by == "course":
        from tilescope import launcher

        launcher.install()
    weights, tokenizer = kept.weights().to(device), kept.tokenizer()
    given = tokenizer.encode(options.prompt)
    if not given:
        parser.error("PROMPT must hold a letter that the tokenizer knows, got none; write plain English")
    cache = PagedCache(
        weights.shape, sequences=1, most=len(given) + options.tokens, dtype=weights.dtype, device=device
    )
    step = Step(weights, cache, fillings(options.by), Sampling(options.temperature, options.seed))
    started = time.monotonic()
    said = generate(step, [given], options.tokens, END)[0]
    print(options.prompt + tokenizer.decode(said).rstrip("\n"))
    print(
        f"{len(said)} tokens by {options.by} on {device} in {time.monotonic() - started:.1f} s",
        file=sys.stderr,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
