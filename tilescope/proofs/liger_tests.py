"""Run liger-kernel's own tests on tilescope, as far as its source package contains them.

    python -m tilescope.proofs.liger_tests SOURCE --site FOLDER [--out FILE] [--most N]

SOURCE is the unpacked source package. FOLDER has liger-kernel and what its tests import:

    pip download --no-deps --no-binary :all: liger-kernel==0.8.5
    pip install --target FOLDER --no-deps liger-kernel==0.8.5 transformers huggingface-hub tokenizers safetensors regex
"""

import argparse
import datetime
import json
import os
import signal
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from .libraries import versions

FOLDERS = ("test/transformers", "test/ops")


class TooSlow(BaseException):
    """A test took longer than it may."""


class Outcomes:
    """Keeps a few cases of each test, stops those that take too long, and notes how each file went."""

    def __init__(self, most: int, seconds: int, total: int):
        self.most, self.seconds, self.until = most, seconds, time.monotonic() + total
        self.files: dict[str, Counter] = defaultdict(Counter)
        self.reasons: dict[str, str] = {}

    def pytest_collection_modifyitems(self, items):
        by_test = defaultdict(list)
        for item in items:
            by_test[item.nodeid.split("[")[0]].append(item)
        items[:] = [item for same in by_test.values() for item in same[: self.most]]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item):
        def stop(*_):
            raise TooSlow(f"more than {self.seconds} s")

        if time.monotonic() > self.until:
            pytest.skip("too slow here: the time for all tests is up")
        signal.signal(signal.SIGALRM, stop)
        signal.alarm(self.seconds)
        try:
            return (yield)
        except TooSlow as slow:
            pytest.skip(f"too slow here: {slow}")
        finally:
            signal.alarm(0)

    def pytest_collectreport(self, report):
        if report.failed:
            self.files[report.nodeid]["not collected"] += 1
            self.reasons[report.nodeid] = reason_of(report)

    def pytest_runtest_logreport(self, report):
        if report.when == "call" or (report.when == "setup" and not report.passed):
            file, _, test = report.nodeid.partition("::")
            how = "too slow" if report.skipped and "too slow here" in str(report.longrepr) else report.outcome
            self.files[file][how] += 1
            if how == "failed":
                self.reasons[report.nodeid] = reason_of(report)


def reason_of(report) -> str:
    crash = getattr(getattr(report.longrepr, "reprcrash", None), "message", None) or str(report.longrepr)
    lines = [line for line in crash.splitlines() if line.strip()]
    return " ".join((lines[-1] if "\nE " in crash else lines[0]).split())[:200] if lines else ""


def main(arguments: list[str] | None = None) -> int:
    made = argparse.ArgumentParser("liger_tests", description=__doc__.splitlines()[0])
    made.add_argument("source", type=Path)
    made.add_argument("--site", type=Path, required=True)
    made.add_argument("--out", type=Path)
    made.add_argument("--most", type=int, default=2, help="cases of each test")
    made.add_argument("--seconds", type=int, default=60, help="of one case")
    made.add_argument("--total", type=int, default=100_000, help="seconds for all of them")
    made.add_argument(
        "--files", nargs="*", help="of the source package, by default all of test/transformers and test/ops"
    )
    asked = made.parse_args(arguments)
    out = asked.out.absolute() if asked.out else None
    sys.path[:0] = [str(asked.site.absolute()), str(asked.source.absolute())]
    os.chdir(asked.source)
    outcomes = Outcomes(asked.most, asked.seconds, asked.total)
    given = [
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "--tb=line",
        "--rootdir",
        ".",
        "--tilescope",
        "--continue-on-collection-errors",
    ]
    pytest.main([*given, "-p", "tilescope.pytest_plugin", *(asked.files or FOLDERS)], plugins=[outcomes])
    found = {
        "date": str(datetime.date.today()),
        "versions": versions(),
        "cases of each test": asked.most,
        "files": {name: dict(counts) for name, counts in sorted(outcomes.files.items())},
        "reasons": outcomes.reasons,
    }
    if out:
        out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    total = sum(outcomes.files.values(), Counter())
    print(", ".join(f"{count} {how}" for how, count in total.most_common()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
