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
            "the gemv takes at most gemv_rows rows, however fast it is with more",
            choose(valid='(name != "dense" or dense_kept)'),
        ),
        "one row fewer for the gemv": (
            "the gemv takes up to and including gemv_rows rows",
            choose(valid='(name != "gemv" or rows < gemv_rows) and (name != "dense" or dense_kept)'),
        ),
        "what is not kept": (
            "without a 16-bit copy in memory there is no dense kernel to call",
            choose(valid='(name != "gemv" or rows <= gemv_rows)'),
        ),
        "the measurement below": (
            "between two measured numbers of rows the larger one counts, because packed weights gain less there: this takes the smaller one",
            choose(at="max((m for m in known if m <= rows), default=known[0])"),
        ),
        "the nearest measurement": (
            "between two measured numbers of rows the larger one counts, because packed weights gain less there: this takes the nearer one",
            choose(at="min(known, key=lambda m: (abs(m - rows), m))"),
        ),
        "the measurement after": (
            "if the number of rows was measured, use it: this takes the next larger one",
            choose(at="next((m for m in known if m > rows), known[-1])"),
        ),
        "the fastest of all": (
            "compare only times measured at the number of rows that you chose: this takes a time measured at another number",
            choose().replace("m == at and ", ""),
        ),
        "the slowest": ("this is the slowest of them", choose(best="max")),
        "in the order of the list": (
            "the table is in no particular order: sort its numbers of rows before you look for the first that is large enough",
            choose().replace(
                "sorted({m for m, _, _ in measured})", "list(dict.fromkeys(m for m, _, _ in measured))"
            ),
        ),
        "the last one listed": (
            "the table is in no particular order: above all measured numbers of rows the largest one counts, wherever it is in the table",
            choose(at="next((m for m in known if m >= rows), measured[-1][0])"),
        ),
        "anybody beyond the last": (
            "above all measured numbers of rows the largest one counts, but a kernel that may not run with your rows stays forbidden",
            choose(
                valid='(rows > known[-1] or (name != "gemv" or rows <= gemv_rows) and (name != "dense" or dense_kept))'
            ),
        ),
        "whatever was measured": (
            "whether the gemv may run depends on your number of rows, not on the measured number that you look up",
            choose(valid='(name != "gemv" or at <= gemv_rows) and (name != "dense" or dense_kept)'),
        ),
    },
)
