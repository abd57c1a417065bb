"""List the mistakes of *capacity kept*, a row each."""

from grader.questions.rows import in_cells
from grader.topics.expert_load_balance.capacity_kept.cases import capacity_kept

KEPT = """tokens, top_k = chosen.shape
capacity = {capacity}
kept, taken = np.zeros(chosen.shape, bool), np.zeros(experts, int)
for {order}:
    e = chosen[t, j]
    kept[t, j] = taken[e] {below} capacity
    taken[e] += {counted}
return capacity, {result}"""
RIGHT_KEPT = {
    "capacity": "math.ceil(factor * tokens * top_k / experts)",
    "order": "j, t in np.ndindex(top_k, tokens)",
    "below": "<",
    "counted": "kept[t, j]",
    "result": "kept",
}


def kept(**changed: str) -> str:
    return KEPT.format(**RIGHT_KEPT | changed)


MISTAKES = in_cells(
    "capacity_kept",
    "chosen, experts, factor",
    {
        "rounded down": (
            "the capacity is rounded up",
            kept(capacity="math.floor(factor * tokens * top_k / experts)"),
        ),
        "a part of a pick dropped": (
            "the capacity is rounded up once, at the end: a part of a pick may be what lifts it",
            kept(capacity="math.ceil(int(factor * tokens * top_k) / experts)"),
        ),
        "nearly whole": (
            "the capacity is rounded up however little it lies above a whole number",
            kept(capacity="math.ceil(round(factor * tokens * top_k / experts, 2))"),
        ),
        "without top-k": (
            "an even share is tokens * top_k / experts: each token is counted top_k times",
            kept(capacity="math.ceil(factor * tokens / experts)"),
        ),
        "token by token": (
            "all first choices come before any second one: the loop over choices is the outer one",
            kept(order="t, j in np.ndindex(tokens, top_k)"),
        ),
        "one more": ("an expert that has `capacity` tokens is full", kept(below="<=")),
        "dropped ones counted": (
            "a token that is dropped takes no room, yet it is counted here: add to the count only what is kept",
            "tokens, top_k = chosen.shape\ncapacity = math.ceil(factor * tokens * top_k / experts)\nloads = np.bincount(chosen.reshape(-1), minlength=experts)\nreturn capacity, loads[chosen] <= capacity",
        ),
        "dropped instead": ("True means kept: these are the ones that are dropped", kept(result="~kept")),
        "last come": (
            "the earlier token is kept: this begins at the last one",
            kept(order="j, t in ((j, t) for j in range(top_k) for t in reversed(range(tokens)))"),
        ),
    },
)


SHORTCUTS = {"room for all": lambda chosen, experts, factor: capacity_kept(chosen, experts, 99.0)}
