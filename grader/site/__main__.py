"""python -m grader.site [--out site] [--instructor] [--numpy PLACE]: the labs' pages, into a folder that python -m
widgets.site has made."""

import argparse
import sys
from pathlib import Path

from grader.site import build, ranged
from widgets.site import npm
from widgets.site.build import MARK


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m grader.site", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("site"), help="the folder of the site (site)")
    parser.add_argument(
        "--instructor", action="store_true", help="put in solutions, and the functions that draw hidden cases"
    )
    parser.add_argument(
        "--numpy", default="", help="a folder, or an address, that holds numpy as Pyodide's lock names it"
    )
    asked = parser.parse_known_args(argv)[0]  # what else make passes is for widgets.site
    out = asked.out
    if not (out / MARK).exists():
        print(
            f"site: out must be a site, got {out}. Run python -m widgets.site --out {out} first",
            file=sys.stderr,
        )
        return 1
    try:
        build.numpy(place=asked.numpy)  # kept from here on
        build.put(out, build.make(instructor=asked.instructor))
        build.compile_ahead(out)
    except (npm.NotFetched, ranged.NotFetched) as problem:
        print(f"site: the labs have no pages of their own: {problem}", file=sys.stderr)
        build.pack(out)
        return 1
    size = build.pack(out)
    print(f"site: {len(build.labs())} labs with the judge. All files are {size / 1e6:.1f} MB as .gz")
    return 0


if __name__ == "__main__":
    sys.exit(main())
