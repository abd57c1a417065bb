"""One build of the site for all tests, and a browser that reaches nothing but its server.

The lessons' code is not run, which has its own test.
"""

import os
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from widgets.browser import chromium as chromium_at
from widgets.site import build, npm


@pytest.fixture(scope="session")
def made():
    return build.make(run=False)


@pytest.fixture(scope="session")
def site(made, tmp_path_factory):
    """The whole folder, with Python for the pages; where that can't be had, not run, and under CI an error."""
    out = tmp_path_factory.mktemp("site")
    try:
        build.put(out, made)
    except npm.NotFetched as problem:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"needs what npm gives: {problem}")
    return out


AS_EVER = {"reduced_motion": "reduce", "color_scheme": "light", "forced_colors": "none", "media": "screen"}


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def base(site):
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=site))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.fixture(scope="module")
def browser(chromium):
    with chromium_at(chromium) as browser:
        yield browser


class Reader:
    """A context whose one page can reach nothing but the server, and what it asked for elsewhere or complained of."""

    def __init__(self, browser, base: str, **options):
        self.base, self.elsewhere, self.complaints = base, [], []
        self.context = browser.new_context(**options)
        self.context.route("**/*", self._guard)
        self.page = page = self.context.new_page()
        page.complaints = self.complaints
        page.on("pageerror", lambda problem: self.complaints.append(str(problem)))
        page.on("console", lambda said: self.complaints.append(said.text) if said.type == "error" else None)
        self._storage = self.context.new_cdp_session(page)

    def _guard(self, route):
        if route.request.url.startswith(self.base + "/"):
            return route.continue_()
        self.elsewhere.append(route.request.url)
        return route.abort()

    def forget(self) -> None:
        """As it was before anything was read."""
        self.page.goto("about:blank")
        self.page.unroute_all()
        self.page.mouse.move(0, 0)
        self.context.clear_permissions()
        self._storage.send("Storage.clearDataForOrigin", {"origin": self.base, "storageTypes": "all"})
        self.elsewhere.clear()
        self.complaints.clear()


@pytest.fixture(scope="module")
def reader(browser, base):
    """One for the tests of a file: a new page would cost each a second and a half of both cores."""
    one = Reader(browser, base)
    yield one
    one.context.close()


@pytest.fixture
def opened(browser, base, reader):
    """opened(path, python=True) -> a page that can reach nothing but the server; whatever else it asks for fails the test."""
    readers = []

    def open_one(
        path: str, python: bool = True, scripts: bool = True, viewport=None, permissions=(), **media
    ):
        one = reader if scripts else Reader(browser, base, java_script_enabled=False)
        readers.append(one)
        one.forget()
        one.context.grant_permissions(list(permissions))
        one.page.set_viewport_size(viewport or {"width": 1240, "height": 900})
        one.page.emulate_media(**{**AS_EVER, **media})
        if not python:  # its files never come: what is tested needs no model, and starting one takes seconds
            one.page.route("**/pyodide/**", lambda route: None)
        one.page.goto(f"{base}/{path}")
        return one.page

    yield open_one
    seen = [(one.elsewhere[:], one.complaints[:]) for one in readers]
    for one in readers:
        one.forget() if one is reader else one.context.close()
    assert not any(elsewhere or complaints for elsewhere, complaints in seen), seen
