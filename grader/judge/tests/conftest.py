"""What tests of one kind of hidden case share."""

import pytest

from grader.judge.kernel_evidence import AT_NUMBER, ON_CONDITION, KernelEvidence


@pytest.fixture
def alone(monkeypatch):
    """Leave of the cases beyond the drawn ones those of some purposes: to look for the others and run them takes most of a test."""

    def leave(*purposes: int) -> None:
        corners = KernelEvidence.corners
        monkeypatch.setattr(
            KernelEvidence,
            "corners",
            lambda *given: {one: case for one, case in corners(*given).items() if one in purposes},
        )
        for search, found in (("on_condition", ON_CONDITION), ("at_numbers", AT_NUMBER)):
            if not {*found} & {*purposes}:
                monkeypatch.setattr(KernelEvidence, search, lambda *_: {})

    return leave
