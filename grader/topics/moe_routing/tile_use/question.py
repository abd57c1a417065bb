"""Ask *tile use*, and weigh its parts."""

from grader.questions import Call, NumpyQuestion, Part
from grader.questions.draws import between
from grader.topics.moe_routing.shared import LESSON
from grader.topics.moe_routing.tile_use import cases
from grader.topics.moe_routing.tile_use.mistakes import MISTAKES

QUESTION = NumpyQuestion(
    id="moe_routing.tile_use",
    notebook="concepts",
    asks="tile_use(loads, tile, factor): (padded, share, dropped): the number of rows that only pad a tile, the real rows as a share of all rows in tiles, and the number of pairs dropped. Each expert keeps at most ceil(factor * mean load) pairs, or all of its pairs if factor is None",
    entry="tile_use",
    parts=(Part("values", 2, "calls"),),
    reference=cases.tile_use,
    public=(
        Call(([20, 4, 0, 8], 8, None), "no limit"),
        Call(([20, 4, 0, 8], 8, 1.25), "a limit"),
        Call(([8, 8, 8, 8], 8, 1.0), "balanced"),
    ),
    hidden=lambda rng: [
        *(Call((cases.loads(rng, n), 2 ** between(rng, 2, 6), None), "no limit") for n in (4, 8, 16)),
        *(
            Call((cases.loads(rng, n), 2 ** between(rng, 2, 5), f), "a limit")
            for n, f in ((4, 1.0), (8, 1.25), (16, 1.5))
        ),
        *(Call((cases.just_above(rng), 4, 1.25), "a mean that is no whole number") for _ in range(2)),
        Call(([0, 90, 0, 3, 0, 0, 11, 0], 16, 1.125), "experts without tokens"),
        Call(([between(rng, 300, 400), 0, 0, 0], 32, 2.0), "all tokens on one expert"),
        Call(([17, 19, 18, 21], 16, 8.0), "a limit that nobody reaches"),
        Call(([64, 32, 0, 16, 48, 7, 32, 80], 16, None), "loads that are whole tiles"),
    ],
    where=f'{LESSON}/b_order_and_tiles.ipynb, "Capacity, and dropping nobody"',
    hints=(
        "Work expert by expert. How many pairs does the expert keep, how many tiles do they need, and how many rows do these tiles have?",
        "The limit is one number, computed from the mean of all loads. kept = min(load, limit); rows = ceil(kept / tile) * tile. Padding and dropped pairs are differences of sums.",
        "limit = math.inf if factor is None else math.ceil(factor * sum(loads) / len(loads)); kept = [min(n, limit) for n in loads]; slots = sum(math.ceil(n / tile) * tile for n in kept)",
    ),
    mistakes=MISTAKES,
)
