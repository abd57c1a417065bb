"""Ask *order*, and weigh its parts."""

from grader.questions import SCRATCH, Case, KernelQuestion, Part, Speed, Steers, Tensor, UpTo
from grader.topics.moe_routing.order import cases
from grader.topics.moe_routing.order.mistakes import MISTAKES
from grader.topics.moe_routing.shared import LESSON, rooms, rows, size, with_loads

QUESTION = KernelQuestion(
    id="moe_routing.order",
    notebook="kernel",
    asks="the row of each (token, expert) pair. expert_offsets[e] is the first row of expert e, whose rows are padded to whole tiles of TILE rows, and expert_offsets[E] is the end of all rows. sorted_token_ids[row] is the pair in that row, token * K + slot, or -1, and inv_permuted_idx[token, slot] is the row of that pair. expert_ids[tile] is the expert of that tile, or -1. Within an expert, pairs keep their order",
    parts=(
        Part(
            "values",
            4,
            "values",
            asks="right for {public} that you can see and more that you can't: any number of tokens, including none, experts without tokens, all tokens on one expert, loads that fill whole tiles, choices stored slot by slot, strided tables, and the same tables in every run",
        ),
        Part(
            "traffic",
            2,
            "traffic",
            asks=f"in at most {{launches}}, without atomics, the choices are loaded at most twice, and tables are written at most twice. Scratch takes no more than counts for blocks of {cases.BLOCK} tokens do",
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
            asks=f"without a GPU: at least one program for every {cases.PROGRAM} tokens, and in every case at most {cases.WORK} operations of any kind for each pair and each expert, with E rounded up to a power of two. With a GPU, at {{timed[T]}} tokens and {{timed[E]}} experts: full points up to {{full}} times the time of PyTorch's sort, count and sum, none beyond {{none}} times",
        ),
    ),
    tensors=(
        Tensor("topk_ids", "tk", ("T", "K"), "i32", formerly="chosen"),
        Tensor("expert_offsets", "e", lambda s: (s["E"] + 1,), "i32", role="out", formerly="offsets"),
        Tensor(
            "sorted_token_ids",
            "r",
            lambda s: (rows(s),),
            "i32",
            role="out",
            unclaimed=cases.NOBODYS.format("padding and all rows"),
            formerly="picks",
        ),
        Tensor("inv_permuted_idx", "tk", ("T", "K"), "i32", role="out", formerly="place"),
        Tensor(
            "expert_ids",
            "i",
            lambda s: (rooms(s),),
            "i32",
            role="out",
            unclaimed=cases.NOBODYS.format("tiles"),
            formerly="owner",
        ),
    ),
    inputs=cases.inputs,
    reference=cases.wanted,
    tolerance=cases.exact,
    public=(
        Case(size(8, 2, 4, 16)),
        with_loads([0, 21, 0, 16, 3, 0], 1, 16, kind="experts without tokens"),
        Case(size(100, 3, 12, 32), layout={"topk_ids": "transposed"}, kind="choices slot by slot"),
        Case(size(0, 2, 4, 16), kind="no tokens"),
    ),
    hidden=cases.hidden_order,
    regular={"topk_ids": "rows"},
    regular_case=cases.whole_blocks,
    # a little more than int16 holds, also of the last eight
    up_to={"T": UpTo(32_776), "K": UpTo(16), "E": UpTo(512), "TILE": (16, 32, 64, 1, 2, 4)},
    sized=cases.sized,
    metered=cases.metered,
    blocks={"T": 128, "E": 64},
    steered=(Steers("topk_ids", (SCRATCH, "expert_offsets")),),
    budgets={"traffic": cases.traffic, "speed": cases.side},
    most_launches=3,
    compile_case=Case(size(512, 8, 128, 16), sm_count=132),
    most_spills=256,
    targets=(90, 80),
    speed=Speed(
        "sorted_pairs", Case(size(4096, 8, 128, 64), sm_count=132), full=0.15, none=0.3, bound=cases.bound
    ),
    where=f'{LESSON}/b_order_and_tiles.ipynb, "Count, scan, permute"',
    hints=(
        "A pair's row is its expert's first row plus the number of that expert's pairs before it, in earlier blocks of tokens and in its own block. Which launch can know which part?",
        "First launch: one program for each block of tokens. Compare each slot's choices with all experts, sum along the tokens, store a row of counts, and clear sorted_token_ids and expert_ids to -1. Second launch: sum the rows of counts (over all blocks, and over earlier blocks). Compute the first rows of the experts with tl.cumsum of the padded loads, and the ranks with tl.cumsum down the block's one-hot choices.",
        "whole = (total + TILE - 1) // TILE * TILE; first = tl.cumsum(whole, 0) - whole; rank = tl.cumsum(picked.to(tl.int32), 0) - picked.to(tl.int32); row = (first + before)[None, :] + rank",
    ),
    mistakes=MISTAKES,
)
