"""What the layer's kernels are tried on: any routing that is legal, in tiles of any size, any layout."""

from dataclasses import replace

import numpy as np

from grader.box.serve.frames import DTYPES
from grader.questions import Case
from grader.questions.draws import between, odd, rounded, spread
from kernels.moe_routing import reference
from kernels.moe_routing.cost_traffic import most_tiles
from kernels.routing import assignments

TILES = (16, 32, 64)
LOADS = "loads "  # in a case's `values`: what follows is how many tokens each expert gets


def size(t, k, e, tile) -> dict:
    return {"T": int(t), "K": int(k), "E": int(e), "TILE": int(tile)}


def rooms(sizes: dict) -> int:
    """Tiles that there is room for: what the worst routing of these sizes needs."""
    return most_tiles(*(sizes[name] for name in ("T", "K", "E", "TILE")))


def rows(sizes: dict) -> int:
    return rooms(sizes) * sizes["TILE"]


def loads_of(case: Case) -> list[int]:
    """How many tokens each expert gets, where the case says so."""
    _, said, loads = case.values.partition(LOADS)
    found = [int(n) for n in loads.split()] if said else []
    fits = len(found) == case.sizes["E"] and sum(found) == case.sizes["T"] * case.sizes["K"]
    return found if fits else []


def chosen(case: Case, rng: np.random.Generator) -> np.ndarray:
    """(T, K) different experts for each token: as the case says, or some experts liked better than others."""
    t, k, e = (case.sizes[name] for name in "TKE")
    if not 1 <= k <= e:
        raise ValueError(f"K must be from 1 to E = {e}, got {k}; a token picks different experts")
    if t and (loads := loads_of(case)):
        names = rng.permutation(t)
        picks = np.array(assignments(loads, t, k), np.int32).reshape(t, k)[names]
    else:
        scores = rng.gumbel(size=(t, e)) + rng.standard_normal(e)
        if drawn_as(case) == "the same experts":
            scores[:, rng.permutation(e)[:k]] += 1e3
        picks = reference.top_k(scores, k)
    return rng.permuted(picks, axis=1).astype(np.int32)


def ordered(case: Case, rng: np.random.Generator) -> tuple[np.ndarray, reference.Order]:
    """A routing, and where its picks stand."""
    picked = chosen(case, rng)
    return picked, reference.order(picked, case.sizes["E"], case.sizes["TILE"])


def filled(values: np.ndarray, length: int) -> np.ndarray:
    """With room for the worst routing, EMPTY beyond what this one needs."""
    return np.concatenate([values, np.full(length - len(values), reference.EMPTY)]).astype(np.int32)


