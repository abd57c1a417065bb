"""Log users in by LTI 1.3, where a launch signed by the learning platform becomes a user of this machine.

The file that TILE_LTI names has the platform's addresses, and the name of a table with the columns student and lti,
the one that `python -m grader lti scores` reads. Only the platform's number of a user (its claim sub) counts. An
e-mail address or a name, which users can change at some platforms, decides nothing."""

import csv
import json
import urllib.parse
from pathlib import Path

from ltiauthenticator.lti13.auth import LTI13Authenticator
from ltiauthenticator.lti13.error import LoginError
from ltiauthenticator.lti13.handlers import LTI13LoginInitHandler

KEYS = {"issuer", "client_id", "authorize_url", "jwks_endpoint", "names"}


def read(path: Path) -> dict[str, str]:
    """Return the platform's settings. ValueError says what is wrong with them."""
    held = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(held, dict) or set(held) != KEYS:
        got = sorted(held) if isinstance(held, dict) else type(held).__name__
        raise ValueError(f"{path} must hold {', '.join(sorted(KEYS))}, got {got}")
    for key in ("authorize_url", "jwks_endpoint"):
        found = urllib.parse.urlsplit(held[key])
        if found.scheme != "https" and found.hostname not in ("127.0.0.1", "localhost"):
            raise ValueError(f"{key} must begin with https://, got {held[key]!r}")
    student(path.parent / held["names"], "")
    return held


def student(names: Path, number: str) -> str:
    """Return the user that the platform's number means, or nothing."""
    with names.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.DictReader(file)
        if not {"student", "lti"} <= set(rows.fieldnames or ()):
            raise ValueError(f"{names} must have the columns student and lti, got {rows.fieldnames}")
        found = [row["student"] for row in rows if number and row["lti"] == number]
    return found[0] if len(found) == 1 else ""


class Sends(LTI13LoginInitHandler):
    """Send a user on to the platform, which answers from its own site."""

    def _set_oauth_cookie(self, key, value):
        # a browser brings other cookies along to no page that another site's form opens
        across = {"samesite": "None", "secure": True}
        self._set_cookie(key, value, expires_days=1, httponly=True, encrypted=True, **across)


class FromPlatform(LTI13Authenticator):
    """Admit the users of the table who belong to the class on this machine."""

    login_handler = Sends
    names: Path
    in_class: staticmethod

    def get_username(self, token: dict) -> str:
        number = str(token.get("sub", ""))
        if name := student(self.names, number):
            return name
        raise LoginError(
            f"The course does not know user {number!r} of the platform. Ask the instructor to add this number in the column lti."
        )

    def check_allowed(self, username, authentication=None):
        return self.in_class(username)


def configure(c, path: Path, in_class) -> None:
    """Let this platform, and no password, decide who a user is."""
    held = read(path)
    names = path.parent / held["names"]
    c.JupyterHub.authenticator_class = type(
        "FromThisPlatform", (FromPlatform,), {"names": names, "in_class": staticmethod(in_class)}
    )
    c.LTI13Authenticator.client_id = {held["client_id"]}
    for key in ("issuer", "authorize_url", "jwks_endpoint"):
        c.LTI13Authenticator[key] = held[key]
    c.LTI13Authenticator.username_key = "sub"
