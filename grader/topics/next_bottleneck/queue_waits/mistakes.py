"""List the mistakes of *queue waits*, a row each."""

from grader.questions.rows import in_cells

CLOCK = """free, waits = 0.0, []
for arrived, takes in zip(arrivals, services):
    start = max(free, arrived)
"""


MISTAKES = in_cells(
    "queue_waits",
    "arrivals, services",
    {
        "only the one before": (
            "the request before may have had to wait, too: keep the time at which the server is free",
            "ends = arrivals + services\nreturn np.append(0.0, np.maximum(ends[:-1] - arrivals[1:], 0))",
        ),
        "its own service": (
            "a request waits for the service of the one before it, services[i - 1], not for its own",
            "waits = [0.0]\nfor i in range(1, len(arrivals)):\n    waits.append(max(0.0, waits[-1] + services[i] - arrivals[i] + arrivals[i - 1]))\nreturn np.array(waits)",
        ),
        "with the service": (
            "this is the time in the system: the wait ends where the service begins",
            CLOCK
            + "    waits.append(start + takes - arrived)\n    free = start + takes\nreturn np.array(waits)",
        ),
        "never idle": (
            "an idle server can't work ahead: keep the time at which it is free, rather than adding up all services",
            "return np.maximum(np.append(0.0, np.cumsum(services)[:-1]) - (arrivals - arrivals[0]), 0)",
        ),
        "negative waits": (
            "a request that finds the server idle waits 0, not less",
            "free, waits = 0.0, []\nfor arrived, takes in zip(arrivals, services):\n    waits.append(free - arrived)\n    free = max(free, arrived) + takes\nreturn np.array(waits)",
        ),
        "no queue": (
            "requests arrive while others are being served, so they queue",
            "return np.zeros(len(arrivals))",
        ),
    },
)
