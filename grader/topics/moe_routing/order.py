"""The permutation as tables: which pick stands in which row, by a histogram and a scan, in any order of programs."""

import math

import numpy as np

from grader.questions import Budget, Case, KernelQuestion, Part, Speed, Tensor
from grader.questions.draws import between
from grader.questions.side_by_side import side_by_side
from grader.topics.moe_routing import cases
from grader.topics.moe_routing.budgets import INT32, no_atomics
from grader.topics.moe_routing.cases import filled, rooms, rows, size
from grader.topics.moe_routing.concepts import LESSON
from grader.topics.moe_routing.mistakes_order import ORDER as MISTAKES
from kernels.moe_routing import reference

BLOCK = 64  # tokens of a block whose counts may go through memory
NOBODYS = "{} behind the end hold -1, which somebody has to write: clear the whole table first"
PROGRAM = 128  # most tokens that one program orders alone
WORK = (
    24  # operations on whole numbers for each pick and expert, where a one-hot row and its scan take some 10
)

TWICE = "how often the choices come from memory: once to count, and once to place"
LEFT = "what goes through memory between launches: a count for each expert and each block of 64 tokens is enough; smaller blocks make more of them, and each block reads those of all"
CLEARED = "how often a table is written: once to clear it, and once more where there is something"


def inputs(case: Case, rng: np.random.Generator) -> dict:
    return {"chosen": cases.chosen(case, rng)}


def tables(chosen: np.ndarray, case: Case) -> dict:
    """All that is wanted, for choices as they came."""
    found = reference.order(chosen, case.sizes["E"], case.sizes["TILE"])
    return {
        "offsets": found.offsets,
        "picks": filled(found.picks, rows(case.sizes)),
        "place": found.place,
        "owner": filled(found.tile_expert, rooms(case.sizes)),
    }


def wanted(inputs: dict, case: Case) -> dict:
    return {name: table.astype(np.float64) for name, table in tables(inputs["chosen"], case).items()}


def exact(inputs: dict, case: Case, want: dict) -> dict:
    return dict.fromkeys(want, 0.0)


def metered(rng: np.random.Generator) -> Case:
    """Near 1000 tokens with three picks each among some forty experts."""
    drawn = size(between(rng, 900, 1100), 3, between(rng, 34, 60), 16)
    return Case(drawn, sm_count=between(rng, 6, 9), kind="the metered size")


def _counts(case: Case) -> int:
    """Bytes of a count for each expert and block: written once, and read by every block."""
    blocks = math.ceil(case.sizes["T"] / BLOCK)
    lanes = 1 << (case.sizes["E"] - 1).bit_length()
    return INT32 * blocks * lanes * (1 + blocks)


def traffic(case: Case) -> list[Budget]:
    t, k, e = (case.sizes[name] for name in "TKE")
    picks, blocks = INT32 * t * k, math.ceil(t / BLOCK)
    room, tiles = INT32 * rows(case.sizes), INT32 * rooms(case.sizes)
    return [
        Budget(
            what="read of the choices",
            tensor="chosen",
            most=2 * picks,
            least=picks,
            look=TWICE,
            model=f"{t} x {k} choices of 4 bytes, twice",
        ),
        Budget(
            what="scratch, loaded and stored",
            tensor="scratch",
            access="any",
            most=2 * _counts(case),
            look=LEFT,
            model=f"twice: a count of 4 bytes for {e} experts, as lanes, and each of {blocks} blocks of {BLOCK} tokens, written once and read by every block",
        ),
        no_atomics("a row follows from counts, whoever comes first"),
        Budget(
            what="write of the picks",
            tensor="picks",
            access="store",
            most=room + picks,
            least=room,
            look=CLEARED,
            model=f"{rows(case.sizes)} rows of 4 bytes cleared, and {t} x {k} of them written again",
        ),
        Budget(
            what="write of the offsets",
            tensor="offsets",
            access="store",
            most=2 * INT32 * (e + 1),
            least=INT32 * (e + 1),
            look=CLEARED,
            model=f"{e + 1} offsets of 4 bytes, at most twice",
        ),
        Budget(
            what="write of the places",
            tensor="place",
            access="store",
            most=picks,
            least=picks,
            look=CLEARED,
            model=f"{t} x {k} places of 4 bytes, once",
        ),
        Budget(
            what="write of the owners",
            tensor="owner",
            access="store",
            most=2 * tiles,
            least=tiles,
            look=CLEARED,
            model=f"{rooms(case.sizes)} tiles of 4 bytes, cleared and written",
        ),
    ]


