"""Login by LTI 1.3 at a real hub, from a platform that the test makes itself, keys and all, on a site of its own."""

import http.server
import json
import shutil
import tempfile
import threading
import time
import urllib.parse
from pathlib import Path
from types import SimpleNamespace

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from grader.classroom.hub.tests import machine
from grader.classroom.lti import keys

CLAIM = "https://purl.imsglobal.org/spec/lti/claim"
ISSUER, CLIENT = "https://platform.example", "1000-7"

pytestmark = [
    pytest.mark.skipif(bool(machine.missing()), reason=f"needs {machine.missing()}"),
    pytest.mark.browser,
]


class Desk(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        place = urllib.parse.urlsplit(self.path)
        asked = {name: values[0] for name, values in urllib.parse.parse_qs(place.query).items()}
        code, kind, said = self.server.answer(place.path, asked)
        self.send_response(code)
        self.send_header("Location" if code == 302 else "Content-Type", kind)
        self.end_headers()
        self.wfile.write(said.encode())

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def platform():
    """A platform of three pages: the launch, its own login, its keys. `claims` and `key` are what it signs, and with which key."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Desk)
    own = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    one = SimpleNamespace(at=f"http://localhost:{server.server_port}", own=own, key=own, claims={}, hub="")

    def answer(path, asked):
        if path == "/keys":
            return 200, "application/json", json.dumps(keys.public(own))
        if path == "/launch":
            hint = {"iss": ISSUER, "login_hint": asked["user"], "client_id": CLIENT}
            hint["target_link_uri"] = f"{one.hub}/hub/home"
            return 302, f"{one.hub}/hub/lti13/oauth_login?{urllib.parse.urlencode(hint)}", ""
        assert path == "/authorize" and asked["response_mode"] == "form_post" and asked["prompt"] == "none"
        now = int(time.time())
        claims = {"iss": ISSUER, "aud": CLIENT, "sub": asked["login_hint"], "nonce": asked["nonce"]}
        claims |= {"iat": now, "exp": now + 300, "email": "teacher@platform.example"}
        claims |= {f"{CLAIM}/version": "1.3.0", f"{CLAIM}/deployment_id": "1", f"{CLAIM}/roles": []}
        claims |= {f"{CLAIM}/message_type": "LtiResourceLinkRequest", f"{CLAIM}/resource_link": {"id": "1"}}
        claims |= {f"{CLAIM}/target_link_uri": f"{one.hub}/hub/home"} | one.claims
        token = jwt.encode(claims, one.key, "RS256", headers={"kid": keys.name(own)})
        form = (
            f'<form method=post action="{asked["redirect_uri"]}"><input name=state value="{asked["state"]}">'
        )
        return 200, "text/html", f'{form}<input name=id_token value="{token}"></form><script>document.forms[0].submit()</script>'  # fmt: skip

    server.answer = answer
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield one
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def hub(platform):
    place = Path(tempfile.mkdtemp(prefix="hub", dir="/srv"))
    place.chmod(0o755)
    one = machine.Machine(place)
    try:
        one.make([one.user("ada"), one.user("bob")], one.user("teacher"))
        rows = {one.user("ada"): "17", one.user("bob"): "18", "root": "19", one.user("gone"): "20"}
        table = "".join(f"{name},{number}\n" for name, number in rows.items())
        (place / "names.csv").write_text("student,lti\n" + table)
        held = {"issuer": ISSUER, "client_id": CLIENT, "names": "names.csv"}
        held |= {"authorize_url": f"{platform.at}/authorize", "jwks_endpoint": f"{platform.at}/keys"}
        (place / "platform.json").write_text(json.dumps(held))
        one.more = {"TILE_LTI": str(place / "platform.json")}
        one.start()
        platform.hub = one.url
        yield one
    finally:
        one.end()
        shutil.rmtree(place, ignore_errors=True)


def arrive(hub, platform, browser, user, key=None, **claims):
    """(status, text) of the page that a launch ends on, for a browser that was never here."""
    platform.key, platform.claims = key or platform.own, claims
    page = browser.new_page()
    page.set_default_timeout(60_000)
    replies = []
    page.on("response", lambda reply: replies.append(reply) if "/hub/" in reply.url else None)
    page.goto(f"{platform.at}/launch?user={user}")
    page.wait_for_url(f"{hub.url}/**")
    page.wait_for_load_state()
    text, last = page.inner_text("body"), [one for one in replies if one.url.split("?")[0] == page.url.split("?")[0]]  # fmt: skip
    page.close()
    return last[-1].status, text


def test_a_launch_logs_in_the_student_whom_the_table_names(hub, platform, browser):
    for number, name in (("17", "ada"), ("18", "bob")):
        status, text = arrive(hub, platform, browser, number)
        assert status == 200 and hub.user(name) in text, text


@pytest.mark.parametrize(
    "user, spoiled, status, words",
    [
        ("99", {}, 400, "does not know user '99' of the platform"),
        ("19", {}, 403, ""),  # root is in no group of the class
        ("20", {}, 403, ""),  # and this one is not on the machine
        ("17", {"key": rsa.generate_private_key(public_exponent=65537, key_size=2048)}, 400, "Signature"),
        ("17", {"nonce": "of another launch"}, 400, "nonce"),
        ("17", {"aud": "another tool"}, 401, "Audience"),
        ("17", {"iss": "https://elsewhere.example"}, 400, "issuer"),
        ("17", {"exp": 1_700_000_000}, 400, "expired"),
    ],
    ids=["stranger", "root", "gone", "key", "nonce", "audience", "issuer", "expired"],
)
def test_nobody_else_gets_in(hub, platform, browser, user, spoiled, status, words):
    found, text = arrive(hub, platform, browser, user, **spoiled)
    assert found == status and words in text, text
    assert hub.user("ada") not in text


@pytest.mark.parametrize(
    "spoil, words",
    [
        (lambda held: held.pop("issuer"), "must hold authorize_url, client_id, issuer, jwks_endpoint, names"),
        (lambda held: held.update(jwks_endpoint="http://platform.example/keys"), "must begin with https://"),
        (lambda held: held.update(names="platform.json"), "must have the columns student and lti"),
    ],
)
def test_settings_that_are_wrong_are_refused(tmp_path, spoil, words):
    from grader.classroom.hub import lti_login

    (tmp_path / "names.csv").write_text("student,lti\nada,17\n")
    held = dict.fromkeys(lti_login.KEYS, "https://platform.example") | {"names": "names.csv"}
    (tmp_path / "platform.json").write_text(json.dumps(held))
    assert lti_login.read(tmp_path / "platform.json") == held
    spoil(held)
    (tmp_path / "platform.json").write_text(json.dumps(held))
    with pytest.raises(ValueError, match=words):
        lti_login.read(tmp_path / "platform.json")
