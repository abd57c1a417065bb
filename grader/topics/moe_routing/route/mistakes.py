"""List the mistakes of *route*, a row each."""

from grader.questions.rows import in_cells
from grader.topics.moe_routing.route import cases

ROUTE = """logits = x @ router.T
chosen = {chosen}
first = {first}
s = logits if first else np.take_along_axis(logits, chosen, 1)
p = {powers}
p = p / p.sum({axis}, keepdims=True)
weights = np.take_along_axis(p, chosen, 1) if first else p
return chosen, {weights}"""
RIGHT_ROUTE = {
    "chosen": "np.argsort(-logits, axis=1, kind='stable')[:, :k]",
    "first": "softmax_first",
    "powers": "np.exp(s - s.max(1, keepdims=True))",
    "axis": "1",
    "weights": "weights",
}


def route(**changed: str) -> str:
    return ROUTE.format(**RIGHT_ROUTE | changed)


MISTAKES = in_cells(
    "route",
    "x, router, k, softmax_first",
    {
        "always over the chosen": (
            "with softmax_first the weights are shares of all experts: those of the chosen k do not add up to 1, and nothing divides them by their sum",
            route(first="False"),
        ),
        "always over all": (
            "without softmax_first the softmax is over the k chosen logits alone, so that the weights add up to 1",
            route(first="True"),
        ),
        "the smallest": (
            "the experts with the largest logits are chosen: sort by -logits",
            route(chosen="np.argsort(logits, axis=1, kind='stable')[:, :k]"),
        ),
        "best last": (
            "the best expert comes first; argsort puts the largest last, so sort by -logits",
            route(chosen="np.argsort(-logits, axis=1, kind='stable')[:, :k][:, ::-1]"),
        ),
        "by number": (
            "the chosen experts stand in the order of their logits, the best first, and not of their numbers",
            route(chosen="np.sort(np.argsort(-logits, axis=1, kind='stable')[:, :k], axis=1)"),
        ),
        "the higher of equals": (
            "of equal logits the expert with the lower number comes first: a sort turned round puts the higher first",
            route(chosen="np.argsort(logits, axis=1, kind='stable')[:, ::-1][:, :k]"),
        ),
        "the higher of equals, by a sort that keeps no order": (
            "of equal logits the expert with the lower number comes first: a sort turned round puts the higher first",
            route(chosen="np.argsort(logits, axis=1)[:, ::-1][:, :k]"),
        ),
        "in no order": (
            "equals, or all of the k largest, stand in any order: of np's ways to sort, np.argsort(-logits, kind='stable') alone keeps equals in theirs",
            route(chosen="np.argpartition(-logits, k - 1, axis=1)[:, :k]"),
        ),
        "no maximum": (
            "NaN for large logits: subtract each row's maximum before np.exp, which overflows from 710 on",
            route(powers="np.exp(s)"),
        ),
        "the maximum of all tokens": (
            "each row's own maximum is subtracted: beside the largest logit of all tokens a row far below it has nothing but powers of 0, and 0 / 0 is no number",
            route(powers="np.exp(s - s.max(initial=-np.inf))"),
        ),
        "by their powers": (
            "experts are chosen by their logits: far below the maximum np.exp gives 0 for each, and all of these look alike",
            route(
                chosen="np.argsort(-np.exp(logits - logits.max(1, keepdims=True)), axis=1, kind='stable')[:, :k]"
            ),
        ),
        "along the tokens": (
            "a softmax is taken along the experts of one token, axis 1, and not along the tokens",
            route(powers="np.exp(s - s.max(0, keepdims=True))", axis="0"),
        ),
        "the logits": (
            "these are the chosen logits themselves; the weights are a softmax of them",
            route(weights="np.take_along_axis(logits, chosen, 1)"),
        ),
    },
)


SHORTCUTS = {"two experts a token": lambda x, router, k, first: cases.route(x, router, 2, first)}
