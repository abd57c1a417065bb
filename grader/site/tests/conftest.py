"""Sites to test with, and Chromium on a lab of theirs. Where Pyodide can't be had, not run, and under CI an error."""

import os
from contextlib import contextmanager

import pytest

from grader.site import build, ranged
from grader.site.tab import Tab, served
from widgets.browser import chromium as chromium_at
from widgets.site import build as lessons
from widgets.site import npm

SAMPLE = ("00_roofline/concepts", "00_roofline/first_kernels")


@contextmanager
def site(folder, labs=()):
    """Serve a site of labs: (its address, the bytes that were sent)."""
    try:
        build.put(folder, lessons._assets() | build.make(only=labs))
        npm.unpack(folder)
        build.compile_ahead(folder)
    except (npm.NotFetched, ranged.NotFetched) as problem:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"needs Pyodide and its numpy: {problem}")
    build.pack(folder)
    with served(folder) as found:
        yield found


@pytest.fixture(scope="package")
def sample(tmp_path_factory):
    """Two labs of the site."""
    with site(tmp_path_factory.mktemp("site"), SAMPLE) as found:
        yield found


@pytest.fixture(scope="package")
def whole(tmp_path_factory):
    """All labs of the site."""
    with site(tmp_path_factory.mktemp("whole")) as found:
        yield found


@contextmanager
def tab_on(chromium: str, base: str):
    """A tab whose requests to other origins fail, and are told at the end."""
    elsewhere = []

    def guard(route):
        ours = route.request.url.startswith((base + "/", "blob:", "about:"))
        if not ours:
            elsewhere.append(route.request.url)
        route.continue_() if ours else route.abort()

    with chromium_at(chromium) as browser:
        context = browser.new_context(accept_downloads=True)
        context.route("**/*", guard)
        yield Tab(context.new_page(), base)
        context.close()
    assert elsewhere == []
