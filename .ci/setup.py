"""Makes .venv as requirements.lock says; `make setup` runs it, and a second run only looks.

Runs on whatever python3 a fresh machine has: standard library only, and any Python 3.6 can parse it.
"""

import ast
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = Path(os.environ.get("TILE_VENV") or str(ROOT / ".venv"))
WINDOWS = os.name == "nt"
PYTHON = VENV / ("Scripts/python.exe" if WINDOWS else "bin/python")
LOCK = ROOT / "requirements.lock"
STAMP = VENV / "ready"
OLDEST = (3, 11)
OLDEST_MACOS = 14  # of which torch has wheels
PROBE_SECONDS = 4


def say(text):
    print("setup: " + text, flush=True)


def give_up(text):
    sys.exit("setup: " + text)


def run(*command):
    """Run visibly; a failure ends the set-up with the command that failed."""
    done = subprocess.run([str(part) for part in command], cwd=str(ROOT))
    if done.returncode:
        give_up("this failed, see above: " + " ".join(str(part) for part in command))


def answers(*command):
    """What a command prints, or None where it is missing or fails."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode(errors="replace") if done.returncode == 0 else None


def find_python():
    """This Python if it is new enough, else the newest one on PATH."""
    if sys.version_info[:2] >= OLDEST:
        return sys.executable
    for minor in range(14, OLDEST[1] - 1, -1):
        name = f"python3.{minor}"
        if answers(name, "-c", "import sys; print(sys.version)"):
            return shutil.which(name)
    found = "{}.{}.{} at {}".format(*sys.version_info[:3], sys.executable)
    return give_up(f"python must be 3.11 or newer, got {found}; install one, or run make PYTHON=...")


def stamp():
    """What the environment was made from; a moved checkout or a new lock makes it anew."""
    made_from = [LOCK.read_bytes(), (ROOT / "pyproject.toml").read_bytes(), str(ROOT).encode()]
    return hashlib.sha256(b"\0".join(made_from)).hexdigest()


def make_venv(python):
    """An empty environment, or the one that an interrupted run left."""
    if PYTHON.exists() and answers(str(PYTHON), "-m", "pip", "--version"):
        return
    if answers(python, "-c", "import venv, ensurepip") is None:
        if hasattr(os, "geteuid") and os.geteuid() == 0 and shutil.which("apt-get"):
            say("Python's venv module is missing: installing python3-venv")
            run("apt-get", "update", "-q")
            run("apt-get", "install", "-y", "-q", "--no-install-recommends", "python3-venv")
        else:
            give_up("python must have its venv module, got none; on Debian: apt-get install python3-venv")
    say("making .venv with " + python)
    run(python, "-m", "venv", "--clear", VENV)


def pinned(name):
    """The version of one package in requirements.lock."""
    for line in LOCK.read_text(encoding="utf-8").splitlines():
        if line.startswith(name + "=="):
            return line.split("==")[1].split(";")[0].strip()
    return give_up(f"requirements.lock must pin {name}, got nothing; run make lock")


def cpu_index(version):
    """PyTorch's index of CPU wheels, if it is set, answers quickly and has this version."""
    index = os.environ.get("TORCH_INDEX", "").rstrip("/")
    if not index:
        return None
    try:
        with urllib.request.urlopen(index + "/torch/", timeout=PROBE_SECONDS) as page:
            listed = page.read().decode(errors="replace")
    except (OSError, ValueError) as error:
        say(f"{index} can't be reached ({error}): taking the default build of torch")
        return None
    if "torch-" + version not in listed:
        say(f"{index} has no torch {version}: taking the default build")
        return None
    return index


def install_torch():
    """First and apart, because which build is right depends on the machine and not on the lock."""
    version = pinned("torch")
    has = answers(str(PYTHON), "-c", "from importlib.metadata import version; print(version('torch'))")
    if has and has.strip().split("+")[0] == version:
        return
    wanted, pip = "torch==" + version, (PYTHON, "-m", "pip", "install")
    gpus = answers("nvidia-smi", "--query-gpu=name", "--format=csv,noheader")
    if gpus:
        say(f"{wanted} for {gpus.strip().splitlines()[0]}")
        return run(*pip, "-c", LOCK, wanted)
    index = cpu_index(version)
    if index:
        say(f"{wanted} for the CPU, from {index}")
        return run(*pip, "--no-deps", "--index-url", index, wanted)
    say(wanted + ", the default build")
    return run(*pip, "-c", LOCK, wanted)


def works(*command, **options):
    """Run visibly and say whether it went well; what comes after may be another way."""
    try:
        return subprocess.run([str(part) for part in command], **options).returncode == 0
    except OSError:
        return False


