"""Share sizes, references and costs among questions of moe routing."""

import numpy as np

from grader.questions import Budget, Case
from kernels.moe_routing import reference
from kernels.moe_routing.cost_traffic import most_tiles
from kernels.routing import assignments

TILES = (16, 32, 64)
LOADS = "loads "  # in a case's `values`, before the number of tokens of each expert


def size(t, k, e, tile) -> dict:
    return {"T": int(t), "K": int(k), "E": int(e), "TILE": int(tile)}


def rooms(sizes: dict) -> int:
    """Return the capacity in tiles, for the worst routing of a case's sizes."""
    return most_tiles(*(sizes[name] for name in ("T", "K", "E", "TILE")))


def rows(sizes: dict) -> int:
    return rooms(sizes) * sizes["TILE"]


def loads_of(case: Case) -> list[int]:
    """Return how many tokens each expert gets, if the case says so."""
    _, said, loads = case.values.partition(LOADS)
    found = [int(n) for n in loads.split()] if said else []
    fits = len(found) == case.sizes["E"] and sum(found) == case.sizes["T"] * case.sizes["K"]
    return found if fits else []


def drawn_ids(case: Case, rng: np.random.Generator) -> np.ndarray:
    """Draw (T, K) different experts for each token, as the case says, or with some experts more popular than others."""
    t, k, e = (case.sizes[name] for name in "TKE")
    if not 1 <= k <= e:
        raise ValueError(f"K must be from 1 to E = {e}, got {k}; a token picks different experts")
    if t and (loads := loads_of(case)):
        names = rng.permutation(t)
        ids = np.array(assignments(loads, t, k), np.int32).reshape(t, k)[names]
    else:
        scores = rng.gumbel(size=(t, e)) + rng.standard_normal(e)
        if drawn_as(case) == "the same experts":
            scores[:, rng.permutation(e)[:k]] += 1e3
        ids = reference.top_k(scores, k)
    return rng.permuted(ids, axis=1).astype(np.int32)


def ordered(case: Case, rng: np.random.Generator) -> tuple[np.ndarray, reference.Order]:
    """Return a routing, and the rows of its pairs."""
    picked = drawn_ids(case, rng)
    return picked, reference.order(picked, case.sizes["E"], case.sizes["TILE"])


def filled_up(values: np.ndarray, length: int) -> np.ndarray:
    """Pad to the capacity for the worst routing, with EMPTY beyond this routing's tiles."""
    return np.concatenate([values, np.full(length - len(values), reference.EMPTY)]).astype(np.int32)


def with_loads(loads: list[int], k: int, tile: int, **more) -> Case:
    said = LOADS + " ".join(map(str, loads))
    return Case(size(sum(loads) // k, k, len(loads), tile), values=said, **more)


def drawn_as(case: Case) -> str:
    """Return how numbers are drawn, without the loads."""
    return case.values.partition(LOADS)[0].strip()


def some_tile(rng: np.random.Generator) -> int:
    return int(rng.choice(TILES))


INT32 = FP32 = 4  # bytes of a number in a table, and of a pair's weight


HALF = 2  # bytes of a number of 16 bits
TILE = 16  # rows of a tile where traffic is metered
SECTOR = 16  # numbers of 16 bits
WIDER = (
    "what is stored besides the result: gate, up and single rows live in registers until they are added up"
)
NEIGHBOURS = "which neighbouring lanes read neighbouring numbers: a sector is 32 bytes, used or not"
WORK = "what is computed more than once for a number, and whether a block is far wider than its row, as masked lanes count, too"


def no_atomics(reason: str) -> Budget:
    return Budget(
        what="atomics",
        tensor="all",
        access="atomic",
        most=0,
        look="atomics: the same bits must come at every run, whichever program is first",
        model=f"0 bytes: {reason}",
    )


def nothing_kept() -> Budget:
    return Budget(
        what="scratch, loaded and stored",
        tensor="scratch",
        access="any",
        most=0,
        look=WIDER,
        model="0 bytes: one launch needs none",
    )


def sectors(tensor: str, what: str, numbers: int) -> Budget:
    return Budget(
        what=f"sectors of the {what}",
        tensor=tensor,
        count="sectors",
        most=1.02 * HALF * numbers,
        look=NEIGHBOURS,
        model=f"{numbers // SECTOR} sectors of 32 bytes + 2%",
    )


LESSON = "course/03_moe_routing"
