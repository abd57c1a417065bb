"""Use a platform's grade service as LTI Advantage 2.0 defines it, with a token for this course and then one score
per student."""

import json
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path

import jwt

from grader.classroom.atomic_file import PLACE
from grader.classroom.lti import keys
from grader.classroom.marks import Standing

SCORE = "https://purl.imsglobal.org/spec/lti-ags/scope/score"
BY_KEY = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
FORM = "application/vnd.ims.lis.v1.score+json"
ANSWERS_S = 30  # how long a platform may take for one answer
MOST_ANSWER = 1_000_000
ASSERTED_S = 300  # for which a request for a token holds


@dataclass(frozen=True)
class Platform:
    """The contents of work/class/lti.json, copied from the platform's page for a new LTI tool."""

    client_id: str
    token_url: str
    lineitems: dict[str, str]  # lab -> address of the column for its grades
    audience: str = ""  # of a request for a token, where it is not token_url
    root: Path = field(default=Path("."), compare=False)


class NotTaken(Exception):
    """The platform refused, or did not answer."""


def path(root: Path) -> Path:
    return root / PLACE / "lti.json"


def read(root: Path) -> Platform:
    """Return the platform that this class uses. ValueError says what is missing."""
    names = {one.name for one in fields(Platform)} - {"root"}
    try:
        held = json.loads(path(root).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(
            f"{PLACE / 'lti.json'} must be there, got none. See learning_platforms.md for an example"
        ) from None
    except ValueError as error:
        raise ValueError(f"{PLACE / 'lti.json'} must be JSON, got a mistake in it ({error})") from None
    if not isinstance(held, dict) or not {"client_id", "token_url", "lineitems"} <= set(held) <= names:
        raise ValueError(
            f"{PLACE / 'lti.json'} must hold client_id, token_url and lineitems, got {sorted(held)}"
        )
    for address in (held["token_url"], *held["lineitems"].values()):
        _require_safe(address)
    return Platform(**held, root=root)


def _require_safe(address: str) -> None:
    """A token or a grade never travels unencrypted to another machine."""
    found = urllib.parse.urlsplit(address)
    if found.scheme != "https" and found.hostname not in ("127.0.0.1", "localhost"):
        raise ValueError(f"an address of the platform must begin with https://, got {address!r}")


def token(platform: Platform) -> str:
    """Ask for the right to send scores, signed with this course's key."""
    key, now = keys.read(platform.root), int(time.time())
    claims = {
        "iss": platform.client_id,
        "sub": platform.client_id,
        "aud": platform.audience or platform.token_url,
        "iat": now,
        "exp": now + ASSERTED_S,
        "jti": str(uuid.uuid4()),
    }
    form = {
        "grant_type": "client_credentials",
        "client_assertion_type": BY_KEY,
        "client_assertion": jwt.encode(claims, key, keys.ALGORITHM, headers={"kid": keys.name(key)}),
        "scope": SCORE,
    }
    data = urllib.parse.urlencode(form).encode()
    said = _sent(platform.token_url, data, {"Content-Type": "application/x-www-form-urlencoded"})
    try:
        return json.loads(said)["access_token"]
    except (ValueError, KeyError, TypeError):
        raise NotTaken(f"{platform.token_url} gave no access_token") from None


def score(one: Standing, user: str, when: datetime | None = None) -> dict:
    """One student's points as the platform wants them."""
    return {
        "userId": user,
        "scoreGiven": one.points,
        "scoreMaximum": one.of,
        "comment": str(one.total),
        "timestamp": (when or datetime.now(UTC)).isoformat(timespec="milliseconds"),
        "activityProgress": "Completed" if one.entered else "Initialized",
        "gradingProgress": "PendingManual" if one.waiting else "FullyGraded",
    }


def post(lineitem: str, access: str, found: dict) -> None:
    """Send one score. If the platform refuses, NotTaken has its own words."""
    place = urllib.parse.urlsplit(lineitem)
    address = urllib.parse.urlunsplit(place._replace(path=f"{place.path.rstrip('/')}/scores"))
    _sent(address, json.dumps(found).encode(), {"Content-Type": FORM, "Authorization": f"Bearer {access}"})


def _sent(address: str, data: bytes, headers: dict[str, str]) -> bytes:
    request = urllib.request.Request(address, data, {"Accept": "application/json", **headers}, method="POST")
    try:
        with _NO_DETOUR.open(request, timeout=ANSWERS_S) as reply:
            return reply.read(MOST_ANSWER)
    except urllib.error.HTTPError as error:
        words = error.read(300).decode(errors="replace").strip()
        raise NotTaken(f"{error.code} {error.reason}: {words}") from None
    except OSError as error:
        raise NotTaken(f"{urllib.parse.urlsplit(address).netloc} does not answer ({error})") from None


class _Stays(urllib.request.HTTPRedirectHandler):
    """Refuse redirects, because a platform that sends us elsewhere would get a token or a grade to an unchecked
    address."""

    def redirect_request(self, *_, **__):
        return None


_NO_DETOUR = urllib.request.build_opener(_Stays)
