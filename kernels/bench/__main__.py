"""Measure what the tuned kernels reach here (python -m kernels.bench [SLUG ...] [--json FILE] [--part I/N]
[--quick] [--joules]), or print what was measured (--kept).

A machine lent for minutes measures a part at a time into one file: --part 1/3, then 2/3 and 3/3 with the same --json.
Each row keeps its date, its ceilings and the peers' versions. Rows in the file are measured again only with --again.
"""

import argparse
import gc
import importlib
import json
import re
import sys
from pathlib import Path

from kernels.bench import record
from kernels.bench.handed import handed_to
from kernels.bench.here import NO_GPU, about, has_gpu

LADDER = "ladder"
KERNELS = Path(__file__).resolve().parent.parent
SECONDS, QUICK_SECONDS = 0.4, 0.1


def topics(table: str = "") -> list[str]:
    return sorted(p.relative_to(KERNELS).parts[0] for p in KERNELS.glob(f"*/{table}/bench.py"))


def parse(argv):
    parser = argparse.ArgumentParser(prog="python -m kernels.bench", description=__doc__)
    parser.add_argument("slugs", nargs="*", metavar="SLUG", help=f"one or more of {', '.join(topics())}")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all rows, machine and versions")
    parser.add_argument("--quick", action="store_true", help="only the rows that speak for their topic")
    parser.add_argument("--seconds", type=float, default=None, help="per contender of a row, 0.4 unless told")
    parser.add_argument(
        "--ladder", action="store_true", help="from a naive kernel to the tuned one, by rungs"
    )
    parser.add_argument(
        "--rested", action="store_true", help="each round after idling; else settled under load"
    )
    parser.add_argument(
        "--only", nargs="+", metavar="TEXT", default=[""], help="rows whose op and case hold one of these"
    )
    parser.add_argument(
        "--record",
        type=Path,
        metavar="FILE",
        help="no measuring: sort FILE's rows into results/",
    )
    parser.add_argument(
        "--kept",
        action="store_true",
        help="no measuring: print the table of results/, and why rows are behind",
    )
    parser.add_argument(
        "--joules", action="store_true", help="read the joules of a call of ours and of the best peer, too"
    )
    parser.add_argument(
        "--part", type=part_of, metavar="I/N", help="every N-th row from the I-th on; adds to --json's file"
    )
    parser.add_argument("--again", action="store_true", help="measure rows that --json's file has, too")
    options = parser.parse_args(argv)
    if options.part and not options.json:
        parser.error("--part must come with --json FILE, got none; parts meet in a file")
    options.table = LADDER if options.ladder else ""
    known = topics(options.table)
    for slug in options.slugs:
        if slug not in known:
            parser.error(f"SLUG must be one of {', '.join(known) or 'none yet'}, got {slug!r}")
    options.slugs = options.slugs or known
    return options


def part_of(text: str) -> tuple[int, int]:
    """'2/3' -> (2, 3)."""
    match = re.fullmatch(r"([0-9]+)/([0-9]+)", text)
    i, n = map(int, match.groups()) if match else (0, 0)
    if not 1 <= i <= n:
        raise argparse.ArgumentTypeError(
            f"must be I/N with I from 1 to N, got {text!r}; 1/3 is the first third"
        )
    return i, n


def place(row: dict) -> tuple:
    """Return the key by which a row is the same in two runs."""
    return row["topic"], row["op"], row["case"], row.get("state"), row.get("dtype")


def before(options, machine: dict) -> list[dict]:
    """Return the rows of the file that this run adds to, or none if they come from another kind of machine."""
    if not options.part or not options.json.exists():
        return []
    run = json.loads(options.json.read_text(encoding="utf-8"))
    if run["machine"] != machine or run.get("table", "") != options.table:
        there, here = run["machine"]["gpu"], machine["gpu"]
        raise SystemExit(
            f"--json must be a file of this machine and table, got one of {there} for {here}; name another file"
        )
    return [row for row in run["rows"] if "us" in row]


def keep(path: Path) -> int:
    """Sort a measured file's rows into the topics' results folders, where the lessons find them."""
    from kernels.bench.machine import short_name

    run = json.loads(path.read_text(encoding="utf-8"))
    for slug, part in record.by_topic(run).items():
        folder = KERNELS / slug / "results" / run.get("table", "")
        target = folder / f"{short_name(run['machine']['gpu'])}.json"
        folder.mkdir(parents=True, exist_ok=True)
        kept = json.loads(target.read_text(encoding="utf-8")) if target.exists() else None
        target.write_text(record.dumps(merged(kept, part) if kept else part), encoding="utf-8")
        print(target.relative_to(KERNELS.parent))
    return 0


def merged(kept: dict, new: dict) -> dict:
    """Return the new run, or, if it measured only some rows, the old run updated with these rows, dated."""
    measured_now = {place(row): row for row in new["rows"]}
    if {place(row) for row in kept["rows"]} <= measured_now.keys():
        return new
    dated = {name: new[name] for name in ("date", "versions", "ceilings")}
    known = [place(row) for row in kept["rows"]]
    rows = [
        measured_now[at] | dated if at in measured_now else row
        for at, row in zip(known, kept["rows"], strict=True)
    ]
    added = [row | dated for at, row in measured_now.items() if at not in known]
    return kept | {"rows": rows + added, "absent": record.absent(rows + added)}


