"""Run the public functions of other people's Triton libraries on tilescope, and report the result for every kernel.

    python -m tilescope.proofs.libraries liger_kernel fla flag_gems --site FOLDER --out FILE

FOLDER is where the packages are installed:

    pip install --no-deps --target FOLDER liger-kernel==0.8.5 fla-core==0.6.0 flag-gems==5.0.2 einops expecttest
"""

import argparse
import datetime
import importlib
import importlib.metadata
import json
import os
import sys
import time
import traceback
from contextlib import suppress
from pathlib import Path

PACKAGES = {"liger_kernel": "liger-kernel", "fla": "fla-core", "flag_gems": "flag-gems"}
VERSIONS = (*PACKAGES.values(), "triton", "torch", "numpy")
HERE = Path(__file__).parent


def main(arguments: list[str] | None = None) -> int:
    made = argparse.ArgumentParser("libraries", description=__doc__.splitlines()[0])
    made.add_argument("packages", nargs="+", choices=PACKAGES)
    made.add_argument("--site", type=Path, help="a folder with the packages")
    made.add_argument("--out", type=Path, help="write the results there, as JSON")
    made.add_argument(
        "--only", default="", help="the cases with this in their name, while FILE keeps the others"
    )
    made.add_argument("--seconds", type=float, default=1e9, help="begin no case after so long")
    made.add_argument(
        "--front-end", type=Path, metavar="FILE", help="lower both ways instead, and write that"
    )
    asked = made.parse_args(arguments)
    if asked.front_end is not None:
        return both_ways_into(asked.front_end, asked)
    if asked.site is not None:
        sys.path.insert(0, str(asked.site))
    until, found = time.monotonic() + asked.seconds, {"packages": {}}
    for package in asked.packages:
        result = of_package(package, asked.only, until)
        found["packages"][package] = with_others(result, package, asked.out) if asked.only else result
    found = {"date": str(datetime.date.today()), "versions": versions(), **found}
    if asked.out is not None:
        asked.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(summary(found))
    return 0


def both_ways_into(file: Path, asked) -> int:
    """Compare both ways to Triton IR for every kernel that the libraries launch."""
    from .both_ways import compared

    site = [str(asked.site)] if asked.site else []
    sys.path[:0] = site
    found = {"date": str(datetime.date.today()), "versions": versions(), "packages": {}}
    for package in asked.packages:
        row = found["packages"][package] = compared(package, asked.only, asked.site)
        print(f"{package}: { ({name: n for name, n in row.items() if isinstance(n, int)}) }")
        file.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0


def with_others(result: dict, package: str, out: Path | None) -> dict:
    """Some cases' kernels, with all others as the file has them."""
    if out is None or not out.exists():
        return result
    known = json.loads(out.read_text(encoding="utf-8"))["packages"].get(package, {})
    return {part: dict(sorted({**known.get(part, {}), **rows}.items())) for part, rows in result.items()}


def of_package(package: str, only: str, until: float) -> dict:
    import torch

    torch.set_num_threads(1)
    from .imported import imported

    imported(package)
    from .launches import Launches

    cases = importlib.import_module(f"tilescope.proofs.cases_{package}").cases(only)
    launches = Launches(package, compares=package != "flag_gems")
    failed = {}
    for name, run in cases:
        if time.monotonic() > until:
            failed["..."] = "the time is up. Cases after this one did not run"
            break
        torch.manual_seed(0)
        verdict, error = "", ""
        try:
            with launches.case():
                verdict = run() or ""
            if verdict == "wrong" and launches.met_undefined:
                torch.manual_seed(0)
                with launches.with_zeros(), launches.case():
                    verdict = "right with zeros" if run() == "right" else "wrong"
            if verdict == "wrong":  # who is it, tilescope or the library?
                again(launches, run)
        except Exception as wrong:
            error = " ".join(f"{type(wrong).__name__}: {wrong}".split())[:200]
            if os.environ.get("TRACE"):
                traceback.print_exc()
            failed[name] = error
            again(launches, run)
        for kernel in dict.fromkeys(launches.seen):
            if verdict:
                launches.kernels[kernel].results[verdict] += 1
        print(f"{name:44} {len(launches.seen):3} launches  {verdict} {error}", file=sys.stderr, flush=True)
    return {"kernels": rows(launches), "cases that failed": failed}


def again(launches, run) -> None:
    """Runs a case once more, with each launch compared with Triton's interpreter."""
    import torch

    kept, launches.compares, seen = launches.compares, True, launches.seen
    torch.manual_seed(0)
    with suppress(Exception), launches.case():
        run()
    launches.compares, launches.seen = kept, seen


def rows(launches) -> dict:
    return {
        name: {
            "verdict": row.verdict,
            "launches": row.launches,
            "interpreter": dict(row.against),
            "torch": dict(row.results),
            "findings": list(dict.fromkeys(row.findings))[:3],
            "notes": row.notes or ([] if row.verdict.startswith("right") else [explained(row)]),
        }
        for name, row in sorted(launches.kernels.items())
    }


def explained(row) -> str:
    """Why a kernel is not called right, where its launches left no note."""
    if row.results["wrong"]:
        calls = f"torch's result is another in {row.results['wrong']} of {row.results.total()} calls"
        return f"equal to Triton's interpreter, {calls}" if row.against else calls
    return "no call that this kernel was part of ended with something to compare"


def versions() -> dict:
    found = {"python": sys.version.split()[0]}
    for name in VERSIONS:
        with suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def summary(found: dict) -> str:
    lines = []
    for package, result in found["packages"].items():
        verdicts = [row["verdict"] for row in result["kernels"].values()]
        counts = ", ".join(f"{verdicts.count(v)} {v}" for v in sorted(set(verdicts)))
        lines.append(f"{package}: {len(verdicts)} kernels: {counts}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
