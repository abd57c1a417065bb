"""List right answers to *survivors* in other forms."""



SURVIVORS = """
def survivors(logits, temperature, top_k, top_p, min_p):
    order = sorted(range(len(logits)), key=lambda i: (-logits[i], i))
    weight = [math.exp((logits[i] - logits[order[0]]) / temperature) for i in order]
    first = order[: top_k or len(order)]
    limit, before, stays = top_p * math.fsum(weight[: len(first)]), 0.0, set()
    for rank, token in enumerate(first):
        near = before < limit or top_p >= 1 or rank == 0
        if near and weight[rank] >= min_p and logits[token] > -math.inf:
            stays.add(token)
        before += weight[rank]
    return {result}
"""
FORMS = {
        "a list of booleans": "import math\n"
        + SURVIVORS.format(result="[i in stays for i in range(len(logits))]"),
        "a list of numpy booleans": "import math\n"
        + SURVIVORS.format(result="[np.bool_(i in stays) for i in range(len(logits))]"),
        "an array": "import math\n"
        + SURVIVORS.format(result="np.isin(np.arange(len(logits)), sorted(stays))"),
    }
