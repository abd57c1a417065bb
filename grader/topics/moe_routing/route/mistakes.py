"""List the mistakes of *route*, a row each."""

from grader.questions.rows import in_cells
from grader.topics.moe_routing.route import cases

ROUTE = """logits = x @ router.T
topk_ids = {topk_ids}
first = {first}
s = logits if first else np.take_along_axis(logits, topk_ids, 1)
p = {powers}
p = p / p.sum({axis}, keepdims=True)
topk_weights = np.take_along_axis(p, topk_ids, 1) if first else p
return topk_ids, {topk_weights}"""
RIGHT_ROUTE = {
    "topk_ids": "np.argsort(-logits, axis=1, kind='stable')[:, :k]",
    "first": "softmax_first",
    "powers": "np.exp(s - s.max(1, keepdims=True))",
    "axis": "1",
    "topk_weights": "topk_weights",
}


def route(**changed: str) -> str:
    return ROUTE.format(**RIGHT_ROUTE | changed)


MISTAKES = in_cells(
    "route",
    "x, router, k, softmax_first",
    {
        "always over the chosen": (
            "with softmax_first the weights are shares of all experts: don't divide those of the chosen k by their sum",
            route(first="False"),
        ),
        "always over all": (
            "without softmax_first the softmax is over the k chosen logits only, so the weights add up to 1",
            route(first="True"),
        ),
        "the smallest": (
            "the experts with the largest logits are chosen: sort by -logits",
            route(topk_ids="np.argsort(logits, axis=1, kind='stable')[:, :k]"),
        ),
        "best last": (
            "the best expert comes first; argsort puts the largest last, so sort by -logits",
            route(topk_ids="np.argsort(-logits, axis=1, kind='stable')[:, :k][:, ::-1]"),
        ),
        "by number": (
            "the chosen experts are in the order of their logits, best first, not in the order of their numbers",
            route(topk_ids="np.sort(np.argsort(-logits, axis=1, kind='stable')[:, :k], axis=1)"),
        ),
        "the higher of equals": (
            "of equal logits the expert with the lower number comes first: a reversed sort puts the higher number first",
            route(topk_ids="np.argsort(logits, axis=1, kind='stable')[:, ::-1][:, :k]"),
        ),
        "the higher of equals, by a sort that keeps no order": (
            "of equal logits the expert with the lower number comes first: a reversed sort puts the higher number first",
            route(topk_ids="np.argsort(logits, axis=1)[:, ::-1][:, :k]"),
        ),
        "in no order": (
            "equal logits, or all of the k largest, come out in any order: only np.argsort(-logits, kind='stable') keeps equal logits in order",
            route(topk_ids="np.argpartition(-logits, k - 1, axis=1)[:, :k]"),
        ),
        "no maximum": (
            "NaN for large logits: subtract each row's maximum before np.exp, which overflows from 710 on",
            route(powers="np.exp(s)"),
        ),
        "the maximum of all tokens": (
            "subtract each row's own maximum: if the largest logit of all tokens is subtracted, np.exp gives 0 for a row far below it, and 0 / 0 is NaN",
            route(powers="np.exp(s - s.max(initial=-np.inf))"),
        ),
        "by their powers": (
            "choose experts by their logits: far below the maximum np.exp gives 0, so these experts all look equal",
            route(
                topk_ids="np.argsort(-np.exp(logits - logits.max(1, keepdims=True)), axis=1, kind='stable')[:, :k]"
            ),
        ),
        "along the tokens": (
            "take the softmax along the experts of a token, axis 1, not along the tokens",
            route(powers="np.exp(s - s.max(0, keepdims=True))", axis="0"),
        ),
        "the logits": (
            "these are the chosen logits themselves; the weights are a softmax of them",
            route(topk_weights="np.take_along_axis(logits, topk_ids, 1)"),
        ),
    },
)


SHORTCUTS = {"two experts a token": lambda x, router, k, first: cases.route(x, router, 2, first)}
