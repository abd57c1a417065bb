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


@pytest.fixture
def opened(browser, base):
    """opened(path, python=True) -> a page that can reach nothing but the server; whatever else it asks for fails the test."""
    contexts, elsewhere, complaints = [], [], []

    def guard(route):
        if route.request.url.startswith(base + "/"):
            return route.continue_()
        elsewhere.append(route.request.url)
        return route.abort()

    def open_one(path: str, python: bool = True, **options):
        context = browser.new_context(
            **{"viewport": {"width": 1240, "height": 900}, "reduced_motion": "reduce", **options}
        )
        contexts.append(context)
        context.route("**/*", guard)
        if not python:  # its files never come: what is tested needs no model, and starting one takes seconds
            context.route("**/pyodide/**", lambda route: None)
        page = context.new_page()
        page.on("pageerror", lambda problem: complaints.append(str(problem)))
        page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
        page.complaints = complaints
        page.goto(f"{base}/{path}")
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert not elsewhere and not complaints
