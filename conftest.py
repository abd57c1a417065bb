"""Tests that need what is not here are reported as not run; under CI a missing program is an error."""

import gc
import importlib.util
import os
import re
import shutil
import subprocess
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from grader.box import warm
from grader.tools import programs

LEFT = Path(__file__).parent / ".ci/left_for_proofs.txt"

# Begun first, so that at the end no worker is left alone with a file that takes minutes; the rest follows as it is.
LONG = (
    "widgets/tests/browser",
    "grader/proofs",
    "widgets/site",
    "grader/site",
    "grader/classroom",
    "test_compile.py",
    "grader/tools/gates",
    "grader/judge",
    "grader/topics/tests",
    "grader/release",
    "expert_load_balance/tests/test_ranks.py",
    "grader/machine/tests/test_questions.py",
    "tilescope/tests/test_launcher.py",
    "grader/notebooks/tests/test_build.py",
)

# Folders whose files one worker takes, since what they share takes seconds to make.
TOGETHER = (
    "widgets/tests/browser/",
    "widgets/site/tests/",
    "grader/site/tests/",
    "grader/classroom/tests/afterwards/",
)

gc.disable()  # until everything is collected: nothing of it is garbage, and looking takes a worker seven seconds


@cache
def gpu() -> bool:
    try:
        return subprocess.run(["nvidia-smi", "-L"], capture_output=True, timeout=10).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


@cache
def postgresql() -> bool:
    """PostgreSQL's server programs, wherever Debian keeps them, and the driver, which the lock leaves out."""
    server = shutil.which("initdb") or any(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return bool(server) and importlib.util.find_spec("psycopg") is not None


# marker -> (is it here?, what is missing, must CI have it?)
NEEDS = {
    "gpu": (gpu, "an NVIDIA GPU", False),
    "browser": (programs.chromium, "Chromium (make test gets it)", True),
    "firefox": (programs.firefox, "Firefox", False),
    "bubblewrap": (programs.bubblewrap, "a bubblewrap that works here (make test gets it)", True),
    "postgresql": (postgresql, "PostgreSQL's server and psycopg (pip install -e '.[postgresql]')", False),
}


def pytest_configure(config):
    try:
        from hypothesis import settings
    except ImportError:
        pass
    else:  # the same examples on every run and machine: a red test is a change, never the dice
        settings.register_profile("house", derandomize=True, deadline=None)
        settings.load_profile("house")
    for marker, (_, what, _) in NEEDS.items():
        config.addinivalue_line("markers", f"{marker}: needs {what}")
    config.addinivalue_line("markers", "slow: the whole of what make test samples; make proofs runs it")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """One more than there are cores: who waits for a browser, a box or a clock leaves its core to another."""
    return warm.cores() + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class ByFileOrFolder(LoadFileScheduling):
        def _split_scope(self, nodeid):
            file = super()._split_scope(nodeid)
            return next((folder for folder in TOGETHER if file.startswith(folder)), file)

    return ByFileOrFolder(config, log)


def long_first(item) -> int:
    return next((at for at, part in enumerate(LONG) if part in item.nodeid), len(LONG))


def named_as_slow(config, items) -> None:
    """Mark the tests that LEFT names. A line for a file that is collected must name a test of it."""
    lines = LEFT.read_text(encoding="utf-8").splitlines()
    rows = {}  # a test, or one of its cases -> of how many cases one stays, or 0 if none does
    for line in lines:
        if line and not line.startswith("#"):
            few = re.match(r"1 of (\d+) (.*)", line)
            rows[few[2] if few else line] = int(few[1]) if few else 0
    seen = Counter()
    for item in items:
        test = item.nodeid.partition("[")[0]
        for name in {item.nodeid, test} & rows.keys():
            seen[name] += 1
            if not rows[name] or seen[name] % rows[name] != 1:
                item.add_marker(pytest.mark.slow)
    files = {item.nodeid.partition("::")[0] for item in items}
    if any("::" in str(one) for one in config.args):
        return  # some tests of a file
    if lost := sorted(row for row in rows.keys() - seen if row.partition("::")[0] in files):
        raise pytest.UsageError(
            f"{LEFT.name} must name tests that there are, got {lost[0]!r}; bring it up to date"
        )


def left_for_proofs(config, items) -> None:
    """Whatever is marked slow waits for `make proofs`, or for another wish that names the mark."""
    if "slow" not in config.option.markexpr:
        slow = [item for item in items if item.get_closest_marker("slow")]
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if not item.get_closest_marker("slow")]


def pytest_collection_modifyitems(config, items):
    named_as_slow(config, items)
    left_for_proofs(config, items)
    items.sort(key=long_first)
    for marker, (is_here, what, wanted_by_ci) in NEEDS.items():
        marked = [item for item in items if item.get_closest_marker(marker)]
        if not marked or is_here():
            continue
        if wanted_by_ci and os.environ.get("CI") == "true":
            raise pytest.UsageError(f"{len(marked)} tests need {what}, and under CI they must run")
        for item in marked:
            item.add_marker(pytest.mark.skip(reason=f"needs {what}"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop():
    """What was loaded stays to the end, so no later look for garbage goes through it again."""
    gc.freeze()
    gc.enable()


def pytest_terminal_summary(terminalreporter):
    """What tests measured, and what did not run and why, in one line a reason."""
    for report in terminalreporter.stats.get("passed", []):
        for said in (words for name, words in report.user_properties if name == "said"):
            terminalreporter.write_line(said)
    reasons = {}
    for report in terminalreporter.stats.get("skipped", []):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reasons[reason] = reasons.get(reason, 0) + 1
    for reason, count in sorted(reasons.items()):
        terminalreporter.write_line(f"not run: {count}, {reason.removeprefix('Skipped: ')}")


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of the Chromium that browser tests drive."""
    return programs.chromium()


@pytest.fixture(scope="module")
def no_jails_left():
    """For a file that judges: what it kept warm ends with it."""
    yield
    warm.stop_all()
