"""List the mistakes of *dispatch*, a row each."""

from grader.questions.rows import in_cells

DISPATCH = """known = sorted({{m for m, _, _ in measured}})
at = {at}
valid = [(us, place, name) for place, (m, name, us) in enumerate(measured) if m == at and {valid}]
return {best}(valid)[2]"""
RIGHT_DISPATCH = {
    "at": "next((m for m in known if m >= rows), known[-1])",
    "valid": '(name != "gemv" or rows <= gemv_rows) and (name != "dense" or dense_kept)',
    "best": "min",
}


def choose(**changed: str) -> str:
    return DISPATCH.format(**RIGHT_DISPATCH | changed)


MISTAKES = in_cells(
    "dispatch",
    "rows, measured, gemv_rows, dense_kept",
    {
        "fast but invalid": (
            "the gemv takes at most gemv_rows rows: beyond them it may be as fast as it likes",
            choose(valid='(name != "dense" or dense_kept)'),
        ),
        "one row fewer for the gemv": (
            "the gemv takes up to gemv_rows rows, these with them",
            choose(valid='(name != "gemv" or rows < gemv_rows) and (name != "dense" or dense_kept)'),
        ),
        "what is not kept": (
            "without a 16-bit copy in memory there is no dense kernel to call",
            choose(valid='(name != "gemv" or rows <= gemv_rows)'),
        ),
        "the measurement below": (
            "between two measured numbers of rows the larger one holds, where packed weights have less to win: this takes the smaller",
            choose(at="max((m for m in known if m <= rows), default=known[0])"),
        ),
        "the nearest measurement": (
            "between two measured numbers of rows the larger one holds, where packed weights have less to win: this takes the nearer",
            choose(at="min(known, key=lambda m: (abs(m - rows), m))"),
        ),
        "the measurement after": (
            "a number of rows that was measured stands for itself: this takes the next larger one",
            choose(at="next((m for m in known if m > rows), known[-1])"),
        ),
        "the fastest of all": (
            "only what was measured at the number of rows that stands for yours can be compared: this takes a smaller time, of other rows",
            choose().replace("m == at and ", ""),
        ),
        "the slowest": ("this is the slowest of them", choose(best="max")),
        "in the order of the list": (
            "the table is in no order: sort its numbers of rows before you look for the first that is not below",
            choose().replace(
                "sorted({m for m, _, _ in measured})", "list(dict.fromkeys(m for m, _, _ in measured))"
            ),
        ),
        "the last one listed": (
            "the table is in no order: beyond the last measured number of rows the largest holds, wherever it stands",
            choose(at="next((m for m in known if m >= rows), measured[-1][0])"),
        ),
        "anybody beyond the last": (
            "beyond the last measured number of rows the last holds, and who may not run there may not run here either",
            choose(
                valid='(rows > known[-1] or (name != "gemv" or rows <= gemv_rows) and (name != "dense" or dense_kept))'
            ),
        ),
        "whatever was measured": (
            "what the gemv may do depends on the rows there are, not on the row of the table that stands for them",
            choose(valid='(name != "gemv" or at <= gemv_rows) and (name != "dense" or dense_kept)'),
        ),
    },
)
