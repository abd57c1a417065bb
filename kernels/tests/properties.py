"""Property tests that are the same on every run and machine, and are skipped, by name, without hypothesis."""

import pytest

try:
    import hypothesis
    from hypothesis import strategies as st

    def given(**inputs):
        def decorate(test):
            settings = hypothesis.settings(derandomize=True, deadline=None, max_examples=60)
            return settings(hypothesis.given(**inputs)(test))

        return decorate

except ImportError:

    class _Absent:
        """Stands for any strategy, so that modules still import."""

        def __getattr__(self, name):
            return self

        def __call__(self, *args, **kwargs):
            return self

        def __or__(self, other):
            return self

    st = _Absent()

    def given(**inputs):
        return pytest.mark.skip(reason="needs hypothesis, and it is not installed")
