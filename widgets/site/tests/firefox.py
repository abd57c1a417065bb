"""A headless Firefox, driven over WebDriver BiDi, which it speaks itself: no driver program stands between."""

import json
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import websocket

from widgets.tests.browser.lab import free_port

PREFERENCES = {
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "app.update.enabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "remote.active-protocols": 1,
}


class Wrong(Exception):
    """What Firefox said instead of an answer."""


class Page:
    """One tab: values in and out as JSON, keys and pointers as a person gives them."""

    def __init__(self, connection: websocket.WebSocket):
        self._connection, self._number = connection, 0
        self.complaints: list[str] = []
        self._tell("session.new", capabilities={})
        self._tell("session.subscribe", events=["log.entryAdded"])
        self._tab = self._tell("browsingContext.getTree")["contexts"][0]["context"]

    def _tell(self, method: str, **params) -> dict:
        self._number += 1
        self._connection.send(json.dumps({"id": self._number, "method": method, "params": params}))
        while True:
            came = json.loads(self._connection.recv())
            if came.get("method") == "log.entryAdded" and came["params"]["level"] == "error":
                self.complaints.append(came["params"]["text"])
            if came.get("id") == self._number:
                if came["type"] == "error":
                    raise Wrong(f"{method}: {came['message']}")
                return came["result"]

    def resize(self, width: int, height: int = 800) -> None:
        self._tell(
            "browsingContext.setViewport", context=self._tab, viewport={"width": width, "height": height}
        )

    def open(self, url: str, width: int = 1280) -> None:
        self.complaints.clear()
        self.resize(width)
        self._tell("browsingContext.navigate", context=self._tab, url=url, wait="complete")

    def ask(self, function: str, *given):
        """What a function of JavaScript gives for these values, awaited."""
        asked = f"async () => JSON.stringify(await ({function})(...{json.dumps(given)}) ?? null)"
        came = self._tell(
            "script.callFunction",
            functionDeclaration=asked,
            target={"context": self._tab},
            awaitPromise=True,
            userActivation=True,
        )
        if came["type"] == "exception":
            raise Wrong(came["exceptionDetails"]["text"])
        return json.loads(came["result"]["value"])

    def wait(self, function: str, *given, seconds: float = 60.0):
        """The first value of it that is true."""
        end = time.monotonic() + seconds
        while not (value := self.ask(function, *given)):
            if time.monotonic() > end:
                raise Wrong(f"within {seconds:.0f} s never true: {function}")
            time.sleep(0.05)
        return value

    def press(self, key: str) -> None:
        strokes = [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
        self._act({"type": "key", "id": "keys", "actions": strokes})

    def drag(self, start: tuple[float, float], end: tuple[float, float], steps: int = 8) -> None:
        moves = [
            {
                "type": "pointerMove",
                "x": round(start[0] + (end[0] - start[0]) * i / steps),
                "y": round(start[1] + (end[1] - start[1]) * i / steps),
                "duration": 16,
            }
            for i in range(steps + 1)
        ]
        first, *rest = moves
        down, up = {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}
        self._act({"type": "pointer", "id": "mouse", "actions": [first, down, *rest, up]})

    def _act(self, source: dict) -> None:
        self._tell("input.performActions", context=self._tab, actions=[source])


KEYS = {"ArrowLeft": "\ue012", "ArrowUp": "\ue013", "ArrowRight": "\ue014", "ArrowDown": "\ue015"}


@contextmanager
def firefox(path: str, motion: bool = False) -> Iterator[Page]:
    port, wished = free_port(), {**PREFERENCES, "ui.prefersReducedMotion": int(not motion)}
    with tempfile.TemporaryDirectory(prefix="firefox-") as home:
        lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in wished.items()]
        (Path(home) / "user.js").write_text("\n".join(lines))
        started = subprocess.Popen(
            [path, "--headless", "--no-remote", "--profile", home, f"--remote-debugging-port={port}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            connection = _connected(f"ws://127.0.0.1:{port}/session", started)
            yield Page(connection)
            connection.close()
        finally:
            started.terminate()
            with suppress(subprocess.TimeoutExpired):
                started.wait(10)
            started.kill()


def _connected(address: str, started: subprocess.Popen) -> websocket.WebSocket:
    for _ in range(300):
        if started.poll() is not None:
            break
        with suppress(OSError, websocket.WebSocketException):
            return websocket.create_connection(address, timeout=120, suppress_origin=True)
        time.sleep(0.1)
    raise Wrong("Firefox must open its remote port, and did not")
