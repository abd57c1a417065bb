"""Fail a test for the mistakes of its launches, and report them (`pytest --tilescope`).

Nothing is installed before the first test runs, so that libraries are imported as on any machine without a GPU.
"""

import warnings

import pytest

from .asked import ON_REQUEST


class TilescopeWarning(UserWarning):
    """Something that a launch does, and that need not be a mistake."""


def pytest_addoption(parser):
    group = parser.getgroup("tilescope", "Triton kernels without a GPU")
    group.addoption("--tilescope", action="store_true", help="check every launch of a Triton kernel")
    for name, what in ON_REQUEST.items():
        group.addoption(f"--tilescope-{name.replace('_', '-')}", action="store_true", help=what)


def pytest_configure(config):
    if not config.getoption("tilescope"):
        return
    from .versions import hindrance

    if wrong := hindrance():
        raise pytest.UsageError(f"--tilescope: {wrong}")
    config.pluginmanager.register(Watching(config), "tilescope watching")


class Watching:
    """Watches each test, and the fixtures that it sets up."""

    def __init__(self, config):
        self.asked = {name: config.getoption(f"tilescope_{name}") for name in ON_REQUEST}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item):
        return (yield from self.watched(item, "setup"))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item):
        return (yield from self.watched(item, "call"))

    def watched(self, item, when: str):
        from .watching import watch

        with watch(**self.asked) as seen:
            try:
                result = yield
            except BaseException:
                if seen.findings:
                    item.add_report_section(when, "tilescope", "\n".join(map(str, seen.findings)))
                raise
        for finding in seen.findings:
            if finding.severity == "warning":
                warnings.warn(TilescopeWarning(str(finding)), stacklevel=1)
        if seen.errors:
            pytest.fail("\n".join(map(str, seen.errors)), pytrace=False)
        return result
