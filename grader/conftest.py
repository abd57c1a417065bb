"""Tests of other things don't wait until all small changes of a wrong kernel are tried."""

import pytest

from grader.judge import kernel_repair, rank_repair

FEW_CHANGES = 8


@pytest.fixture(autouse=True, scope="session")
def few_changes():
    with pytest.MonkeyPatch.context() as patch:
        for repair in (kernel_repair, rank_repair):
            patch.setattr(repair, "MOST_CHANGES", FEW_CHANGES)
        patch.setattr(kernel_repair, "MOST_PACKINGS", FEW_CHANGES)
        yield
