"""How often would a kernel fail against itself? Measures A against A and states the bound its trials support."""

import argparse
import json
import platform
from datetime import UTC, datetime
from pathlib import Path

from grader import gpu, questions, speed, statistics
from grader.evidence import Evidence

THRESHOLDS = (1.01, 1.02, 1.03, 1.05)
ANSWERS = Path(__file__).parent / "tests/answers"


def series(question_id: str, source: str, trials: int, loaded: bool) -> dict:
    """`trials` paired comparisons of one kernel with itself."""
    question = questions.find(question_id)
    evidence = Evidence(question, source, seed=0, mode="gpu")
    more = {"bar": "self", "quads": statistics.QUADS, "trials": trials + 1, "loaded": loaded}
    header, arrays, inputs, placed = speed.request(evidence, question.speed.case, speed.TIMED, **more)
    ((report, found),) = speed.ask([(header, arrays)])
    trouble = speed.check_values(evidence, question.speed.case, report, found, inputs, placed)
    if trouble:
        raise speed.Broken(f"is wrong, so it is not timed: {trouble}")
    ratios = [statistics.ratio(rows, seed=i) for i, rows in enumerate(report["trials"])]
    usable = [r for r in ratios if r.usable]
    failures = {str(t): sum(r.low > t for r in usable) for t in THRESHOLDS}
    widths = sorted(r.high - r.low for r in usable)
    return {
        "question": question_id, "loaded": loaded, "trials": len(ratios), "usable": len(usable), "gpu": report["gpu"],
        "torch": report["torch"], "triton": report["triton"],
        "median": sorted(r.median for r in usable)[len(usable) // 2] if usable else None,
        "least": min((r.median for r in usable), default=None), "most": max((r.median for r in usable), default=None),
        "interval_width": widths[len(widths) // 2] if widths else None,
        "fails_beyond": failures,
        "rate_at_most": {t: statistics.upper_bound(n, len(usable)) for t, n in failures.items()},
    }  # fmt: skip


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m grader false-fail", description=__doc__)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--question", default="gemm_tiling.tiled_gemm")
    parser.add_argument(
        "--answer", type=Path, help="the kernel to compare with itself (default: the one of the tests)"
    )
    parser.add_argument("--loaded", action="store_true", help="while another process keeps the same GPU busy")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(argv)
    if not gpu.name():
        print("false-fail needs an NVIDIA GPU; `python -m grader doctor` says what this machine has")
        return 3
    answer = options.answer or ANSWERS / f"{options.question.split('.')[1]}.py"
    found = series(options.question, answer.read_text(encoding="utf-8"), options.trials, options.loaded)
    found |= {"date": datetime.now(UTC).isoformat(timespec="seconds"), "python": platform.python_version()}
    for threshold, bound in found["rate_at_most"].items():
        failed = found["fails_beyond"][threshold]
        print(
            f"beyond {threshold}: {failed} of {found['usable']} trials would fail; the rate is at most {bound:.2%} (95% confidence)"
        )
    print(
        f"ratio {found['least']:.4f} to {found['most']:.4f}, interval {found['interval_width']:.4f} wide, {found['gpu']}"
    )
    if options.json:
        rows = json.loads(options.json.read_text()) if options.json.exists() else []
        options.json.write_text(json.dumps([*rows, found], indent=1) + "\n")
    return 0
