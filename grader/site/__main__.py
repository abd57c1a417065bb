"""python -m grader.site [--out site]: the labs' pages, into a folder that python -m widgets.site has made."""

import argparse
import sys
from pathlib import Path

from grader.site import build, ranged
from widgets.site import npm
from widgets.site.build import MARK


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m grader.site", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("site"), help="the folder of the site (site)")
    out = parser.parse_known_args(argv)[0].out  # what else make passes is for widgets.site
    if not (out / MARK).exists():
        print(
            f"site: out must be a site, got {out}; run python -m widgets.site --out {out} first",
            file=sys.stderr,
        )
        return 1
    try:
        size = build.put(out, build.make())
    except (npm.NotFetched, ranged.NotFetched) as problem:
        print(f"site: the labs have no page of their own: {problem}", file=sys.stderr)
        return 1
    print(
        f"site: {len(build.LABS)} lab{'s' * (len(build.LABS) != 1)} with the judge, {size / 1e6:.1f} MB more"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
