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
    """The run cut into one per topic, each with the machine, versions and date."""
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


def behind(rows: list[dict]) -> list[str]:
    """Return a line for each row with a peer that is certainly faster, with the whole interval of its ratio below a
    tie."""
    said = []
    for row in rows:
        timed = {name: peer for name, peer in row.get("peers", {}).items() if "interval" in peer}
        best = min(timed, key=lambda name: timed[name]["ratio"], default=None)
        if best and timed[best]["interval"][1] < TIE:
            said.append(f"behind: {row['op']} {row['case']}, {timed[best]['ratio']:.3f} of {best}")
    return said


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
