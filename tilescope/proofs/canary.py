"""Make one environment for each release of Triton that tilescope supports, and run tilescope's tests in all
environments.

    python -m tilescope.proofs.canary [RELEASE ...] [-- PYTEST ARGUMENTS]

Everything but Triton comes from the environment that runs this script. An existing environment is used again.
"""

import argparse
import re
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".canary"
OLDEST = (3, 6)
USUAL = (
    "control descriptors dot elementwise memory races shapes launcher watching telling work births seeded "
    "command pytest_plugin"
)
TESTS = [f"tilescope/tests/test_{name}.py" for name in USUAL.split()]


def main(arguments: list[str] | None = None) -> int:
    made = argparse.ArgumentParser("canary", description=__doc__.splitlines()[0])
    made.add_argument("releases", nargs="*", help="releases of Triton, by default every published one")
    made.add_argument("--tests", nargs="+", default=TESTS, help="what to run instead of the usual tests")
    asked = made.parse_args(arguments)
    results = {}
    for release in asked.releases or published():
        python = environment(release)
        print(f"Triton {release}:", flush=True)
        done = subprocess.run([python, "-m", "pytest", "-p", "no:xdist", "-q", *asked.tests], cwd=ROOT)
        results[release] = done.returncode
    for release, code in results.items():
        print(f"Triton {release}: {'passed' if code == 0 else f'failed (pytest says {code})'}")
    return 1 if any(results.values()) or not results else 0


def published() -> list[str]:
    """The last release of each minor version from the oldest supported one on, as the package index has them."""
    command = [sys.executable, "-m", "pip", "index", "versions", "triton"]
    done = subprocess.run(command, capture_output=True, text=True)
    found = re.search(r"Available versions: (.*)", done.stdout)
    if found is None:
        sys.exit(f"canary: the releases of Triton can't be listed: {done.stderr.strip()[-300:]}")
    last = {}
    for text in found[1].split(", "):
        release = tuple(int(part) for part in text.split("."))
        last[release[:2]] = max(last.get(release[:2], release), release)
    return [".".join(map(str, last[minor])) for minor in sorted(last) if minor >= OLDEST]


def environment(release: str) -> Path:
    """Return the Python of an environment with this release of Triton, made if it is missing."""
    folder = FOLDER / release
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        venv.create(folder, clear=True, symlinks=True)
        own = subprocess.run(
            [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        install = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "-q",
            "--no-deps",
            "--target",
            own,
            f"triton=={release}",
        ]
        subprocess.run(install, check=True)
        Path(own, "rest.pth").write_text(sysconfig.get_path("purelib") + "\n")  # searched after Triton
        (folder / "ready").touch()
    return python


if __name__ == "__main__":
    sys.exit(main())
