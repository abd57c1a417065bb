"""python -m grader build [TOPIC ...] [--check]"""

import argparse
import sys
import time
from pathlib import Path

from .disk import clear, compare, put, strays
from .make import make, sources

ROOT = Path(__file__).parents[2]


def _options(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m grader build", description=__doc__)
    parser.add_argument(
        "topics", nargs="*", metavar="TOPIC", help="a slug such as gemm_tiling, by default all"
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing, and fail on any byte of difference"
    )
    return parser.parse_args(argv)


def main(argv: list[str], root: Path = ROOT) -> int:
    options, start = _options(argv), time.perf_counter()
    if options.topics and not sources(root, options.topics):
        print(f"topic must be one with a text notebook, got {' '.join(options.topics)}", file=sys.stderr)
        return 64
    build = make(root, options.topics)
    bad, done = list(build.refused), []
    if options.check:
        bad += compare(root, build)
    else:
        done = put(root, build) + ([] if options.topics else clear(root, build))
    if not options.topics:
        bad += [f"{name}: is not built from any text. Remove it" for name in strays(root, build)]
    if not any(root.glob("solutions/*/*.md")):
        done.append("solutions/ holds no texts here, so labs/ stays as it is. Only lessons are built")
    for line in done + bad:
        print(line)
    made = [sum(name.startswith(room) for name in build.files) for room in ("course", "solutions", "labs")]
    verdict = f"{len(bad)} refused" if bad else "all as their texts say"
    seconds = time.perf_counter() - start
    print(f"{made[0]} lessons, {made[1]} solutions, {made[2]} lab files: {verdict} ({seconds:.1f} s)")
    return 1 if bad else 0
