"""Install Triton's Python files where Triton has no wheel, on macOS and Windows. They come from its wheel for
Linux, known by its hash.

    python -m tilescope.python_of_triton

pip gets the wheel (198 MB), as it gets any other. Only 1 MB is installed, as a wheel for every system with version
"3.7.1+python". In its `triton._C.libtriton` our builder replaces the compiled library, so `import triton`
works in any order.
"""

import base64
import csv
import hashlib
import io
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

VERSION = "3.7.1"
SHA256 = "7e40869937a68206ec70d7f25bb7ec6433cb083f9135e1f36dbd318dc449a728"
WHEEL = ("--platform", "manylinux_2_28_x86_64", "--implementation", "cp", "--python-version", "3.12")
LEFT_OUT = ("triton/_C/", "triton/profiler/", "triton/instrumentation/", "triton/plugins/")
LABEL = f"{VERSION}+python"
STAND_IN = '''"""Stands where Triton's compiled library is on Linux: tilescope's builder in Python."""

from tilescope.front_end import stand_in

stand_in.install()
'''


class NotInstalled(Exception):
    """Why Triton's Python files are not there, in one sentence."""


def install() -> None:
    """Get the wheel for Linux and install its Python files into this environment."""
    with tempfile.TemporaryDirectory() as folder:
        run("install", "--no-deps", "--no-index", repacked(downloaded(Path(folder)), Path(folder)))


def downloaded(folder: Path) -> Path:
    """Have pip get the wheel, of the pinned hash alone."""
    wanted = folder / "triton.txt"
    wanted.write_text(f"triton=={VERSION} --hash=sha256:{SHA256}\n", encoding="utf-8")
    found = ("--no-deps", "--only-binary", ":all:", "--require-hashes", *WHEEL)
    run("download", *found, "--dest", folder, "-r", wanted)
    (wheel,) = folder.glob("triton-*.whl")
    return wheel


def run(*command) -> None:
    """Run pip, or raise NotInstalled with its last line."""
    pip = [sys.executable, "-m", "pip", *map(str, command), "--disable-pip-version-check", "--quiet"]
    done = subprocess.run(pip, capture_output=True, text=True, encoding="utf-8", errors="replace")
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip()] or ["nothing"]
        raise NotInstalled(
            f"pip must {command[0]} Triton's Python files, got {said[-1].strip()!r}. Try again with a network"
        )


def repacked(wheel: Path, folder: Path) -> Path:
    """Write the wheel for every system that holds another wheel's Python files."""
    described = f"triton-{VERSION}.dist-info/"
    with zipfile.ZipFile(wheel) as whole:
        files = {
            name: whole.read(name)
            for name in whole.namelist()
            if name.startswith("triton/") and name.endswith(".py") and not name.startswith(LEFT_OUT)
        }
        about = whole.read(described + "METADATA").decode()
        files |= {
            name.replace(VERSION, LABEL, 1): whole.read(name)
            for name in whole.namelist()
            if name.startswith(described + "licenses/") and not name.endswith("/")
        }
    described = f"triton-{LABEL}.dist-info/"
    files["triton/_C/libtriton.py"] = STAND_IN.encode()
    files[described + "METADATA"] = re.sub("(?m)^Version: .*$", f"Version: {LABEL}", about).encode()
    files[described + "WHEEL"] = (
        b"Wheel-Version: 1.0\nGenerator: tilescope\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    )
    files[described + "RECORD"] = listed(files, described + "RECORD")
    made = folder / f"triton-{LABEL}-py3-none-any.whl"
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as written:
        for name, content in files.items():
            written.writestr(name, content)
    return made


def listed(files: dict[str, bytes], itself: str) -> bytes:
    """List a wheel's files with their hashes."""
    rows = io.StringIO()
    table = csv.writer(rows, lineterminator="\n")
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        table.writerow([name, f"sha256={digest}", len(content)])
    table.writerow([itself, "", ""])
    return rows.getvalue().encode()


def main() -> int:
    try:
        install()
    except NotInstalled as error:
        print(f"tilescope: {error}", file=sys.stderr)
        return 1
    print(f"Triton's Python files are here: triton {LABEL}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
