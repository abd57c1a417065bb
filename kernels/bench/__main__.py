"""python -m kernels.bench [SLUG ...] [--json FILE] [--quick]: what the tuned kernels reach here."""

import argparse
import gc
import importlib
import json
import sys
from pathlib import Path

from kernels.bench import record

KERNELS = Path(__file__).resolve().parent.parent
SECONDS, QUICK_SECONDS = 0.4, 0.1
NO_GPU = 3


def topics() -> list[str]:
    return sorted(p.parent.name for p in KERNELS.glob("*/bench.py"))


def parse(argv):
    parser = argparse.ArgumentParser(prog="python -m kernels.bench", description=__doc__)
    parser.add_argument("slugs", nargs="*", metavar="SLUG", help=f"one or more of {', '.join(topics())}")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all rows, machine and versions")
    parser.add_argument("--quick", action="store_true", help="only the rows that speak for their topic")
    parser.add_argument("--seconds", type=float, default=None, help="per contender of a row, 0.4 unless told")
    parser.add_argument("--only", metavar="TEXT", default="", help="rows whose op or case holds this")
    parser.add_argument(
        "--record",
        type=Path,
        metavar="FILE",
        help="no measuring: sort FILE's rows into results/",
    )
    options = parser.parse_args(argv)
    for slug in options.slugs:
        if slug not in topics():
            parser.error(f"SLUG must be one of {', '.join(topics()) or 'none yet'}, got {slug!r}")
    return options


def keep(path: Path) -> int:
    """Sort a measured file's rows into the topics' results folders, where the lessons find them."""
    from kernels.bench.machine import short_name

    run = json.loads(path.read_text())
    for slug, part in record.by_topic(run).items():
        target = KERNELS / slug / "results" / f"{short_name(run['machine']['gpu'])}.json"
        target.parent.mkdir(exist_ok=True)
        target.write_text(record.dumps(part))
        print(target.relative_to(KERNELS.parent))
    return 0


def measure_all(options) -> dict:
    import torch

    from kernels.bench import machine
    from kernels.bench.measure import measure

    device = torch.device("cuda", torch.cuda.current_device())
    seconds = options.seconds or (QUICK_SECONDS if options.quick else SECONDS)
    run = {"machine": machine.describe(device), "versions": machine.versions(), "date": machine.today()}
    run["ceilings"] = machine.ceilings(device, QUICK_SECONDS)
    run["rows"] = []
    shown = ", ".join(f"{k} {v / 1e12:.2f}T" for k, v in run["ceilings"].items())
    print(f"{run['machine']['gpu']}, {run['date']}, measured ceilings: {shown}\n{record.HEADER}", flush=True)
    for slug in options.slugs or topics():
        for row in importlib.import_module(f"kernels.{slug}.bench").rows(device):
            if (options.quick and not row.quick) or options.only not in f"{row.op} {row.case}":
                continue
            try:
                result = measure(row, device, run["ceilings"], seconds)
            except Exception as why:
                result = {"op": row.op, "case": row.case, "failed": f"{type(why).__name__}: {why}"[:300]}
            run["rows"].append({"topic": slug} | result)
            print(record.line(result), flush=True)
            if options.json:  # after every row: a run that is cut short keeps what it has
                options.json.write_text(record.dumps(run))
            gc.collect()
            torch.cuda.empty_cache()
    return run


def main(argv=None) -> int:
    options = parse(argv)
    if options.record:
        return keep(options.record)
    import torch

    if not torch.cuda.is_available():
        print("PyTorch finds no NVIDIA GPU here, so nothing was measured; run this where there is one.")
        return NO_GPU
    run = measure_all(options)
    return 1 if any("wrong" in r or "failed" in r for r in run["rows"]) else 0


if __name__ == "__main__":
    sys.exit(main())
