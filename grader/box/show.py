"""Attack every level's box and print the results of the attacks (`python -m grader box [--json]`)."""

import argparse
import json

from grader.box.best import best_level
from grader.box.limits import LEVELS, Level
from grader.box.measure import ATTACKS, overhead_s, try_attacks


def table(measured: list) -> str:
    lines = ["attack".ljust(44) + "".join(f"level {int(m.level)}".rjust(10) for m in measured)]
    for name, (text, least) in ATTACKS.items():
        cells = []
        for m in measured:
            held = m.rows.get(name, [None])[0]
            word = {True: "held", False: "THROUGH" if m.level >= least else "through", None: "-"}[held]
            cells.append(word.rjust(10))
        lines.append(text.ljust(44) + "".join(cells))
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m grader box", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print the measurement as JSON")
    wants = parser.parse_args(arguments)
    measured = [try_attacks(level) for level in sorted(Level, reverse=True)]
    overhead = {m.level: None if m.trouble else 1e3 * overhead_s(m.level) for m in measured}
    best = best_level()
    if wants.json:
        levels = {int(m.level): _as_data(m, overhead[m.level]) for m in measured}
        print(json.dumps({"best": int(best), "levels": levels}, indent=1))
        return 0
    print(table(measured))
    added = ["-" if ms is None else f"{ms:.0f}" for ms in overhead.values()]
    print("milliseconds that the box adds to a run".ljust(44) + "".join(text.rjust(10) for text in added))
    for m in measured:
        if m.why_not():
            print(f"\nlevel {int(m.level)} is not to be had here: {m.why_not()}")
    print(f"\nlevel {int(best)} is used here. {LEVELS[best]}")
    print(
        '"through" marks an attack that a level does not promise to hold. "THROUGH" is a promise that did not hold.'
    )
    return 0


def _as_data(measured, overhead_ms) -> dict:
    return {"rows": measured.rows, "why_not": measured.why_not(), "overhead_ms": overhead_ms}
