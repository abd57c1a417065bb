"""List the mistakes of *time terms*, a row each."""

from grader.questions.rows import in_cells

TERMS = """m, c = {memory}, {compute}
terms = {{"memory": m, "compute": c, "overhead": overhead_s}}
return m, c, {together}, {name}"""
RIGHT = {
    "memory": "bytes_moved / bandwidth",
    "compute": "flops / (peak * efficiency)",
    "together": "max(m, c) + overhead_s",
    "name": "max(terms, key=terms.get)",
}


def terms(**changed: str) -> str:
    return TERMS.format(**RIGHT | changed)


MISTAKES = in_cells(
    "time_terms",
    "flops, bytes_moved, overhead_s, peak, bandwidth, efficiency",
    {
        "added up": (
            "the three terms are added up: bytes and arithmetic overlap, so only the longer of these two shows",
            terms(together="m + c + overhead_s"),
        ),
        "overhead hidden": (
            "add the overhead to the total: nothing overlaps with it",
            terms(together="max(m, c, overhead_s)"),
        ),
        "no efficiency": (
            "the arithmetic runs at the full peak here: it reaches peak * efficiency",
            terms(compute="flops / peak"),
        ),
        "efficiency as a factor": (
            "the efficiency makes the rate lower and the time longer: divide by it",
            terms(compute="flops / peak * efficiency"),
        ),
        "efficiency of the memory": (
            "the efficiency belongs to the arithmetic, not to the bytes",
            terms(memory="bytes_moved / (bandwidth * efficiency)"),
        ),
        "the smallest": ("this names the smallest term", terms(name="min(terms, key=terms.get)")),
        "memory or compute": (
            "the overhead may be the largest term, too",
            terms(name='"memory" if m > c else "compute"'),
        ),
    },
)