def with_loads(loads: list[int], k: int, tile: int, **more) -> Case:
    said = LOADS + " ".join(map(str, loads))
    return Case(size(sum(loads) // k, k, len(loads), tile), values=said, **more)


def with_products(loads: list[int], k: int, tile: int, h: int, n: int, dtype="fp16", **more) -> Case:
    """The same with products of h inputs and n outputs each for gate and up; `values` may say more."""
    drawn = more.pop("values", "")
    case = with_loads(loads, k, tile, dtype=dtype, **more)
    return replace(case, sizes=case.sizes | {"H": int(h), "N": int(n)}, values=drawn + " " + case.values)


def drawn_as(case: Case) -> str:
    """How numbers are drawn, without the loads."""
    return case.values.partition(LOADS)[0].strip()


def some_tile(rng: np.random.Generator) -> int:
    return int(rng.choice(TILES))


def whole_loads(rng: np.random.Generator, tile: int) -> list[int]:
    """Whole tiles for each of four experts, one of them without a token."""
    return rng.permutation([0, tile, tile, 2 * tile]).tolist()


def hidden_order(rng: np.random.Generator) -> list[Case]:
    """Fresh sizes each time; each case is here for a mistake that no other one is sure to catch."""

    def case(t, k, e, tile=0, **more) -> Case:
        return Case(size(t, k, e, tile or some_tile(rng)), **more)

    tables = ("chosen", "offsets", "picks", "place", "owner")
    few = rng.permutation([0, 0, *(between(rng, 2, 20) for _ in range(3))]).tolist()
    tile = some_tile(rng)
    return [
        case(odd(rng, 31, 91), 2, between(rng, 5, 12), kind="some tokens and experts"),
        case(odd(rng, 131, 251), 3, odd(rng, 17, 31), kind="three experts a token"),
        case(between(rng, 400, 700), 4, between(rng, 33, 60), 64, kind="many tokens"),
        case(between(rng, 1100, 1300), 2, between(rng, 5, 9), kind="more than a thousand tokens"),
        case(between(rng, 40, 60), 2, between(rng, 270, 380), 16, kind="more experts than most tokens reach"),
        case(0, between(rng, 1, 4), between(rng, 4, 9), kind="no tokens"),
        case(1, between(rng, 2, 4), between(rng, 5, 9), kind="one token"),
        case(
            between(rng, 70, 150),
            1,
            between(rng, 3, 9),
            values="the same experts",
            kind="all tokens on one expert",
        ),
        case(between(rng, 20, 50), between(rng, 3, 5), 5, kind="few experts, many of them for each token"),
        case(between(rng, 20, 50), 6, 6, kind="every expert for every token"),
        with_loads([0, *few, 0], 1, some_tile(rng), kind="experts without tokens"),
        with_loads([0, 0, 7, 0, 0, between(rng, 2, 9)], 1, 16, kind="more experts without tokens than with"),
        with_loads(whole_loads(rng, tile), 1, tile, kind="loads that are whole tiles"),
        case(between(rng, 30, 60), 2, between(rng, 5, 9), 1, kind="tiles of one row"),
        case(odd(rng, 31, 91), 3, between(rng, 5, 12), layout=spread(rng, *tables), kind="no stride of 1"),
        case(
            between(rng, 70, 150),
            2,
            7,
            layout={"chosen": "transposed", "place": "padded"},
            kind="choices that lie slot by slot",
        ),
        case(
            between(rng, 70, 150),
            2,
            7,
            layout={"chosen": "padded", "place": "transposed"},
            kind="places that lie slot by slot",
        ),
        case(
            between(rng, 60, 64),
            8,
            between(rng, 70, 120),
            2,
            values="the same experts",
            kind="hundreds of tiles, few tokens",
        ),
        case(
            between(rng, 90, 120),
            8,
            between(rng, 110, 128),
            4,
            values="the same experts",
            kind="hundreds of tiles",
        ),
        case(between(rng, 4200, 5200), 1, 2, 64, kind="more tokens than any size that is named"),
        case(between(rng, 9, 20), between(rng, 9, 12), 14, kind="more experts a token than are usual"),
    ]


# Gate and up, and combine

LONG = {"dtypes": {"h": "fp32"}, "values": "positive"}


def products(case: Case, rng: np.random.Generator) -> dict:
    """Tokens, the experts' gate and up, who stands where, and rows of h that hold something already."""
    t, e, h, n = (case.sizes[name] for name in "TEHN")
    if case.sizes["TILE"] not in (16, 32, 64, 128):
        raise ValueError(
            f"TILE must be 16, 32, 64 or 128 here, got {case.sizes['TILE']}; tl.dot takes no other tile"
        )
    values = drawn_as(case)
    x, w = rng.standard_normal((t, h)), rng.standard_normal((e, 2 * n, h)) / h**0.5
    if values == "positive":
        x, w = np.abs(x) + 0.5, np.abs(w) + 0.5 / h**0.5
    if values == "beyond fp16":
        x = x * 2.0**20
    if values == "a NaN" and t:
        x[rng.integers(t), rng.integers(h)] = np.nan
    picked, found = ordered(case, rng)
    if values == "a NaN":
        w[found.loads == 0] = np.nan
    held = rng.standard_normal((rows(case.sizes), n)).astype(DTYPES[case.dtypes.get("h", case.dtype)])
    return {
        "x": rounded(x, case.dtype),
        "w": rounded(w, case.dtype),
        "picks": filled(found.picks, rows(case.sizes)),
        "owner": filled(found.tile_expert, rooms(case.sizes)),
        "h": held,
    }


def hidden_gemm(rng: np.random.Generator) -> list[Case]:
    """Every routing that is allowed, and products with ends that fill no block."""

    def case(loads, k, h, n=0, dtype="fp16", tile=0, **more) -> Case:
        return with_products(loads, k, tile or some_tile(rng), h, n or between(rng, 17, 70), dtype, **more)

    def some(count: int, low: int = 1, high: int = 9) -> list[int]:
        return rng.integers(low, high + 1, count).tolist()

    def any_h() -> int:
        return odd(rng, 33, 99)

    names = ("x", "w", "picks", "owner", "h")
    one_of = rng.permutation([between(rng, 40, 60), 0, 0, 0]).tolist()
    return [
        case(some(5), 1, any_h(), kind="tokens for every expert"),
        case([0, 0, *some(4)], 1, any_h(), dtype="bf16", kind="first experts without tokens"),
        case([*some(3), 0, 0], 1, any_h(), kind="last experts without tokens"),
        case([7, 0, between(rng, 3, 7), 7, 0, 7], 1, any_h(), kind="experts without tokens between others"),
        case([6] * 4, 3, any_h(), dtype="bf16", kind="three experts a token"),
        case([between(rng, 8, 15)] * 5, 5, any_h(), kind="every expert for every token"),
        case(one_of, 1, any_h(), kind="one expert has all tokens"),
        case([0, 1, 0, 0], 1, any_h(), dtype="bf16", kind="one token"),
        case([0, 0, 0], 1, any_h(), kind="no tokens"),
        case(
            [0, *[between(rng, 40, 60)] * 3, 0],
            3,
            any_h(),
            tile=16,
            kind="many tokens with the same three experts",
        ),
        case([16, 0, 32, 64], 1, any_h(), tile=16, kind="loads that are whole tiles"),
        case(
            [3, between(rng, 130, 150), 2],
            1,
            40,
            between(rng, 3, 9),
            tile=64,
            kind="many tokens for one expert",
        ),
        case(
            [0, *rng.permutation([0] * 20 + some(20, 1, 3)).tolist()],
            1,
            40,
            between(rng, 3, 9),
            tile=16,
            kind="many experts",
        ),
        case(some(3), 1, between(rng, 7, 13), kind="few numbers along H"),
        case([2, 0, 3], 1, between(rng, 17, 40), between(rng, 1100, 1300), tile=16, kind="many columns"),
        case([2, 0, 3], 1, between(rng, 8500, 9400), between(rng, 5, 9), tile=16, **LONG, kind="a long sum"),
        case(
            [2, 0, 3],
            1,
            between(rng, 8500, 9400),
            between(rng, 5, 9),
            "bf16",
            16,
            **LONG,
            kind="a long sum in bf16",
        ),
        case([5, 0, 4, 3], 2, any_h(), layout=spread(rng, *names), kind="no stride of 1"),
        case(
            [5, 0, 4, 3],
            2,
            any_h(),
            layout={"x": "transposed", "w": "transposed"},
            kind="x and weights column by column",
        ),
        case(
            [5, 0, 4, 3],
            2,
            any_h(),
            dtype="bf16",
            layout={"x": "padded", "w": "padded", "h": "transposed"},
            kind="h column by column",
        ),
        case([4, 0, 3], 1, any_h(), dtype="bf16", values="beyond fp16", kind="numbers beyond fp16"),
        case([4, 0, 3, 5], 2, any_h(), values="a NaN", kind="a NaN, and weights of NaN where no token is"),
        case(
            [between(rng, 700, 800), between(rng, 400, 500)],
            1,
            16,
            between(rng, 3, 9),
            tile=64,
            kind="more tokens than any size that is named",
        ),
        case(
            [0, *rng.permutation([0] * 40 + some(40, 1, 2)).tolist()],
            1,
            16,
            between(rng, 3, 9),
            tile=16,
            kind="more experts than any size that is named",
        ),
    ]


def weighed_rows(case: Case, rng: np.random.Generator) -> dict:
    """Rows as experts leave them, NaN where a row is padding, the place of each pick, and its weight."""
    t, k, h = (case.sizes[name] for name in "TKH")
    _, found = ordered(case, rng)
    held = rng.standard_normal((rows(case.sizes), h))
    if drawn_as(case) == "far apart":
        held *= 2.0 ** rng.uniform(-6, 6, (len(held), 1))
    if drawn_as(case) == "beyond fp16":
        held *= 2.0**20
    held[filled(found.picks, len(held)) == reference.EMPTY] = np.nan
    weights = rng.dirichlet(np.ones(k), t).reshape(t, k) * rng.uniform(0.4, 2.5)
    if drawn_as(case) == "an infinity" and t:
        tokens, slots = rng.permutation(t)[:2], rng.integers(k, size=2)
        held[found.place[tokens, slots], rng.integers(h)] = np.inf
        weights[tokens[0], slots[0]] = 0.0
    return {
        "rows": rounded(held, case.dtype),
        "place": found.place.astype(np.int32),
        "weights": weights.astype(np.float32),
    }


def combined(t, k, e, h, tile=16, dtype="fp16", **more) -> Case:
    return Case(size(t, k, e, tile) | {"H": int(h)}, dtype, **more)


def hidden_combine(rng: np.random.Generator) -> list[Case]:
    names = ("rows", "place", "weights", "out")
    return [
        combined(odd(rng, 11, 41), 2, between(rng, 4, 9), odd(rng, 33, 199), kind="two experts a token"),
        combined(odd(rng, 11, 41), 3, between(rng, 5, 9), between(rng, 200, 300), dtype="bf16", kind="bf16"),
        combined(
            between(rng, 5, 20), 8, between(rng, 20, 40), odd(rng, 33, 99), kind="eight experts a token"
        ),
        combined(between(rng, 5, 20), 1, 5, odd(rng, 33, 99), kind="one expert a token"),
        combined(0, 2, 4, 40, kind="no tokens"),
        combined(1, 3, 6, odd(rng, 33, 99), kind="one token"),
        combined(between(rng, 20, 40), 1, 4, 50, values="the same experts", kind="all tokens on one expert"),
        combined(between(rng, 300, 400), 2, 6, between(rng, 5, 12), 64, kind="many tokens"),
        combined(3, 2, 5, between(rng, 4200, 4700), dtype="bf16", kind="wide rows"),
        combined(between(rng, 5, 20), 4, 9, 1, kind="rows of a single number"),
        combined(
            between(rng, 10, 20),
            6,
            12,
            odd(rng, 33, 99),
            dtype="bf16",
            dtypes={"out": "fp32"},
            values="far apart",
            kind="rows of all sizes, a result in fp32",
        ),
        combined(
            between(rng, 10, 20), 6, 12, odd(rng, 33, 99), dtypes={"out": "fp32"}, kind="a result in fp32"
        ),
        combined(
            between(rng, 10, 20), 3, 6, odd(rng, 33, 99), layout=spread(rng, *names), kind="no stride of 1"
        ),
        combined(
            between(rng, 10, 20),
            3,
            6,
            40,
            layout={"rows": "transposed", "place": "transposed", "out": "padded"},
            kind="rows and places column by column",
        ),
        combined(
            between(rng, 10, 20),
            3,
            6,
            40,
            layout={"rows": "padded", "weights": "transposed", "out": "transposed"},
            kind="weights and result column by column",
        ),
        combined(
            between(rng, 10, 20),
            2,
            6,
            odd(rng, 33, 99),
            values="an infinity",
            kind="an infinity, and weights of 0",
        ),
        combined(
            between(rng, 10, 20),
            2,
            6,
            odd(rng, 33, 99),
            dtype="bf16",
            values="beyond fp16",
            kind="numbers beyond fp16",
        ),
        combined(between(rng, 4200, 5200), 1, 2, 3, 64, kind="more tokens than any size that is named"),
        combined(
            between(rng, 5, 9),
            between(rng, 9, 12),
            between(rng, 130, 160),
            5,
            kind="more experts than are usual",
        ),
    ]
