"""Compare the tuned kernels with those of an earlier checkout, row by row, each pair timed in turns.

    python -m kernels.bench.before FOLDER [SLUG ...] [--only TEXT ...] [--called NAME] [--seconds S] [--json FILE]
    python -m kernels.bench.before --kept

FOLDER holds the earlier checkout. --kept prints the comparison that is kept, without a GPU. A line gives both times,
their ratio (before / now) with its 99% interval, and both errors against the reference. A row is told as slower if the
whole interval is below 0.98, and as less exact if its error has grown by more than a tenth.
"""

import argparse
import gc
import importlib
import json
import re
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from kernels.bench.__main__ import SECONDS, named, topics
from kernels.bench.here import NO_GPU, about, has_gpu
from kernels.bench.record import TIE, dumps

KEPT = Path(__file__).parent / "results" / "before_h200.json"
PACKAGE = "kernels_before"
GROWN = 1.1  # of an error
LINE = f"{'op':<22} {'case':<52} {'before':>9} {'now':>9} {'x':>6} {'from':>6} {'to':>6} {'error before':>13} {'now':>10}"


def renamed(source: str) -> str:
    """Return a module's source with the package under another name, so that both can be imported."""
    source = re.sub(r"\b(from|import) kernels\b", rf"\1 {PACKAGE}", source)
    return re.sub(r"([\"'])kernels\.(?=[a-z_{])", rf"\1{PACKAGE}.", source)


def importable(folder: Path, to: Path) -> None:
    """Copy FOLDER's kernels under another name to a folder that Python then looks into."""
    shutil.copytree(folder / "kernels", to / PACKAGE, ignore=shutil.ignore_patterns("tests", "__pycache__"))
    for path in (to / PACKAGE).rglob("*.py"):
        path.write_text(renamed(path.read_text(encoding="utf-8")), encoding="utf-8")
    sys.path.insert(0, str(to))


def rows_of(package: str, slug: str, device) -> dict:
    """Return a topic's rows by what is the same in two checkouts."""
    given = importlib.import_module(f"{package}.bench.handed").handed_to(slug)
    rows = importlib.import_module(f"{package}.{slug}.bench").rows(device, **given)
    return {(row.op, row.case): row for row in rows}


def pair(now, before):
    """Return a row in which the earlier kernel is the only peer. Each has its own checkout's inputs and check."""
    return replace(
        now,
        inputs=lambda seed: (now.inputs(seed), before.inputs(seed)),
        ours=lambda both: now.ours(both[0]),
        check=lambda both, out: now.check(both[0], out),
        peers={"before": lambda both: before.ours(both[1])},
        check_peer=lambda both, out: before.check(both[1], out),
    )


def faults(row: dict) -> list[str]:
    """Return how a pair's row got worse, in words."""
    if "us" not in row:
        return [row.get("wrong") or row.get("failed", "not measured")]
    before = row["peers"]["before"]
    if "interval" not in before:
        return [
            "not compared: "
            + next(str(before[word]) for word in ("failed", "wrong", "absent") if word in before)
        ]
    found = ["slower"] if before["interval"][1] < TIE else []
    return found + ["less exact"] * (row["error"] > GROWN * before["error"])


def line(row: dict) -> str:
    left = f"{row['op']:<22} {row['case']:<52} "
    before = row.get("peers", {}).get("before", {})
    if "us" not in row or "interval" not in before:
        return left + "; ".join(faults(row))
    low, high = before["interval"]
    times = f"{before['us']:>9.1f} {row['us']:>9.1f} {before['ratio']:>6.3f} {low:>6.3f} {high:>6.3f}"
    return f"{left}{times} {before['error']:>13.2e} {row['error']:>10.2e} {', '.join(faults(row))}".rstrip()


def compare(device, slugs: list[str], texts: list[str], seconds: float, keep) -> list[dict]:
    import torch

    from kernels.bench.measure import STATES, measured_with

    done = []
    for slug in slugs:
        earlier = rows_of(PACKAGE, slug, device)
        for at, row in rows_of("kernels", slug, device).items():
            if at not in earlier or not named(row, texts):
                continue
            try:
                found = measured_with(
                    pair(row, earlier[at]), device, seconds, STATES["sustained"], "sustained"
                )
            except Exception as why:  # costs only its own row
                found = {"op": row.op, "case": row.case, "failed": f"{type(why).__name__}: {why}"[:300]}
            done.append({"topic": slug} | found)
            print(line(done[-1]), flush=True)
            keep(done)
            gc.collect()
            torch.cuda.empty_cache()
    return done


def head(run: dict) -> str:
    return f"{run['machine']['gpu']}, {run['date']}; x = before / now, before is {run['before']}\n{LINE}"


def ending(rows: list[dict]) -> str:
    return f"{len(rows)} rows, {sum(map(bool, map(faults, rows)))} slower, less exact or not compared"


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m kernels.bench.before", description=__doc__.split("\n\n", 1)[0]
    )
    parser.add_argument("folder", type=Path, nargs="?", metavar="FOLDER", help="with the earlier checkout")
    parser.add_argument("slugs", nargs="*", metavar="SLUG", help=f"of {', '.join(topics())}")
    parser.add_argument("--only", nargs="+", metavar="TEXT", default=[""], help="as in kernels.bench")
    parser.add_argument("--called", default="", help="the earlier checkout's name, for the record")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="per kernel of a row")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write rows, machine and versions")
    parser.add_argument("--kept", action="store_true", help="no measuring: print what is kept in results/")
    options = parser.parse_intermixed_args(argv)
    if options.kept:
        run = json.loads(KEPT.read_text(encoding="utf-8"))
        print("\n".join([head(run), *map(line, run["rows"]), ending(run["rows"])]))
        return 0
    if not options.folder or not (options.folder / "kernels" / "bench").is_dir():
        parser.error(f"FOLDER must hold kernels/bench, got {options.folder}; name a checkout's folder")
    if not has_gpu("compared"):
        return NO_GPU
    import torch

    device = torch.device("cuda", torch.cuda.current_device())
    run = about(device) | {"before": options.called or str(options.folder)}

    def keep(rows):
        if options.json:
            options.json.write_text(dumps(run | {"rows": rows}), encoding="utf-8")

    with tempfile.TemporaryDirectory() as place:
        importable(options.folder, Path(place))
        print(head(run))
        done = compare(device, options.slugs or topics(), options.only, options.seconds, keep)
    print(ending(done))
    return 1 if any(map(faults, done)) else 0


if __name__ == "__main__":
    sys.exit(main())
