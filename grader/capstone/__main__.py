"""Run the capstone's cells without Jupyter, and keep its numbers (python -m grader.capstone NOTEBOOK [--json FILE]).

The cells run in order, in the notebook's folder, in this process, and their prints are shown. FILE gets the numbers:
the filler of each slot, the step's costs before and after, the logits' difference, the graph's times and the
sentence.
"""

import argparse
import ast
import json
import linecache
import os
import sys
import time
import traceback
from dataclasses import asdict
from pathlib import Path


def cells(notebook: Path) -> list[str]:
    """Return the sources of a notebook's code cells."""
    held = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in held if cell["cell_type"] == "code"]


def ran(source: str, name: str, names: dict) -> None:
    """Run one cell, and print the value of its last expression, as a notebook does.

    The cell's text goes where Triton and check() look for source.
    """
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), names)
    if last is not None:
        shown = eval(compile(ast.Expression(last.value), name, "eval"), names)
        if shown is not None:
            print(shown)


def numbers(names: dict) -> dict:
    """Return what is worth keeping of a run, out of the notebook's own names."""
    capstone = names.get("capstone")
    if capstone is None:
        return {}
    spent = {
        name: {slot: asdict(one) for slot, one in names[name].items()}
        for name in ("plain", "before", "after")
        if isinstance(names.get(name), dict)
    }
    return {"device": capstone.device, "slots": capstone.slots(), "spent": spent, **capstone.kept}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m grader.capstone", description=__doc__)
    parser.add_argument("notebook", type=Path)
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args(argv)
    if not options.notebook.is_file():
        parser.error(f"NOTEBOOK must be a file, got {options.notebook}. Give the capstone's .ipynb")
    sources, target = cells(options.notebook), options.json and options.json.resolve()
    os.chdir(options.notebook.parent)
    names, failed, seconds, began = {"__name__": "capstone"}, [], [], time.monotonic()
    for number, source in enumerate(sources, 1):
        try:
            ran(source, f"<capstone cell {number}>", names)
        except Exception as error:  # the numbers of the other cells are still worth keeping
            traceback.print_exc()
            failed.append({"cell": number, "error": f"{type(error).__name__}: {error}"[:300]})
        seconds.append(round(time.monotonic() - began, 1))
        if target:  # after each cell, so that a stopped run keeps its numbers
            target.parent.mkdir(parents=True, exist_ok=True)
            found = {"seconds_after_each_cell": seconds, "failed": failed, **numbers(names)}
            target.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"{len(sources)} cells in {time.monotonic() - began:.1f} s, {len(failed)} of them failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
