"""List the mistakes of *balance gradient*, a row each."""

from grader.questions.rows import in_cells

LOSS = """tokens, experts = len(x), router.shape[1]
logits = x @ router
p = np.exp(logits - logits.max(1, keepdims=True))
p = p / p.sum(1, keepdims=True)
f = {share}
g = {scale} * p * ({pull})
return {loss}, {gradient}"""
RIGHT_LOSS = {
    "share": "np.bincount(topk_ids.reshape(-1), minlength=experts) / topk_ids.size",
    "scale": "experts / tokens",
    "pull": "f - (p @ f)[:, None]",
    "loss": "experts * (f @ p.mean(0))",
    "gradient": "x.T @ g",
}


def loss(**changed: str) -> str:
    return LOSS.format(**RIGHT_LOSS | changed)


MISTAKES = in_cells(
    "balance_gradient",
    "x, router, topk_ids",
    {
        "loss alone": (
            "the gradient is missing: return the loss and the gradient",
            "tokens, experts = len(x), router.shape[1]\nlogits = x @ router\np = np.exp(logits - logits.max(1, keepdims=True))\np = p / p.sum(1, keepdims=True)\nf = np.bincount(topk_ids.reshape(-1), minlength=experts) / topk_ids.size\nreturn experts * (f @ p.mean(0))",
        ),
        "not scaled by experts": (
            "multiply the loss by the number of experts, so that it is 1 when all loads are even",
            loss(loss="f @ p.mean(0)", scale="1 / tokens"),
        ),
        "shares of tokens": (
            "a share of pairs is a count divided by tokens * top_k, so that all shares add up to 1",
            loss(share="np.bincount(topk_ids.reshape(-1), minlength=experts) / len(x)"),
        ),
        "softmax as if straight": (
            "a softmax's gradient has a second term, because a larger logit lowers all other probabilities",
            loss(pull="f[None, :]"),
        ),
        "by logits": (
            "this is the gradient with respect to the logits: multiply it by x.T from the left for the router's",
            loss(gradient="g"),
        ),
        "loss not scaled": (
            "the gradient is right, but the loss is not: multiply both by the number of experts",
            loss(loss="f @ p.mean(0)"),
        ),
        "no maximum": (
            "NaN for large logits: subtract each row's maximum before np.exp, which overflows from 710 on",
            loss().replace(" - logits.max(1, keepdims=True)", ""),
        ),
        "no share of its own": (
            "the probability itself is missing: the loss moves with p, and p moves with the logits by p * (f - p @ f)",
            loss(scale="experts / tokens / p"),
        ),
        "summed": (
            "the loss is a mean over tokens: divide the gradient by their number, too",
            loss(scale="experts"),
        ),
        "uphill": (
            "the sign is reversed: the gradient points to where the loss grows",
            loss(gradient="-x.T @ g"),
        ),
    },
)
