"""Keep the list of watchers of launches, and the checks that they ask for."""

SEEING: list = []  # each with `take`, `refused`, `looks`, and the names of ON_REQUEST
ON_REQUEST = {
    "all_configs": "run autotuned kernels with every configuration, not with the first one alone",
    "overflow": "report int32 arithmetic that overflows on its way into an address",
    "nan": "warn where an operation makes a NaN or an infinity of numbers that are none",
    "atomics": "report atomic additions of floats, whose order decides the last bits",
}
SECONDS = 120.0  # of processor time that a launch may take by default


def seconds() -> float:
    """Return the processor time that a launch may take."""
    return max((seen.seconds for seen in SEEING if seen.seconds), default=SECONDS)


def asked(name: str) -> bool:
    """Return whether any watcher asks for a check that is made on request only."""
    return any(getattr(seen, name) for seen in SEEING)
