"""Choose a kernel: check every rule, take the fastest valid one. Fast but invalid is a bug."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kernels import require
from kernels.next_bottleneck.dispatch_tables import BACKENDS, FEATURES, JOBS, Backend, Rule


@dataclass(frozen=True)
class Verdict:
    backend: str
    preference: int  # 0 is the fastest of its operation
    broken: tuple[str, ...]  # the rules it breaks, in words
    broken_rules: tuple[Rule, ...] = ()

    @property
    def valid(self) -> bool:
        return not self.broken


@dataclass(frozen=True)
class Dispatch:
    verdicts: tuple[Verdict, ...]  # in order of preference

    @property
    def chosen(self) -> str | None:
        return next((one.backend for one in self.verdicts if one.valid), None)

    @property
    def place(self) -> int:
        """Return the rank by speed of the backend that runs: 1 is the fastest, 0 if nothing may run."""
        return next((one.preference + 1 for one in self.verdicts if one.valid), 0)

    @property
    def fast_but_invalid(self) -> tuple[str, ...]:
        """Return the backend that a dispatcher looking at speed alone would have run instead."""
        ahead = []
        for one in self.verdicts:
            if one.valid:
                return tuple(ahead)
            ahead.append(one.backend)
        return tuple(ahead)

    def of_job(self, operation: str) -> "Dispatch":
        """Return the verdicts on kernels built for this very job, ranked among themselves."""
        job = JOBS[operation]
        mine = [one for one in self.verdicts if all(rule.feature != job for rule in one.broken_rules)]
        return Dispatch(tuple(replace(one, preference=i) for i, one in enumerate(mine)))


def _allows(rule: Rule, value) -> bool:
    if rule.kind == "among":
        return value in rule.values
    if rule.kind == "at least":
        return value >= rule.values[0]
    if rule.kind == "at most":
        return value <= rule.values[0]
    return value % rule.values[0] == 0


def _words(rule: Rule, value) -> str:
    allowed = " or ".join(str(one) for one in rule.values)
    kind = "" if rule.kind == "among" else f"{rule.kind} "
    return f"{rule.feature} must be {kind}{allowed}, got {value}"


def dispatch(operation: str, backends: tuple[Backend, ...] = BACKENDS, **features) -> Dispatch:
    """Judge every backend of an operation. Each feature of FEATURES[operation] must be given."""
    require.one_of(tuple(FEATURES), operation=operation)
    known = FEATURES[operation]
    require.one_of(tuple(known), **{f"feature {name}": name for name in features})
    require.one_of(tuple(features), **{f"feature {name}": name for name in known})
    for name, value in features.items():
        require.one_of(known[name], **{name: value})
    return Dispatch(_judged(operation, backends, features))


def places_over(feature: str, operation: str, **features) -> dict:
    """Map each value of one feature, the others held, to the rank by speed of the backend that then runs."""
    require.one_of(tuple(FEATURES), operation=operation)
    require.one_of(tuple(FEATURES[operation]), feature=feature)
    values = FEATURES[operation][feature]
    return {value: dispatch(operation, **{**features, feature: value}).place for value in values}


def _judged(operation: str, backends: tuple[Backend, ...], features: Mapping) -> tuple[Verdict, ...]:
    mine = [one for one in backends if one.operation == operation]
    verdicts = []
    for preference, one in enumerate(mine):
        broken = tuple(rule for rule in one.rules if not _allows(rule, features[rule.feature]))
        words = tuple(_words(rule, features[rule.feature]) for rule in broken)
        verdicts.append(Verdict(one.name, preference, words, broken))
    return tuple(verdicts)
