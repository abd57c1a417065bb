"""List the mistakes of *capacity kept*, a row each."""

from grader.questions.rows import in_cells
from grader.topics.expert_load_balance.capacity_kept.cases import capacity_kept

KEPT = """tokens, top_k = topk_ids.shape
capacity = {capacity}
kept, taken = np.zeros(topk_ids.shape, bool), np.zeros(experts, int)
for {order}:
    e = topk_ids[t, j]
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
    "topk_ids, experts, factor",
    {
        "rounded down": (
            "the capacity is rounded up",
            kept(capacity="math.floor(factor * tokens * top_k / experts)"),
        ),
        "a part of a pair dropped": (
            "round the capacity up once, at the end: a fraction may lift it to the next whole number",
            kept(capacity="math.ceil(int(factor * tokens * top_k) / experts)"),
        ),
        "nearly whole": (
            "round the capacity up, however little it exceeds a whole number",
            kept(capacity="math.ceil(round(factor * tokens * top_k / experts, 2))"),
        ),
        "without top-k": (
            "an even share is tokens * top_k / experts: each token is counted top_k times",
            kept(capacity="math.ceil(factor * tokens / experts)"),
        ),
        "token by token": (
            "all first choices come before any second choice: the loop over choices is the outer one",
            kept(order="t, j in np.ndindex(tokens, top_k)"),
        ),
        "one more": ("an expert that has `capacity` tokens is full", kept(below="<=")),
        "dropped ones counted": (
            "a dropped pair takes no room: add only kept pairs to the count",
            "tokens, top_k = topk_ids.shape\ncapacity = math.ceil(factor * tokens * top_k / experts)\nloads = np.bincount(topk_ids.reshape(-1), minlength=experts)\nreturn capacity, loads[topk_ids] <= capacity",
        ),
        "dropped instead": ("True means kept: here it marks the dropped pairs", kept(result="~kept")),
        "last come": (
            "earlier tokens are kept: this begins at the last one",
            kept(order="j, t in ((j, t) for j in range(top_k) for t in reversed(range(tokens)))"),
        ),
    },
)


SHORTCUTS = {"room for all": lambda topk_ids, experts, factor: capacity_kept(topk_ids, experts, 99.0)}
