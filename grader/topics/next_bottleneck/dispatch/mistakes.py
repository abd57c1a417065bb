"""List the mistakes of *dispatch*, a row each."""

from grader.questions.rows import in_cells

TABLE = """valid = (({low}) & ({high}) & ({block})).{every}(axis=1)
if not valid.any():
    return {none}
chosen = {chosen}
return chosen, int({count})"""
RIGHT = {
    "low": "request >= least",
    "high": "request <= most",
    "block": "request % multiple == 0",
    "every": "all",
    "none": "-1, len(seconds)",
    "chosen": "int(np.where(valid, seconds, np.inf).argmin())",
    "count": "(~valid & (seconds < seconds[chosen])).sum()",
}


MISTAKES = in_cells(
    "dispatch",
    "request, least, most, multiple, seconds",
    {
        "the fastest of all": (
            "fast but invalid is a bug: find the kernels that may run before you look for the fastest",
            "return int(seconds.argmin()), 0",
        ),
        "the first that may": (
            "the table isn't sorted by speed: of the kernels that may run, take the fastest",
            TABLE.format(**RIGHT | {"chosen": "int(valid.argmax())"}),
        ),
        "as if sorted": (
            "the table isn't sorted by speed: the first valid kernel needn't be the fastest, nor those before it faster",
            TABLE.format(**RIGHT | {"chosen": "int(valid.argmax())", "count": "chosen"}),
        ),
        "any feature": (
            "every feature must fit, not one of them: all, not any",
            TABLE.format(**RIGHT | {"every": "any"}),
        ),
        "borders excluded": (
            "a request exactly at a limit may run: <=, not <",
            TABLE.format(**RIGHT | {"low": "request > least", "high": "request < most"}),
        ),
        "no multiples": (
            "check the multiples as well: each feature must be a multiple of the kernel's number for it",
            TABLE.format(**RIGHT | {"block": "True"}),
        ),
        "multiples upside down": (
            "the request's feature must be a multiple of the kernel's number, not the other way round",
            TABLE.format(**RIGHT | {"block": "multiple % request == 0"}),
        ),
        "no least": (
            "a kernel has a smallest value as well: a newer GPU's kernel doesn't run on an older one",
            TABLE.format(**RIGHT | {"low": "True"}),
        ),
        "no most": ("a kernel has a largest value as well", TABLE.format(**RIGHT | {"high": "True"})),
        "kernel 0 if none": (
            "with no valid kernel the answer is -1: argmin of infinities is 0, and kernel 0 would run",
            TABLE.format(**RIGHT | {"none": "0, len(seconds)"}),
        ),
        "all that are invalid": (
            "count only the invalid kernels that are faster than the chosen one",
            TABLE.format(**RIGHT | {"count": "(~valid).sum()"}),
        ),
        "faster ones, valid or not": (
            "count the invalid kernels that are faster than the chosen one: no valid kernel is faster",
            TABLE.format(**RIGHT | {"count": "(~valid & (seconds > seconds[chosen])).sum()"}),
        ),
    },
)