def measure_all(options) -> dict:
    import torch

    from kernels.bench import machine

    device = torch.device("cuda", torch.cuda.current_device())
    seconds = options.seconds or (QUICK_SECONDS if options.quick else SECONDS)
    run = about(device)
    run |= {"table": options.table} if options.table else {}
    run["state"] = "rested" if options.rested else "sustained"
    run["ceilings"] = machine.ceilings(device)  # once, and for every topic's shares
    run["under_load"] = machine.under_load(device)
    meter = meter_of(device) if options.joules else None
    run["rows"] = before(options, run["machine"])
    known = set() if options.again else {place(row) for row in run["rows"]}
    dated = {name: run[name] for name in ("date", "versions", "ceilings")} if options.part else {}
    shown = ", ".join(f"{k} {v / 1e12:.2f}T" for k, v in run["ceilings"].items())
    title = f"{run['machine']['gpu']}, {run['date']}, rows {run['state']}, cold after a flush that reads"
    print(f"{title}\nsustained ceilings: {shown}; {run['under_load']}\n{record.HEADER}", flush=True)
    for slug, row in chosen(options, device):
        if (
            place({"topic": slug, "op": row.op, "case": row.case, "state": run["state"], "dtype": row.dtype})
            in known
        ):
            continue
        result = {"topic": slug} | measured(row, device, run, seconds, meter) | dated
        run["rows"] = [one for one in run["rows"] if place(one) != place(result)] + [result]
        print(record.line(result), flush=True)
        run["absent"] = record.absent(run["rows"])
        if options.json:  # after every row, so that an interrupted run keeps its rows
            options.json.write_text(record.dumps(run), encoding="utf-8")
    for name, why in run.get("absent", {}).items():
        print(f"absent: {name} ({why})")
    for said in ("", *table(run), *below(options)):
        print(said)
    return run


def table(run: dict) -> list[str]:
    """Return a line for each row of a run, and why rows are slower than a peer."""
    gpu = f"{run['machine']['gpu']}, {record.machine_of(run['machine'])}"
    return [*record.summary(run["rows"], gpu, run["date"]), *record.behind(run["rows"], reasons())]


def reasons() -> dict[tuple[str, str], tuple[str, str]]:
    """Return (why, what to try next) of rows that are known to be slower than a peer, by op and case."""
    rows = json.loads((Path(__file__).parent / "reasons.json").read_text(encoding="utf-8"))
    return {(row["op"], row["case"]): (row["why"], row["next"]) for row in rows}


def kept_runs(slugs: list[str]) -> list[dict]:
    """Return all topics' results, each row with its run's date."""
    paths = (path for slug in slugs for path in sorted((KERNELS / slug / "results").glob("*.json")))
    runs = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    return [run for run in runs if "ceilings" in run]


def print_kept(slugs: list[str]) -> int:
    for run in kept_runs(slugs):
        for said in (*table(run), ""):
            print(said)
    return 0


def module_of(slug: str, table: str = ""):
    return importlib.import_module(".".join(part for part in ("kernels", slug, table, "bench") if part))


def below(options) -> list[str]:
    """Return what topics say under their rows: the commands for measurements that one GPU can't make."""
    import torch

    gpus = torch.cuda.device_count()
    told = (getattr(module_of(slug, options.table), "below", None) for slug in options.slugs)
    return [said for one in told if one and (said := one(gpus))]


def named(row, texts: list[str]) -> bool:
    return any(text in f"{row.op} {row.case}" for text in texts)


def chosen(options, device):
    """Yield (topic, row) for every requested row, or for every n-th if a part is requested."""
    i, n = options.part or (1, 1)
    count = 0
    for slug in options.slugs:
        given = {} if options.table else handed_to(slug)
        for row in module_of(slug, options.table).rows(device, **given):
            if (row.quick or not options.quick) and named(row, options.only):
                count += 1
                if count % n == i % n:
                    yield slug, row


def meter_of(device):
    from kernels.bench.energy import Meter

    try:
        return Meter(device)
    except OSError as why:
        print(f"no joules: {why}")
        return None


def measured(row, device, run: dict, seconds: float, meter=None) -> dict:
    """Return the row's record. A kernel that fails costs only its own row."""
    import torch

    from kernels.bench.measure import measure

    try:
        return measure(row, device, run["ceilings"], seconds, run["state"], meter)
    except Exception as why:
        return {"op": row.op, "case": row.case, "failed": f"{type(why).__name__}: {why}"[:300]}
    finally:
        gc.collect()
        torch.cuda.empty_cache()


def main(argv=None) -> int:
    options = parse(argv)
    if options.record:
        return keep(options.record)
    if options.kept:
        return print_kept(options.slugs)
    if not has_gpu():
        return NO_GPU
    run = measure_all(options)
    return 1 if any("wrong" in r or "failed" in r for r in run["rows"]) else 0


if __name__ == "__main__":
    sys.exit(main())
