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
            "the step lasts from the first start to the last end: between two events nothing runs, and time goes on",
            share(step="sum(us for name, start, us in events)"),
        ),
        "from nought": (
            "the step begins where its first event does, and not at 0",
            share(step="max(start + us for name, start, us in events)"),
        ),
        "to the last start": (
            "the step ends where its last event ends, which is its start plus what it lasts",
            share(step="max(start for name, start, us in events) - min(start for name, start, us in events)"),
        ),
        "as they are listed": (
            "events need not be listed in the order of time: the first and the last are found by their starts and ends",
            share(step="events[-1][1] + events[-1][2] - events[0][1]"),
        ),
        "to the end of the last listed": (
            "events need not be listed in the order of time: the one that ends last may stand anywhere in the list",
            share(step="events[-1][1] + events[-1][2] - min(start for name, start, us in events)"),
        ),
        "to the end of who starts last": (
            "the step ends where the last event ends, and one that runs beside others may end after all that start later",
            share(
                step="max((start, start + us) for name, start, us in events)[1] - min(start for name, start, us in events)"
            ),
        ),
        "moe without its point": (
            "what belongs to the layer begins with moe. and its point: another name may begin with moe too",
            share(layer="name.startswith('moe')"),
        ),
        "whatever ends in experts": (
            "the products are the events named moe.experts, no others whose name ends alike",
            share().replace("name == 'moe.experts'", "name.endswith('experts')"),
        ),
        "whatever begins like experts": (
            "the products are the events named moe.experts, no others whose name begins alike",
            share().replace("name == 'moe.experts'", "name.startswith('moe.experts')"),
        ),
        "moe anywhere": (
            "what belongs to the layer begins with moe.: a name that has it further on is not the layer's",
            share(layer="'moe.' in name"),
        ),
        "experts alone": (
            "the layer is all that begins with moe., the router and the permutation with the rest",
            share(layer="name == 'moe.experts'"),
        ),
        "events counted": (
            "shares are of time; this counts events",
            "n = [name for name, start, us in events]\nlayer = sum(name.startswith('moe.') for name in n)\nreturn layer / len(n), n.count('moe.experts') / layer",
        ),
        "both of the step": (
            "the second share is of the layer, not of the step",
            share(shares="layer / step, products / step"),
        ),
    },
)
