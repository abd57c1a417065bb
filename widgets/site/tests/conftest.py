"""One build of the site for all tests; the lessons' code is not run, which has its own test."""

import os

import pytest

from widgets.site import build, pyodide


@pytest.fixture(scope="session")
def made():
    return build.make(run=False)


@pytest.fixture(scope="session")
def site(made, tmp_path_factory):
    """The whole folder, with Python for the pages; where that can't be had, not run, and under CI an error."""
    out = tmp_path_factory.mktemp("site")
    try:
        build.put(out, made)
    except pyodide.NotFetched as problem:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"needs Pyodide from npm: {problem}")
    return out
