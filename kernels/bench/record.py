"""Write records as JSON with one row a line, so that a new run reads well in a diff, and as a table for people."""

import json


def _rounded(value):
    """Round to four significant digits. More would differ from run to run without meaning anything."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {k: _rounded(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(v) for v in value]
    return value


def dumps(run: dict) -> str:
    lines = ["{"]
    head = [k for k in run if k != "rows"]
    lines += [f'  "{key}": {json.dumps(_rounded(run[key]))},' for key in head]
    rows = ",\n".join(f"    {json.dumps(_rounded(row))}" for row in run["rows"])
    return "\n".join([*lines, '  "rows": [', rows, "  ]", "}"]) + "\n"


def by_topic(run: dict) -> dict[str, dict]:
    """Return the run cut into one per topic, each with the machine, versions and date."""
    slugs = dict.fromkeys(row["topic"] for row in run["rows"])
    return {slug: run | {"rows": [r for r in run["rows"] if r["topic"] == slug]} for slug in slugs}


def absent(rows: list[dict]) -> dict[str, str]:
    """Return the peers that no row could be compared with, and why. Absence is part of a comparison."""
    seen, why = set(), {}
    for name, peer in ((name, peer) for row in rows for name, peer in row.get("peers", {}).items()):
        if "absent" in peer:
            why.setdefault(name, peer["absent"])
        else:
            seen.add(name)
    return {name: reason for name, reason in why.items() if name not in seen}


TIE = 0.98


def verdict(row: dict) -> tuple[str, float, float, float] | None:
    """Return (peer, ratio, low, high) of the fastest peer, from the pair that was timed alone if there is one."""
    if "alone" in row:
        return row["alone"]["peer"], row["alone"]["ratio"], *row["alone"]["interval"]
    timed = {name: peer for name, peer in row.get("peers", {}).items() if "interval" in peer}
    best = min(timed, key=lambda name: timed[name]["ratio"], default=None)
    return (best, timed[best]["ratio"], *timed[best]["interval"]) if best else None


def is_behind(row: dict) -> bool:
    """Return whether a peer is certainly faster, with the whole interval of its ratio below a tie."""
    found = verdict(row)
    return found is not None and found[3] < TIE


def behind(rows: list[dict], reasons: dict | None = None) -> list[str]:
    """Return lines for each row with a peer that is certainly faster: how much, why, and what may help."""
    said = []
    for row in filter(is_behind, rows):
        best, ratio, _, _ = verdict(row)
        said.append(f"behind: {row['op']} {row['case']}, {ratio:.3f} of {best}")
        why, lever = (reasons or {}).get((row["op"], row["case"]), ("not known yet", "find out why"))
        said += [f"    why: {why}", f"    next: {lever}"]
    return said


def machine_of(machine: dict) -> str:
    """Return how many GPUs the machine has, because a second one adds 1.4 us to a timed replay."""
    gpus = machine.get("gpus")
    return (
        "machine with one GPU or two, not kept"
        if gpus is None
        else f"machine with {gpus} GPU" + "s" * (gpus > 1)
    )


def summary(rows: list[dict], gpu: str, date: str) -> list[str]:
    """Return a line for each row: our time, the fastest peer that was there, and how they compare."""
    lines = [f"{gpu}; x = the best peer's time / ours, with its 99% interval", SUMMARY]
    for row in rows:
        left = f"{row['op']:<22} {row['case']:<52} "
        if "us" not in row:
            lines.append(left + (row.get("wrong") or row.get("failed", "")))
            continue
        found, right = verdict(row), "no peer"
        if found:
            best, ratio, low, high = found
            right = f"{ratio:6.3f} {low:6.3f} {high:6.3f}  {best}"
        power = f"{1e3 * row['joules']:9.2f}" if "joules" in row else " " * 9
        when = f"{row.get('state', ''):<9} {row.get('date', date)}"
        lines.append(f"{left}{row['us']:>9.1f} {row['share']:>6.1%} {power}  {when}  {right}")
    return lines


SUMMARY = (
    f"{'op':<22} {'case':<52} {'us':>9} {'limit':>6} {'mJ':>9}  {'state':<9} {'date':<10}  {'x':>6} {'from':>6} "
    f"{'to':>6}  best peer"
)
HEADER = (
    f"{'op':<22} {'case':<26} {'us':>9} {'limit':>6} {'TB/s':>6} {'TF/s':>6}  peers: us (x = theirs / ours)"
)


def line(row: dict) -> str:
    left = f"{row['op']:<22} {row['case']:<26} "
    for trouble in ("wrong", "failed"):
        if trouble in row:
            return left + f"{trouble.upper()}: {row[trouble]}"
    numbers = f"{row['us']:>9.1f} {row['share']:>6.1%} {row['tb_s']:>6.2f} {row['tflop_s']:>6.0f}  "
    return left + numbers + "; ".join(f"{name} {_peer(p)}" for name, p in row["peers"].items())


def _peer(peer: dict) -> str:
    if "ratio" in peer:
        low, high = peer["interval"]
        return f"{peer['us']:.1f} ({peer['ratio']:.3f}x, {low:.3f} to {high:.3f})"
    return next(f"{word} ({peer[word]})" for word in ("absent", "failed", "wrong") if word in peer)
