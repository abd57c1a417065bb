"""Draw the inputs of *layer share* and limit their cost."""

from grader.questions.draws import between


def layer_share(events):
    step = max(start + us for _, start, us in events) - min(start for _, start, _ in events)
    layer = sum(us for name, _, us in events if name.startswith("moe."))
    products = sum(us for name, _, us in events if name == "moe.experts")
    return layer / step, products / layer


NAMES = ("norm", "attention", "moe.router", "moe.order", "moe.experts", "moe.combine")


def events(rng, blocks, shuffled=False):
    """Draw a step of some blocks, with gaps between launches, from any start. With `shuffled` the first isn't listed
    first."""
    at, found = rng.uniform(5, 500), []
    for name in [name for _ in range(blocks) for name in NAMES] + ["logits"]:
        us = float(rng.uniform(2, 60))
        found.append((name, float(at), us))
        at += us + rng.uniform(0.5, 20)
    cut = between(rng, 1, len(found) - 1) if shuffled else 0
    return found[cut:] + found[:cut]


def beside(rng):
    """Draw a step in which a copy runs in parallel with everything and ends last, with names much like the layer's
    and its experts'."""
    found = events(rng, 2)
    end = found[-1][1] + found[-1][2]
    alike = [("moe", 3.0), ("moefier", 4.0), ("shared.experts", 5.0), ("moe.experts.copy", 6.0)]
    found += [
        (name, end + 10.0 * number, us * rng.uniform(0.5, 1.5)) for number, (name, us) in enumerate(alike)
    ]
    start = found[len(found) // 2][1]
    return found + [("copy", start, end + 100.0 - start + rng.uniform(5, 60))]
