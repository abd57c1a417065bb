"""Compute the reference of *dispatch* and draw its inputs."""

import numpy as np


def dispatch(request, least, most, multiple, seconds):
    """Return the fastest valid kernel, and how many faster ones the rules forbid."""
    valid = ((request >= least) & (request <= most) & (request % multiple == 0)).all(axis=1)
    if not valid.any():
        return -1, len(seconds)
    chosen = int(np.where(valid, seconds, np.inf).argmin())
    return chosen, int((~valid & (seconds < seconds[chosen])).sum())


def table(rng, kernels, features, valid):
    """Draw a request, and rules that allow `valid` kernels. Each other kernel breaks one rule or two."""
    request = rng.integers(2, 40, features) * 8
    least, most = request - rng.integers(1, 9, (2, kernels, features)) * [[[1]], [[-1]]]
    multiple = rng.choice([1, 2, 4, 8], (kernels, features))
    for i in rng.permutation(kernels)[valid:]:
        for feature in rng.permutation(features)[: rng.integers(1, min(3, features + 1))]:
            kind = rng.integers(3)
            if kind == 0:
                least[i, feature] = request[feature] + rng.integers(1, 9)
                most[i, feature] = least[i, feature] + 64
            elif kind == 1:
                most[i, feature] = request[feature] - rng.integers(1, 9)
                least[i, feature] = most[i, feature] - 64
            else:
                multiple[i, feature] = request[feature] + 8
    return request, least, most, multiple, rng.permutation(kernels) + rng.uniform(0.5, 0.9)


def at_borders(rng):
    """Draw a table in which only the fastest kernel allows the request, with each value exactly at a border."""
    request, least, most, multiple, seconds = table(rng, 5, 3, 0)
    fastest = int(seconds.argmin())
    least[fastest], most[fastest], multiple[fastest] = request, request, 8
    return request, least, most, multiple, seconds


def only_multiples(rng):
    """Draw a table in which the two fastest kernels break nothing but a multiple."""
    request, least, most, multiple, seconds = table(rng, 5, 3, 5)
    for i in np.argsort(seconds)[:2]:
        multiple[i] = request + 8
        multiple[i, 1:] = 1
    return request, least, most, multiple, seconds


def tied(rng):
    """Draw a table in which each time occurs twice, once of a valid kernel."""
    request, least, most, multiple, _ = table(rng, 8, 3, 4)
    valid = ((request >= least) & (request <= most) & (request % multiple == 0)).all(axis=1)
    seconds = np.empty(8)
    for some in (valid, ~valid):
        seconds[some] = rng.permutation(4) + 0.5
    return request, least, most, multiple, seconds
