"""What the hub's test needs of a machine: root, JupyterHub and its proxy; and users, folders and a hub of its own."""

import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from grader.paths import ROOT
from grader.tools.ports import free_ports

CONFIG = ROOT / "grader/classroom/hub/jupyterhub_config.py"


def missing() -> str:
    """What stands against it here; nothing if it can be run."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return "root, who makes users"
    if importlib.util.find_spec("jupyterhub") is None:
        return "JupyterHub (make hub-test)"
    if not proxy():
        return "npm's configurable-http-proxy (make hub-test)"
    if any(not shutil.which(name) for name in ("useradd", "userdel", "groupadd", "chpasswd", "runuser")):
        return "useradd, userdel, groupadd, chpasswd and runuser"
    return ""


def proxy() -> str:
    return os.environ.get("TILE_PROXY") or shutil.which("configurable-http-proxy") or ""


def run(*command, **options) -> str:
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, timeout=600, **options
    )
    assert done.returncode == 0, f"{command}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


@dataclass
class Machine:
    """Students and an instructor as users of this machine, and the hub between them; all of it gone at the end."""

    place: Path
    tag: str = field(default_factory=lambda: secrets.token_hex(2))
    users: dict[str, str] = field(default_factory=dict)  # name -> password
    url: str = ""
    log: Path | None = None
    process: subprocess.Popen | None = None
    more: dict[str, str] = field(default_factory=dict)  # of the hub's environment

    def group(self, kind: str) -> str:
        return f"tbt{self.tag}-{kind}"

    def user(self, kind: str) -> str:
        return f"tbt{self.tag}{kind}"

    def home(self, name: str) -> Path:
        return self.place / "home" / name

    def make(self, students: list[str], instructor: str) -> None:
        (self.place / "home").mkdir()
        for kind in ("students", "instructors"):
            run("groupadd", self.group(kind))
        for name in [*students, instructor]:
            kind = "instructors" if name == instructor else "students"
            run("useradd", "-m", "-d", self.home(name), "-s", "/bin/bash", "-G", self.group(kind), name)
            self.home(name).chmod(0o700)
            self.users[name] = secrets.token_urlsafe(12)
            run("chpasswd", input=f"{name}:{self.users[name]}\n")

    def lay_out(self, instructor: str) -> None:
        """The instructor's checkout, and the student edition that it makes."""
        course = self.home(instructor) / "tile-by-tile"
        tracked = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT)
        for name in filter(None, tracked.split("\0")):
            (course / name).parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / name).exists():
                shutil.copy2(ROOT / name, course / name)
        run(sys.executable, "-m", "grader", "release", str(self.place / "edition"), cwd=course)
        run("chown", "-R", f"{instructor}:", self.home(instructor))

    def environment(self) -> dict[str, str]:
        ports = free_ports(3)
        self.url = f"http://127.0.0.1:{ports[0]}"
        return {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": "/root",
            "TILE_HUB": str(self.place),
            "TILE_HUB_URL": self.url,
            "TILE_HUB_API": f"http://127.0.0.1:{ports[1]}",
            "TILE_PROXY_API": f"http://127.0.0.1:{ports[2]}",
            "TILE_PROXY": proxy(),
            "TILE_STUDENTS": self.group("students"),
            "TILE_INSTRUCTORS": self.group("instructors"),
            **self.more,
        }

    def start(self) -> None:
        self.log = self.place / "hub.log"
        command = [
            str(Path(sys.executable).with_name("jupyterhub")),
            "-f",
            str(CONFIG),
        ]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                command,
                cwd=self.place,
                env=self.environment(),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        for _ in range(120):
            assert self.process.poll() is None, self.log.read_text()[-3000:]
            try:
                urllib.request.urlopen(f"{self.url}/hub/health", timeout=5).close()
                return
            except (urllib.error.URLError, OSError):
                time.sleep(0.5)
        raise AssertionError(self.log.read_text()[-3000:])

    def by(self, name: str, *command) -> str:
        """What a user types at a terminal of the checkout."""
        environment = {
            "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.home(name)),
            "NBGRADER_EXCHANGE": str(self.place / "exchange"),
        }
        return run(
            shutil.which("runuser"),
            "-u",
            name,
            "--",
            *command,
            cwd=self.home(name) / "tile-by-tile",
            env=environment,
        )

    def end_servers(self, name: str) -> None:
        """What a user of this test still runs, each by its id."""
        uid = pwd.getpwnam(name).pw_uid
        for entry in Path("/proc").iterdir():
            with suppress(OSError):
                if entry.name.isdigit() and entry.stat().st_uid == uid:
                    os.kill(int(entry.name), signal.SIGKILL)

    def end(self) -> None:
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
        for name in self.users:
            self.end_servers(name)
            subprocess.run(["userdel", "-rf", name], capture_output=True)
        for kind in ("students", "instructors"):
            subprocess.run(["groupdel", self.group(kind)], capture_output=True)
