"""What the referee's end makes of a machine that fails for reasons of its own."""

from types import SimpleNamespace

import pytest

from grader.box import warm
from grader.box.serve import reported
from grader.machine import host


@pytest.mark.parametrize(
    ("error", "ours"),
    [(RuntimeError("can't start new thread"), True), (ZeroDivisionError("integer division"), False)],
)
def test_a_system_without_threads_is_no_fault_of_the_answer(monkeypatch, error, ours):
    outcome = SimpleNamespace(error=reported.report_of(error))
    monkeypatch.setattr(warm, "programs", lambda *_: SimpleNamespace(ask=lambda *_: outcome))
    plan = SimpleNamespace(steps=[], scratch={})
    if ours:
        with pytest.raises(warm.JailTrouble, match="no thread"):
            host.run_case((), plan, [], values={})
    else:
        assert host.run_case((), plan, [], values={}) is outcome
