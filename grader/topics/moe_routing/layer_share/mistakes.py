"""List the mistakes of *layer share*, a row each."""

from grader.questions.rows import in_cells

SHARE = """step = {step}
layer = sum(us for name, start, us in events if {layer})
products = sum(us for name, start, us in events if name == 'moe.experts')
return {shares}"""
RIGHT_SHARE = {
    "step": "max(start + us for name, start, us in events) - min(start for name, start, us in events)",
    "layer": "name.startswith('moe.')",
    "shares": "layer / step, products / layer",
}


def share(**changed: str) -> str:
    return SHARE.format(**RIGHT_SHARE | changed)


MISTAKES = in_cells(
    "layer_share",
    "events",
    {
        "gaps left out": (
            "the step lasts from the first start to the last end: gaps between events count, too",
            share(step="sum(us for name, start, us in events)"),
        ),
        "from nought": (
            "the step begins when its first event starts, not at 0",
            share(step="max(start + us for name, start, us in events)"),
        ),
        "to the last start": (
            "the step ends when its last event ends: add the event's duration to its start",
            share(step="max(start for name, start, us in events) - min(start for name, start, us in events)"),
        ),
        "as they are listed": (
            "events need not be listed in order of time: find the first and the last by their starts and ends",
            share(step="events[-1][1] + events[-1][2] - events[0][1]"),
        ),
        "to the end of the last listed": (
            "events need not be listed in order of time: the one that ends last may be anywhere in the list",
            share(step="events[-1][1] + events[-1][2] - min(start for name, start, us in events)"),
        ),
        "to the end of who starts last": (
            "the step ends when the last event ends: an event that overlaps others may end after events that start later",
            share(
                step="max((start, start + us) for name, start, us in events)[1] - min(start for name, start, us in events)"
            ),
        ),
        "moe without its point": (
            'the layer\'s names begin with "moe.", dot included: other names may begin with "moe", too',
            share(layer="name.startswith('moe')"),
        ),
        "whatever ends in experts": (
            "the experts' matmuls are the events named moe.experts, not others whose name ends that way",
            share().replace("name == 'moe.experts'", "name.endswith('experts')"),
        ),
        "whatever begins like experts": (
            "the experts' matmuls are the events named moe.experts, not others whose name begins that way",
            share().replace("name == 'moe.experts'", "name.startswith('moe.experts')"),
        ),
        "moe anywhere": (
            "the layer's names begin with \"moe.\": a name that contains it further on is not the layer's",
            share(layer="'moe.' in name"),
        ),
        "experts alone": (
            'the layer is everything that begins with "moe.", router and permutation included',
            share(layer="name == 'moe.experts'"),
        ),
        "events counted": (
            "these are shares of the number of events: the question asks for shares of time",
            "n = [name for name, start, us in events]\nlayer = sum(name.startswith('moe.') for name in n)\nreturn layer / len(n), n.count('moe.experts') / layer",
        ),
        "both of the step": (
            "divide the second share by the layer's time, not by the step's",
            share(shares="layer / step, products / step"),
        ),
    },
)
