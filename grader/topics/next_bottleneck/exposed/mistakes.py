"""List the mistakes of *exposed*, a row each."""

from grader.questions.rows import in_cells

LINK = """free = 0.0
for start, takes in zip(ready, seconds):
    free = max(free, start) + takes
"""


MISTAKES = in_cells(
    "exposed",
    "ready, seconds, end_s",
    {
        "after the last": (
            "the last bucket to be ready doesn't wait for the time that all take, since earlier ones may have left by then: each bucket leaves as soon as it can",
            "done = ready[-1] + seconds.sum()\nreturn done, max(0.0, done - end_s)",
        ),
        "all at once": (
            "one link sends one bucket at a time: a bucket waits for those before it",
            "done = (ready + seconds).max()\nreturn done, max(0.0, done - end_s)",
        ),
        "never idle": (
            "the link can't send before the first bucket is ready, and it may have to wait for later ones, too",
            "done = seconds.sum()\nreturn done, max(0.0, done - end_s)",
        ),
        "waits once": (
            "the link may wait for any bucket, not only for the first",
            "done = ready[0] + seconds.sum()\nreturn done, max(0.0, done - end_s)",
        ),
        "below zero": (
            "if all sending is hidden, the exposed time is 0, not negative",
            LINK + "return free, free - end_s",
        ),
        "all of it": ("only sending after the backward pass is exposed", LINK + "return free, seconds.sum()"),
        "sum less the pass": (
            "the exposed time isn't the sending minus the backward pass: the last bucket can't leave before it is ready",
            LINK + "return free, max(0.0, seconds.sum() - end_s)",
        ),
    },
)
