"""Draw the inputs of *order*, and set its budgets."""

import math

import numpy as np

from grader.questions import Budget, Case
from grader.questions.account import whole_sectors
from grader.questions.draws import between, odd, spread
from grader.questions.min_programs import side_by_side
from grader.questions.timed import timed
from grader.topics.moe_routing.shared import (
    INT32,
    drawn_ids,
    filled_up,
    no_atomics,
    rooms,
    rows,
    size,
    some_tile,
    with_loads,
)
from kernels.moe_routing import reference


def whole_loads(rng: np.random.Generator, tile: int) -> list[int]:
    """Draw whole tiles for each of four experts, one without a token."""
    return rng.permutation([0, tile, tile, 2 * tile]).tolist()


def falling(rng: np.random.Generator) -> list[int]:
    """Draw loads of which each is larger than the next, for two choices a token."""
    loads = np.cumsum([between(rng, 0, 4), *(between(rng, 1, 5) for _ in range(between(rng, 8, 12)))])[::-1]
    return [int(loads[0] + loads.sum() % 2), *loads[1:].tolist()]


def sized(**sizes: int) -> Case:
    """Return a case with these sizes, and enough experts for a token's choices."""
    return Case(sizes | {"E": max(sizes["E"], sizes["K"])})


def hidden_order(rng: np.random.Generator) -> list[Case]:
    """Draw fresh sizes each time, where each case catches a mistake that no other case is sure to catch."""

    def case(t, k, e, tile=0, **more) -> Case:
        return Case(size(t, k, e, tile or some_tile(rng)), **more)

    tables = ("topk_ids", "expert_offsets", "sorted_token_ids", "inv_permuted_idx", "expert_ids")
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
        case(odd(rng, 301, 391), 3, between(rng, 5, 12), layout=spread(rng, *tables), kind="no stride of 1"),
        with_loads(
            falling(rng),
            2,
            some_tile(rng),
            layout={"topk_ids": "transposed", "inv_permuted_idx": "padded"},
            kind="choices that lie slot by slot, of ever fewer tokens for the next expert",
        ),
        with_loads(
            falling(rng)[::-1],
            2,
            some_tile(rng),
            layout={"topk_ids": "padded", "inv_permuted_idx": "transposed"},
            kind="rows of pairs that lie slot by slot, of ever more tokens for the next expert",
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
        case(
            between(rng, 300, 500),
            1,
            between(rng, 300, 512),
            16,
            values="the same experts",
            kind="all tokens on one of hundreds of experts",
        ),
    ]


BLOCK = 64  # tokens of a block whose counts may go through memory


def whole_blocks(rng: np.random.Generator) -> Case:
    """Draw whole blocks of tokens, which can have equal counts."""
    tokens = BLOCK * between(rng, 5, 8)
    return Case(size(tokens, between(rng, 4, 6), between(rng, 16, 30), some_tile(rng)))


NOBODYS = "{} behind the end hold -1, which somebody has to write: clear the whole table first"
PROGRAM = 128  # most tokens that one program orders alone
ALONE = 2048  # most rows of a table that one program writes alone
# operations on whole numbers for each pair and expert, where a one-hot row and its scan take some 10
WORK = 24
TWICE = "how often the choices come from memory: once to count, and once to place"
LEFT = "what goes through memory between launches: a count for each expert and each block of 64 tokens is enough; smaller blocks make more of them, and each block reads those of all"
CLEARED = "how often a table is written: once to clear it, and once more where there is something"


def inputs(case: Case, rng: np.random.Generator) -> dict:
    return {"topk_ids": drawn_ids(case, rng)}


def tables(topk_ids: np.ndarray, case: Case) -> dict:
    """All that is wanted, for choices as they came."""
    found = reference.order(topk_ids, case.sizes["E"], case.sizes["TILE"])
    return {
        "expert_offsets": found.expert_offsets,
        "sorted_token_ids": filled_up(found.sorted_token_ids, rows(case.sizes)),
        "inv_permuted_idx": found.inv_permuted_idx,
        "expert_ids": filled_up(found.expert_ids, rooms(case.sizes)),
    }


def wanted(inputs: dict, case: Case) -> dict:
    return {name: table.astype(np.float64) for name, table in tables(inputs["topk_ids"], case).items()}


