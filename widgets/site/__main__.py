"""Build the whole course as plain pages for any static web server, with python -m widgets.site [--out site]."""

import argparse
import sys
from pathlib import Path

from widgets.site import build, npm, shared


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m widgets.site", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("site"), help="the folder to write (site)")
    parser.add_argument("--no-run", action="store_true", help="show the lessons' code without what it prints")
    parser.add_argument(
        "--address", default="", help="where it will be served, which pictures of shared links need"
    )
    args = parser.parse_args(argv)
    try:
        npm.ready()
        made = build.make(run=not args.no_run, say=lambda line: print(f"site: {line}", file=sys.stderr))
        size = build.put(args.out, shared.addressed(made | shared.pictures(), args.address))
    except shared.NoBrowser as problem:
        print(f"site: links to it are shared without a picture: {problem}", file=sys.stderr)
        size = build.put(args.out, made)
    except (ValueError, npm.NotFetched) as problem:
        print(f"site: {problem}", file=sys.stderr)
        return 1
    pages = sum(name.endswith(".html") for name in made)
    print(f"site: {pages} pages in {args.out}, {size / 1e6:.1f} MB with Python and a font")
    print(f"site: look at them with: python -m http.server -d {args.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
