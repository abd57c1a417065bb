"""What must travel between ranks: which token goes where, and the bytes of it that nobody can do without."""

import numpy as np

COUNTS = 64  # bytes of counts for each other rank: eight numbers


def to_ranks(chosen: np.ndarray, per: int, ranks: int) -> np.ndarray:
    """(ranks, tokens): whether a token has an expert on a rank."""
    return np.array([(chosen // per == rank).any(axis=1) for rank in range(ranks)]).reshape(
        ranks, len(chosen)
    )


def between(each, per: int) -> np.ndarray:
    """(senders, receivers): tokens that must travel; none to oneself."""
    table = np.array([to_ranks(given[1], per, len(each)).sum(axis=1) for given in each])
    np.fill_diagonal(table, 0)
    return table


def picks_between(each, per: int) -> np.ndarray:
    """The same counted by choices: a token with two experts on a rank is two."""
    ranks = len(each)
    table = np.array([[(given[1] // per == rank).sum() for rank in range(ranks)] for given in each])
    np.fill_diagonal(table, 0)
    return table


def counts(ranks: int) -> int:
    return COUNTS * (ranks - 1)


def row_bytes(each) -> tuple[int, int]:
    """(of a token, of its choices)."""
    x, chosen = each[0][:2]
    return x.shape[1] * x.itemsize, chosen.shape[1] * chosen.itemsize


def there_and_back(table: np.ndarray, there: int, back: int) -> np.ndarray:
    """Bytes that each rank sends: rows on their way out, and results on their way home."""
    return table.sum(axis=1) * there + table.sum(axis=0) * back


def to_everybody(each) -> np.ndarray:
    """All tokens of each rank to all others."""
    return np.outer([len(given[0]) for given in each], np.ones(len(each), int)) * (
        1 - np.eye(len(each), dtype=int)
    )


def padded(table: np.ndarray) -> np.ndarray:
    """As many rows to each as the fullest gets of this rank's."""
    return np.repeat(table.max(axis=1, keepdims=True), len(table), axis=1) * (
        1 - np.eye(len(table), dtype=int)
    )
