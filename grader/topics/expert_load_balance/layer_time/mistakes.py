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
            "devices work side by side: the longest counts, not the sum",
            time(seconds="held.sum() * row_s + exchange_s"),
        ),
        "no exchange": ("the exchange takes its time too", time(seconds="held.max() * row_s")),
        "busiest expert": (
            "an expert waits for nobody, devices do: sum the loads of each device before you look for the largest",
            "held = np.bincount(device_of, loads, devices)\nreturn loads.max() / loads.mean(), loads.max() * row_s + exchange_s, 1 - loads.mean() / loads.max()",
        ),
        "over the least": (
            "imbalance is the busiest over the mean: a device without a token would make it infinite here",
            time(uneven="held.max() / max(held.min(), 1e-30)"),
        ),
        "over the least, infinite": (
            "imbalance is the busiest over the mean: a device without a token would make it infinite here",
            time(uneven="held.max() / held.min()"),
        ),
        "waiting beyond the mean": (
            "this is how much longer the busiest works than the mean: the share that is waited is 1 - mean / busiest",
            time(waiting="held.max() / held.mean() - 1"),
        ),
        "upside down": ("the busiest stands above the line", time(uneven="held.mean() / held.max()")),
        "of the busiest": (
            "this is the share that is worked: waiting is the rest",
            time(waiting="held.mean() / held.max()"),
        ),
        "of the idlest": (
            "this is how long the idlest device waits: the share is of all devices' time, 1 - mean / busiest",
            time(waiting="1 - held.min() / held.max()"),
        ),
        "of the whole layer": (
            "the share is of the time with the experts: the exchange is no part of it",
            time(waiting="1 - (held.mean() * row_s + exchange_s) / (held.max() * row_s + exchange_s)"),
        ),
    },
)


SHORTCUTS = {
    "two devices": lambda loads, device_of, devices, row_s, exchange_s: layer_time(
        loads, device_of % 2, 2, row_s, exchange_s
    )
}
