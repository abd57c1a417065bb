"""Light and dark pictures of the simulators: python -m widgets.screenshots [--out DIR] [NAME ...]"""

import argparse
from pathlib import Path

from widgets.browser import chromium, open_page
from widgets.registry import every, find


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m widgets.screenshots", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="which simulators; all if none is named")
    parser.add_argument("--out", type=Path, default=Path("screenshots"))
    parser.add_argument(
        "--presets", action="store_true", help="one picture for each preset, not only the first"
    )
    parser.add_argument("--locked", action="store_true", help="before the prediction is made")
    args = parser.parse_args(argv)
    args.out.mkdir(parents=True, exist_ok=True)
    chosen = [find(name) for name in args.names] or every()
    with chromium() as browser:
        for declaration in chosen:
            presets = declaration.presets if args.presets else {"": {}}
            for number, values in enumerate(presets.values()):
                suffix = f"_{number}" if args.presets else ""
                for theme in ("light", "dark"):
                    given = {"start": declaration.inputs(values), "locked": args.locked}
                    page = open_page(browser, [(declaration, given)], theme)
                    file = args.out / f"{declaration.name}{suffix}_{theme}.png"
                    page.locator(".tbt").screenshot(path=file)
                    page.context.close()
                    print(file)


if __name__ == "__main__":
    main()
