"""Tests of other things don't wait until all small changes of a wrong kernel are tried."""

import pytest

from grader.judge import kernel_repair

FEW_CHANGES = 8


@pytest.fixture(autouse=True, scope="session")
def few_changes():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel_repair, "MOST_CHANGES", FEW_CHANGES)
        yield
