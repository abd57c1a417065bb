"""List the mistakes of *goodput*, a row each."""

from grader.questions.rows import in_cells

GOOD = """good = ({one}) {both} ({second})
return {p99}, np.sum(good) / {over}"""
RIGHT = {
    "p99": "np.sort(first)[math.ceil(0.99 * len(first) - 1e-9) - 1]",
    "one": "first <= first_goal",
    "second": "between <= between_goal",
    "both": "&",
    "over": "seconds",
}


MISTAKES = in_cells(
    "goodput",
    "first, between, first_goal, between_goal, seconds",
    {
        "interpolated": (
            "np.percentile interpolates between two times: return the smallest measured time that 99% don't exceed",
            GOOD.format(**RIGHT | {"p99": "np.percentile(first, 99)"}),
        ),
        "the mean": (
            "a mean hides the tail: sort, and take the time that 99% don't exceed",
            GOOD.format(**RIGHT | {"p99": "first.mean()"}),
        ),
        "one place too far": (
            "of n sorted times take number ceil(0.99 n), counted from 1: its index is one less",
            GOOD.format(
                **RIGHT | {"p99": "np.sort(first)[min(math.ceil(0.99 * len(first) - 1e-9), len(first) - 1)]"}
            ),
        ),
        "one place short": (
            "fewer than 99% of the times are within this: round 0.99 n up, not down",
            GOOD.format(**RIGHT | {"p99": "np.sort(first)[max(int(0.99 * len(first) + 1e-9) - 1, 0)]"}),
        ),
        "the slowest": (
            "this is the slowest of all, not the 99th percentile",
            GOOD.format(**RIGHT | {"p99": "first.max()"}),
        ),
        "either goal": ("both goals must be met: &, not |", GOOD.format(**RIGHT | {"both": "|"})),
        "the first token alone": (
            "there is a goal for the time between tokens, too",
            GOOD.format(**RIGHT | {"second": "True"}),
        ),
        "met exactly": (
            "a goal that is met exactly is met: <=",
            GOOD.format(**RIGHT | {"one": "first < first_goal", "second": "between < between_goal"}),
        ),
        "throughput": (
            "this counts all requests: count only those that met both goals",
            GOOD.format(**RIGHT | {"one": "first > -1", "second": "between > -1"}),
        ),
        "a share": (
            "this is a share of the requests: return requests per second",
            GOOD.format(**RIGHT | {"over": "len(first)"}),
        ),
    },
)
