"""List the mistakes of *layer time*, a row each."""

from grader.questions.rows import in_cells
from grader.topics.expert_load_balance.layer_time.cases import layer_time

TIME = """held = np.bincount(device_of, loads, devices)
return {uneven}, {seconds}, {waiting}"""
RIGHT_TIME = {
    "uneven": "held.max() / held.mean()",
    "seconds": "held.max() * row_s + exchange_s",
    "waiting": "1 - held.mean() / held.max()",
}


def time(**changed: str) -> str:
    return TIME.format(**RIGHT_TIME | changed)


MISTAKES = in_cells(
    "layer_time",
    "loads, device_of, devices, row_s, exchange_s",
    {
        "mean": (
            "this is the time of even loads: all wait for the busiest device",
            time(seconds="held.mean() * row_s + exchange_s"),
        ),
        "one after another": (
            "devices work at the same time: take the longest time, not the sum",
            time(seconds="held.sum() * row_s + exchange_s"),
        ),
        "no exchange": ("the exchange takes time, too: add exchange_s", time(seconds="held.max() * row_s")),
        "busiest expert": (
            "devices wait for each other, experts don't: add up the loads on each device before you look for the largest",
            "held = np.bincount(device_of, loads, devices)\nreturn loads.max() / loads.mean(), loads.max() * row_s + exchange_s, 1 - loads.mean() / loads.max()",
        ),
        "over the least": (
            "the imbalance is the busiest load over the mean load: here a device without a token makes it infinite",
            time(uneven="held.max() / max(held.min(), 1e-30)"),
        ),
        "over the least, infinite": (
            "the imbalance is the busiest load over the mean load: here a device without a token makes it infinite",
            time(uneven="held.max() / held.min()"),
        ),
        "waiting beyond the mean": (
            "this compares the busiest device with the mean: the share spent waiting is 1 - mean / busiest",
            time(waiting="held.max() / held.mean() - 1"),
        ),
        "upside down": (
            "the imbalance is upside down: divide the busiest load by the mean",
            time(uneven="held.mean() / held.max()"),
        ),
        "of the busiest": (
            "this is the share spent working: waiting is the rest",
            time(waiting="held.mean() / held.max()"),
        ),
        "of the idlest": (
            "this is the share that the idlest device waits: over all devices the share is 1 - mean / busiest",
            time(waiting="1 - held.min() / held.max()"),
        ),
        "of the whole layer": (
            "the share refers to the time with the experts: leave the exchange out",
            time(waiting="1 - (held.mean() * row_s + exchange_s) / (held.max() * row_s + exchange_s)"),
        ),
    },
)


SHORTCUTS = {
    "two devices": lambda loads, device_of, devices, row_s, exchange_s: layer_time(
        loads, device_of % 2, 2, row_s, exchange_s
    )
}