def exact(inputs: dict, case: Case, want: dict) -> dict:
    return dict.fromkeys(want, 0.0)


def metered(rng: np.random.Generator) -> Case:
    """Near 1000 tokens with three pairs each among some forty experts."""
    drawn = size(between(rng, 900, 1100), 3, between(rng, 34, 60), 16)
    return Case(drawn, sm_count=between(rng, 6, 9), kind="the metered size")


def _counts(case: Case) -> int:
    """Bytes of a count for each expert and block: written once, and read by every block."""
    blocks = math.ceil(case.sizes["T"] / BLOCK)
    lanes = max(64, 1 << (case.sizes["E"] - 1).bit_length())
    return INT32 * blocks * lanes * (1 + blocks)


SCATTERED = 4  # bytes in whole sectors, over the bytes, because pairs are written by expert, 4 bytes each


def traffic(case: Case) -> list[Budget]:
    t, k, e = (case.sizes[name] for name in "TKE")
    pairs, blocks = INT32 * t * k, math.ceil(t / BLOCK)
    room, tiles = INT32 * rows(case.sizes), INT32 * rooms(case.sizes)
    limits = [
        Budget(
            what="read of the choices",
            tensor="topk_ids",
            most=2 * pairs,
            least=pairs,
            look=TWICE,
            model=f"{t} x {k} choices of 4 bytes, twice",
        ),
        Budget(
            what="scratch, loaded and stored",
            tensor="scratch",
            access="any",
            most=2 * _counts(case),
            look=LEFT,
            model=f"twice: a count of 4 bytes for {e} experts, as lanes, 64 at least, and each of {blocks} blocks of {BLOCK} tokens, written once and read by every block",
        ),
        no_atomics("a row follows from counts, whoever comes first"),
        Budget(
            what="write of sorted_token_ids",
            tensor="sorted_token_ids",
            access="store",
            most=room + pairs,
            least=room,
            look=CLEARED,
            model=f"{rows(case.sizes)} rows of 4 bytes cleared, and {t} x {k} of them written again",
        ),
        Budget(
            what="write of expert_offsets",
            tensor="expert_offsets",
            access="store",
            most=2 * INT32 * (e + 1),
            least=INT32 * (e + 1),
            look=CLEARED,
            model=f"{e + 1} offsets of 4 bytes, at most twice",
        ),
        Budget(
            what="write of inv_permuted_idx",
            tensor="inv_permuted_idx",
            access="store",
            most=pairs,
            least=pairs,
            look=CLEARED,
            model=f"{t} x {k} rows of 4 bytes, once",
        ),
        Budget(
            what="write of expert_ids",
            tensor="expert_ids",
            access="store",
            most=2 * tiles,
            least=tiles,
            look=CLEARED,
            model=f"{rooms(case.sizes)} tiles of 4 bytes, cleared and written",
        ),
    ]
    return [*limits, whole_sectors(SCATTERED, sum(budget.most for budget in limits))]


def side(case: Case) -> list[Budget]:
    """Limit, where no clock is, to blocks of tokens side by side, and little more than a scan for each pair and expert."""
    t, k, e = (case.sizes[name] for name in "TKE")
    lanes = 1 << (e - 1).bit_length()
    return [
        side_by_side(
            "read the choices",
            "topk_ids",
            "load",
            math.ceil(t / PROGRAM),
            f"one for every {PROGRAM} of {t} tokens",
        ),
        side_by_side(
            "store sorted_token_ids",
            "sorted_token_ids",
            "store",
            min(math.ceil(rows(case.sizes) / ALONE), math.ceil(t / PROGRAM)),
            f"one for every {ALONE:,} of {rows(case.sizes):,} rows, cleared ones among them, or for every {PROGRAM} tokens",
        ),
        Budget(
            what="operations of every kind",
            count="work",
            most=WORK * t * k * lanes,
            look="what is done for every token and every expert, though it concerns one of them",
            model=f"{WORK} for each of {t} x {k} pairs and {lanes} lanes of experts",
        ),
        timed(40, t * k * lanes, "pair and lane of experts"),
    ]


def bound(case: Case) -> tuple[float, float]:
    t, k = case.sizes["T"], case.sizes["K"]
    return 0.0, INT32 * (2 * t * k + rows(case.sizes) + rooms(case.sizes))
