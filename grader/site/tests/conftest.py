"""Sites to test with, and Chromium on a lab of theirs. Where Pyodide can't be had, not run, and under CI an error."""

import os
import time
from contextlib import contextmanager

import pytest

from grader.site import build, ranged
from grader.site.tab import Tab, served
from widgets.browser import chromium as chromium_at
from widgets.site import build as lessons
from widgets.site import npm

MOST_S = 300  # that a worker waits for a site
SAMPLE = ("00_roofline/concepts", "00_roofline/first_kernels")


@contextmanager
def site(folder, labs=()):
    """Serve a site of labs: (its address, the bytes that were sent)."""
    try:
        once(folder, lambda: built(folder, labs))
    except (npm.NotFetched, ranged.NotFetched) as problem:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"needs Pyodide and its numpy: {problem}")
    with served(folder) as found:
        yield found


def built(folder, labs) -> None:
    build.put(folder, lessons._assets() | build.make(only=labs))
    npm.unpack(folder)
    build.compile_ahead(folder)
    build.pack(folder)


def once(folder, make) -> None:
    """Make a folder, or wait until another worker of this run has made it. If that one fails, fail like it."""
    begun, ended, failed = (folder.with_suffix(f".{what}") for what in ("begun", "ended", "failed"))
    try:
        begun.mkdir(parents=True)
    except FileExistsError:
        until = time.monotonic() + MOST_S
        while not ended.exists() and not failed.exists():
            assert time.monotonic() < until, f"another worker didn't end {folder}"
            time.sleep(0.2)
        if ended.exists():
            return
    try:
        make()
        ended.mkdir()
    except Exception:
        failed.mkdir(exist_ok=True)
        raise


def shared(tmp_path_factory, name: str):
    """Return a folder that all workers of this run share."""
    own = tmp_path_factory.getbasetemp()
    return (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / name


@pytest.fixture(scope="package")
def sample(tmp_path_factory):
    """Two labs of the site."""
    with site(shared(tmp_path_factory, "site"), SAMPLE) as found:
        yield found


@pytest.fixture(scope="package")
def whole(tmp_path_factory):
    """All labs of the site."""
    with site(shared(tmp_path_factory, "whole")) as found:
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
