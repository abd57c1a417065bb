"""Simulators that stand for all where each costs seconds: of every kind of control and kind of picture one."""

import pytest

from widgets.declare import Declaration


def kinds(simulator: Declaration) -> set:
    """What a view does of its own for this simulator."""
    controls = {control.kind for control in simulator.controls}
    folded = {f"folded {any(control.more for control in simulator.controls)}"}
    return {f"steps {bool(simulator.stepper)}"} | controls | folded


def sampled(simulators: list[Declaration]) -> list[Declaration]:
    """Always the same few that show every kind: the one that adds most, the first of equals, and so on."""
    left, missing, chosen = list(simulators), set().union(*map(kinds, simulators)), []
    while missing:
        best = max(left, key=lambda one: len(kinds(one) & missing))
        left.remove(best)
        chosen.append(best)
        missing -= kinds(best)
    return sorted(chosen, key=simulators.index)


def in_proofs(rows: list, sample: list) -> list:
    """Return all rows. Those that are not in the sample wait for make proofs."""
    return [row if row in sample else pytest.param(row, marks=pytest.mark.slow) for row in rows]


def a_third(simulators: list[Declaration], place: int) -> list:
    """Return all, of which make test takes the first, second or last third. Each of three tests of one kind has its own."""
    count = len(simulators)
    return in_proofs(simulators, simulators[place * count // 3 : (place + 1) * count // 3])