def fast_installer():
    """uv, of the version that the Makefile pins, from a wheel into .venv; None where it can't be had."""
    version, uv = os.environ.get("UV_VERSION"), PYTHON.with_name("uv.exe" if WINDOWS else "uv")
    if not version:
        return None
    if (answers(str(uv), "--version") or "").split()[1:2] == [version]:
        return uv
    wanted = ("--only-binary", ":all:", "uv==" + version)
    return uv if works(PYTHON, "-m", "pip", "install", "--quiet", "--no-deps", *wanted) else None


# uv reads none of pip's configuration: what decides where packages come from is handed on.
HANDED_ON = {
    "index-url": "--default-index",
    "extra-index-url": "--index",
    "find-links": "--find-links",
    "constraint": "--constraint",
    "trusted-host": "--allow-insecure-host",
}


def pip_settings():
    """pip's own configuration: {option: value}; the environment wins over a section, a section over `global`."""
    lines = (answers(str(PYTHON), "-m", "pip", "config", "list") or "").splitlines()
    found = {}
    for place in ("global.", "install.", ":env:."):
        for name, equals, value in (line.partition("=") for line in lines):
            if equals and name.startswith(place):
                found[name[len(place) :]] = str(ast.literal_eval(value))
    return found


def install_by_uv():
    """requirements.lock in seconds rather than a minute; False where uv can't be had or fails."""
    uv = fast_installer()
    if uv is None:
        return False
    settings, options, env = pip_settings(), [], dict(os.environ)
    for name, option in HANDED_ON.items():
        for value in settings.get(name, "").split():
            options += [option, value]
    if settings.get("no-index", "false").lower() in ("true", "1", "yes"):
        options.append("--no-index")
    if "cert" in settings:
        env.setdefault("SSL_CERT_FILE", settings["cert"])
    env.setdefault("UV_HTTP_TIMEOUT", "30")
    # every index is asked for the best match, as pip asks; from outside the project, whose [tool.uv.pip] is for the lock
    options += ["--index-strategy", "unsafe-best-match", "--python", PYTHON]
    return works(uv, "pip", "install", *options, "-r", LOCK, env=env, cwd=os.path.abspath(os.sep))


# Notebook readers import rfc3987_syntax where it is installed, to check addresses in all alphabets. Its import builds a
# parser for one to three seconds, in every start of JupyterLab and nbgrader, so here it counts as not installed.
FAST_START = 'import sys; sys.modules.setdefault("rfc3987_syntax", None)\n'


def make_starts_fast():
    for folder in [VENV / "Lib/site-packages", *VENV.glob("lib/python3*/site-packages")]:
        if folder.is_dir():
            (folder / "tile_by_tile_fast_start.pth").write_text(FAST_START, encoding="utf-8")


def system_is_known():
    """Give up where packages of the lock have no wheels: on a Mac with an Intel processor, and before macOS 14."""
    mac = platform.mac_ver()[0]
    if not mac:
        return
    if platform.machine() == "x86_64" or int(mac.split(".")[0]) < OLDEST_MACOS:
        found = f"macOS {mac} on {platform.machine()}"
        give_up(
            f"the Mac must have macOS {OLDEST_MACOS} and Apple silicon, got {found}; "
            "on another machine make site builds pages whose labs run in a browser"
        )


def main():
    system_is_known()
    made_from = stamp()
    if (
        STAMP.exists()
        and STAMP.read_text(encoding="utf-8") == made_from
        and answers(str(PYTHON), "-c", "print(1)")
    ):
        return
    start = time.time()
    if not PYTHON.exists():
        say("the first time takes a few minutes and about 2 GB (with an NVIDIA GPU about 7)")
    make_venv(find_python())
    install_torch()
    say("the rest of requirements.lock")
    if not install_by_uv():
        say("uv can't do it here: pip does, which takes about a minute longer")
        run(PYTHON, "-m", "pip", "install", "-r", LOCK)
    say("kernels, widgets, tilescope and grader, from this folder")
    run(PYTHON, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "-e", ROOT)
    make_starts_fast()
    if not sys.platform.startswith("linux"):
        say("Triton's Python files, out of its wheel for Linux")
        if not works(PYTHON, "-m", "tilescope.python_of_triton", cwd=str(ROOT)):
            say("they are missing, and with them the kernel labs; python -m grader work tries again")
    STAMP.write_text(made_from, encoding="utf-8")
    say(f"ready after {time.time() - start:.0f} s")


if __name__ == "__main__":
    main()
