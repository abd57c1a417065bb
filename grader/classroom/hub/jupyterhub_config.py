"""Configure JupyterHub for one class on one machine, with real users, nbgrader's exchange between them, and the
formgrader for instructors.

Run as root: `jupyterhub -f jupyterhub_config.py`. A user's part is decided by two groups of the machine. Below
TILE_HUB: edition/ is the student edition, which all users can read, exchange/ holds labs and hand-ins, students/
holds the configuration of students' servers, and state/ is the hub's own. An instructor has a checkout of the whole
course in ~/tile-by-tile, which no other user can read."""

import asyncio
import grp
import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path

c = get_config()  # noqa: F821, given by traitlets

HERE = Path(__file__).resolve().parent
PLACE = Path(os.environ.get("TILE_HUB", "/srv/tile-by-tile"))
EDITION, EXCHANGE, STATE = PLACE / "edition", PLACE / "exchange", PLACE / "state"
STUDENTS = os.environ.get("TILE_STUDENTS", "tile-students")
INSTRUCTORS = os.environ.get("TILE_INSTRUCTORS", "tile-instructors")
CHECKOUT = "tile-by-tile"  # in an instructor's home

for folder, mode in (
    (STATE, 0o700),
    (EXCHANGE, 0o777),
):  # all users may enter the exchange, and nbgrader guards its content
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(mode)

# This file's folder may be closed to students, but their servers' files may not.
FOR_STUDENTS = PLACE / "students"
shutil.copytree(HERE / "student", FOR_STUDENTS, dirs_exist_ok=True)
shutil.copyfile(HERE / "lessons.py", FOR_STUDENTS / "lessons.py")

# Encryption belongs in front of the hub (nginx, Caddy), because the hub listens to this machine alone.
c.JupyterHub.bind_url = os.environ.get("TILE_HUB_URL", "http://127.0.0.1:8000")
c.JupyterHub.hub_bind_url = os.environ.get("TILE_HUB_API", "http://127.0.0.1:8081")
c.ConfigurableHTTPProxy.api_url = os.environ.get("TILE_PROXY_API", "http://127.0.0.1:8001")
c.ConfigurableHTTPProxy.command = os.environ.get("TILE_PROXY", "configurable-http-proxy").split()
c.ConfigurableHTTPProxy.pid_file = str(STATE / "proxy.pid")
c.JupyterHub.cookie_secret_file = str(STATE / "cookie_secret")
c.JupyterHub.db_url = f"sqlite:///{STATE}/jupyterhub.sqlite"

c.JupyterHub.authenticator_class = "pam"
c.LocalAuthenticator.allowed_groups = {STUDENTS, INSTRUCTORS}
c.JupyterHub.spawner_class = "jupyterhub.spawner.LocalProcessSpawner"
c.Spawner.cmd = [str(Path(sys.executable).with_name("jupyterhub-singleuser"))]
c.Spawner.start_timeout = 120  # a first start reads some hundred megabytes
c.Spawner.http_timeout = 120


def is_in(name: str, *groups: str) -> bool:
    """Return whether the name is a user of this machine, and in one of the groups."""
    try:
        found = os.getgrouplist(name, pwd.getpwnam(name).pw_gid)
    except KeyError:
        return False
    return any(grp.getgrnam(group).gr_gid in found for group in groups)


if os.environ.get("TILE_LTI"):  # a learning platform says who logs in, and passwords no longer do
    sys.path.insert(0, str(HERE))
    import lti_login

    lti_login.configure(c, Path(os.environ["TILE_LTI"]), lambda name: is_in(name, STUDENTS, INSTRUCTORS))


async def prepare(spawner) -> None:
    """Where a user's server begins and what it reads, before it starts."""
    home = Path(pwd.getpwnam(spawner.user.name).pw_dir)
    instructor = is_in(spawner.user.name, INSTRUCTORS)
    root, course = (home / CHECKOUT, home / CHECKOUT) if instructor else (home, EDITION)
    configs = [course / ".jupyter/instructor", course] if instructor else [FOR_STUDENTS]
    spawner.notebook_dir = str(root)
    spawner.environment = {
        "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
        "PYTHONPATH": str(course),
        "JUPYTER_CONFIG_PATH": ":".join(str(path) for path in [*configs, course / ".jupyter"]),
        "NBGRADER_EXCHANGE": str(EXCHANGE),
        "TILE_RECORDS": str(home / ".tile-by-tile/records"),
        "INSTRUCTOR": "1",  # all folders in sight, because a home holds only what its owner put there
    }
    if not instructor:
        await asyncio.to_thread(_renew_lessons, spawner.user.name, home)


def _renew_lessons(name: str, home: Path) -> None:
    """Copy as the student, because a hub that writes into homes as root would follow any link in them."""
    user = pwd.getpwnam(name)
    command = [
        sys.executable,
        "-I",
        str(FOR_STUDENTS / "lessons.py"),
        str(EDITION / "course"),
        str(home / "course"),
    ]
    subprocess.run(
        command,
        user=user.pw_uid,
        group=user.pw_gid,
        extra_groups=[],
        cwd=home,
        env={},
        timeout=60,
        check=True,
    )


c.Spawner.pre_spawn_hook = prepare
