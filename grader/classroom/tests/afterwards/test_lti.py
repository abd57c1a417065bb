"""LTI 1.3 with a platform that the test makes itself, keys and all: it checks what a platform has to check."""

import http.server
import json
import stat
import threading
import time
import urllib.parse
from types import SimpleNamespace

import jwt
import pytest

from grader.classroom import marks
from grader.classroom.lti import command, keys, service
from grader.classroom.tests.afterwards.conftest import finish
from grader.classroom.tests.conftest import LAB
from grader.verdicts import EXIT, FAIL, WRONG_USAGE

USERS = {"ada": "5a-1", "bob": "5a-2", "cy": "5a-3", "dee": "5a-4", "eve": "5a-5"}


class Desk(http.server.BaseHTTPRequestHandler):
    """A platform's two addresses. Whatever is not as LTI Advantage asks gets a 4xx."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        code, said = self.server.answer(urllib.parse.urlsplit(self.path), self.headers, body)
        data = json.dumps(said).encode()
        self.send_response(code)
        if code == 302:
            self.send_header("Location", said["to"])
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


@pytest.fixture
def platform(graded, monkeypatch):
    monkeypatch.setattr(command, "ROOT", graded.root)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Desk)
    here = f"http://127.0.0.1:{server.server_port}"
    one = SimpleNamespace(here=here, known=None, scores={}, seen=set(), refuses=set(), detour="")

    def answer(place, headers, body):
        if one.detour:
            return 302, {"to": one.detour}
        if place.path == "/token":
            return granted(urllib.parse.parse_qs(body.decode()))
        assert place.path == "/courses/1/line_items/7/scores" and place.query == "type=lab", place
        if headers["Authorization"] != "Bearer a token of an hour":
            return 401, "no such token"
        assert headers["Content-Type"] == "application/vnd.ims.lis.v1.score+json"
        found = json.loads(body)
        if found["userId"] in one.refuses:
            return 404, {"errors": "no such user"}
        one.scores[found["userId"]] = found
        return 200, {}

    def granted(form):
        key = jwt.PyJWK(one.known["keys"][0])
        assert form["scope"] == [service.SCORE] and form["grant_type"] == ["client_credentials"]
        (text,) = form["client_assertion"]
        try:
            claims = jwt.decode(text, key, ["RS256"], audience=f"{here}/token", issuer="1000-7")
        except jwt.InvalidTokenError as error:
            return 400, {"error": str(error)}
        assert claims["sub"] == "1000-7" and claims["exp"] <= time.time() + 301
        if claims["jti"] in one.seen:
            return 400, {"error": "seen before"}
        one.seen.add(claims["jti"])
        return 200, {"access_token": "a token of an hour", "token_type": "Bearer"}

    server.answer = answer
    threading.Thread(target=server.serve_forever, daemon=True).start()
    settings = {"client_id": "1000-7", "token_url": f"{here}/token"}
    settings["lineitems"] = {LAB: f"{here}/courses/1/line_items/7?type=lab"}
    service.path(graded.root).write_text(json.dumps(settings))
    (graded.root / "names.csv").write_text("student,lti\n" + "".join(f"{n},{u}\n" for n, u in USERS.items()))
    yield one
    server.shutdown()
    server.server_close()


def scores(course, *more) -> int:
    return command.main(["scores", LAB, "--names", str(course.root / "names.csv"), *more])


def test_scores_reach_a_platform_that_knows_the_key(graded, platform, capsys):
    assert command.main(["keys"]) == 0
    platform.known = json.loads(capsys.readouterr().out)
    assert "d" not in platform.known["keys"][0], "the private half stays here"
    assert stat.S_IMODE(keys.path(graded.root).stat().st_mode) == 0o600
    assert command.main(["keys"]) == 0 and json.loads(capsys.readouterr().out) == platform.known
    assert scores(graded) == EXIT[FAIL] and not platform.scores, "nothing that is not final"
    assert "is not finished" in capsys.readouterr().err
    assert scores(graded, "--unfinished") == 0
    assert {one["gradingProgress"] for one in platform.scores.values()} == {"PendingManual"}

    finish(graded.root)
    platform.refuses = {USERS["bob"]}
    assert scores(graded) == EXIT[FAIL]
    said = capsys.readouterr().out
    assert (
        f"{LAB}: 4 scores sent" in said
        and 'not sent: bob: 404 Not Found: {"errors": "no such user"}\n' in said
    )
    platform.refuses = set()
    assert scores(graded) == 0
    points = {one.student: one.points for one in marks.standings(graded.root, LAB)}
    assert {name: platform.scores[user]["scoreGiven"] for name, user in USERS.items()} == points
    ada = platform.scores[USERS["ada"]]
    assert (ada["scoreMaximum"], ada["comment"], ada["activityProgress"]) == (10, "7 of 10", "Completed")
    assert ada["gradingProgress"] == "FullyGraded" and ada["timestamp"].endswith("+00:00")


def test_a_key_that_the_platform_does_not_know_sends_nothing(graded, platform, capsys):
    finish(graded.root)
    assert scores(graded) == WRONG_USAGE and "Run python -m grader lti keys" in capsys.readouterr().err
    other = keys.rsa.generate_private_key(public_exponent=65537, key_size=keys.BITS)
    platform.known = keys.public(other)
    command.main(["keys"])
    assert scores(graded) == EXIT[FAIL] and not platform.scores
    assert "Signature verification failed" in capsys.readouterr().err


def test_a_platform_that_sends_us_elsewhere_gets_nothing_there(graded, platform, capsys):
    finish(graded.root)
    command.main(["keys"])
    platform.detour = f"{platform.here}/courses/1/line_items/7/scores?type=lab"
    assert scores(graded) == EXIT[FAIL] and not platform.scores
    assert "302 Found" in capsys.readouterr().err


def test_what_is_missing_is_said(graded, platform, capsys):
    finish(graded.root)
    platform.known = keys.public(keys.make(graded.root))
    (graded.root / "names.csv").write_text("student,lti\nada,5a-1\nbob,\n")
    assert scores(graded) == EXIT[FAIL]
    assert (
        "1 scores sent" in (said := capsys.readouterr().out)
        and "in the column lti: bob, cy, dee, eve" in said
    )
    held = json.loads(service.path(graded.root).read_text())
    for change, why in (
        ({"token_url": "http://canvas.example.org/token"}, "must begin with https://"),
        ({"lineitems": {}}, f"must name the column of {LAB}"),
        ({"secret": "x"}, "must hold client_id, token_url and lineitems"),
    ):
        service.path(graded.root).write_text(json.dumps(held | change))
        assert scores(graded) == WRONG_USAGE and why in capsys.readouterr().err
    service.path(graded.root).unlink()
    assert (
        scores(graded) == WRONG_USAGE
        and "See learning_platforms.md for an example" in capsys.readouterr().err
    )
