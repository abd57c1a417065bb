"""Take light and dark pictures of the simulators at several widths.

python -m widgets.screenshots [--out DIR] [NAME ...]
"""

import argparse
from pathlib import Path

from widgets.browser import chromium, open_page
from widgets.registry import every, find


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m widgets.screenshots", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="which simulators, by default all")
    parser.add_argument("--out", type=Path, default=Path("screenshots"))
    parser.add_argument(
        "--presets", action="store_true", help="one picture for each preset, not only the first"
    )
    parser.add_argument(
        "--widths", default="1130", help="of the column, with commas between: 366,690,1130,1500"
    )
    parser.add_argument("--themes", default="light,dark")
    parser.add_argument("--locked", action="store_true", help="before the prediction is made")
    args = parser.parse_args(argv)
    args.out.mkdir(parents=True, exist_ok=True)
    chosen = [find(name) for name in args.names] or every()
    ways = [(int(width), theme) for width in args.widths.split(",") for theme in args.themes.split(",")]
    with chromium() as browser:
        for declaration in chosen:
            presets = declaration.presets if args.presets else {"": {}}
            for number, values in enumerate(presets.values()):
                given = {"start": declaration.inputs(values), "locked": args.locked}
                for width, theme in ways:
                    page = open_page(browser, [(declaration, given)], theme, width)
                    expect_settled(page)
                    suffix = f"_{number}" if args.presets else ""
                    file = args.out / f"{declaration.name}{suffix}_{width}_{theme}.png"
                    page.locator(".tbt").screenshot(path=file)
                    page.context.close()
                    print(file)


def expect_settled(page) -> None:
    """A narrow column asks for its own layout once it is seen."""
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => setTimeout(done, 50)))")
    page.wait_for_function("() => !document.querySelector('.tbt[data-asking=true]')")


if __name__ == "__main__":
    main()