def side(case: Case) -> list[Budget]:
    """Where there is no clock: blocks of tokens side by side, and little more than a scan for each pick and expert."""
    t, k, e = (case.sizes[name] for name in "TKE")
    lanes = 1 << (e - 1).bit_length()
    return [
        side_by_side(
            "read the choices",
            "chosen",
            "load",
            math.ceil(t / PROGRAM),
            f"one for every {PROGRAM} of {t} tokens",
        ),
        Budget(
            what="operations of every kind",
            count="work",
            most=WORK * t * k * lanes,
            look="what is done for every token and every expert, though it concerns one of them",
            model=f"{WORK} for each of {t} x {k} picks and {lanes} lanes of experts",
        ),
    ]


def bound(case: Case) -> tuple[float, float]:
    t, k = case.sizes["T"], case.sizes["K"]
    return 0.0, INT32 * (2 * t * k + rows(case.sizes) + rooms(case.sizes))


ORDER = KernelQuestion(
    id="moe_routing.order",
    notebook="kernel",
    asks="where each pick stands: offsets[e] is the first row of expert e, padded to whole tiles of TILE rows, and offsets[E] the end; picks[row] is the pick there, token * K + slot, or -1; place[token, slot] its row; owner[tile] the expert of a tile, or -1. Within an expert picks keep their order",
    parts=(
        Part(
            "values",
            4,
            "values",
            asks="right for {public} that you can see and more that you can't: any number of tokens, none among them, experts without a token, all tokens on one, tiles that are whole, choices slot by slot, strided tables; the same at every run",
        ),
        Part(
            "traffic",
            2,
            "traffic",
            asks=f"the choices are loaded at most twice; counts of blocks of {BLOCK} tokens go through scratch, not lists of picks; no atomics; tables are written at most twice; at most {{launches}}",
        ),
        Part(
            "compiled",
            1,
            "compiled",
            asks="compiles for {targets} at {compiled[T]} tokens and {compiled[E]} experts, within shared memory, {spills}",
        ),
        Part(
            "speed",
            2,
            "traffic",
            gpu="speed",
            asks=f"without a GPU: a program at least for every {PROGRAM} tokens, and at most {WORK} operations of any kind for each pick and lane of experts. With one, at {{timed[T]}} tokens and {{timed[E]}} experts: full points up to {{full}} times the time of PyTorch's sort, count and sum, none beyond {{none}} times",
        ),
    ),
    tensors=(
        Tensor("chosen", "tk", ("T", "K"), "i32"),
        Tensor("offsets", "e", lambda s: (s["E"] + 1,), "i32", role="out"),
        Tensor(
            "picks",
            "r",
            lambda s: (rows(s),),
            "i32",
            role="out",
            unclaimed=NOBODYS.format("padding and all rows"),
        ),
        Tensor("place", "tk", ("T", "K"), "i32", role="out"),
        Tensor("owner", "i", lambda s: (rooms(s),), "i32", role="out", unclaimed=NOBODYS.format("tiles")),
    ),
    inputs=inputs,
    reference=wanted,
    tolerance=exact,
    public=(
        Case(size(8, 2, 4, 16)),
        cases.with_loads([0, 21, 0, 16, 3, 0], 1, 16, kind="experts without tokens"),
        Case(size(100, 3, 12, 32), layout={"chosen": "transposed"}, kind="choices slot by slot"),
        Case(size(0, 2, 4, 16), kind="no tokens"),
    ),
    hidden=cases.hidden_order,
    metered=metered,
    budgets={"traffic": traffic, "speed": side},
    most_launches=3,
    compile_case=Case(size(512, 8, 128, 16), sm_count=132),
    most_spills=256,
    targets=(90, 80),
    speed=Speed("sorted_picks", Case(size(4096, 8, 128, 64), sm_count=132), full=0.15, none=0.3, bound=bound),
    where=f'{LESSON}/b_order_and_tiles.ipynb, "Count, scan, permute"',
    hints=(
        "A pick's row is where its expert begins, plus how many picks of that expert come before it: in earlier blocks of tokens, and in its own. Which launch can know which part?",
        "First launch: a program a block of tokens; compare each slot's choices with all experts, sum along the tokens, store a row of counts, and clear picks and owner to -1. Second launch: sum all rows of counts (all, and those of earlier blocks), tl.cumsum of whole tiles gives where experts begin, and tl.cumsum down the block's one-hot picks gives the rank.",
        "whole = (total + TILE - 1) // TILE * TILE; first = tl.cumsum(whole, 0) - whole; rank = tl.cumsum(picked.to(tl.int32), 0) - picked.to(tl.int32); row = (first + before)[None, :] + rank",
    ),
    mistakes=MISTAKES,
)
