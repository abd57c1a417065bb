"""List the mistakes of *plan bytes*, a row each."""

from grader.questions.rows import in_cells

MISTAKES = in_cells(
    "plan_bytes",
    "groups, rows, width, elem_bytes",
    {
        "nothing fused": (
            "these are the bytes of one kernel per operation: the operations of a group share a kernel",
            "one = 2 * rows * width * elem_bytes\nreturn sum(groups) * one, 0.0",
        ),
        "one way": (
            "each kernel reads a tensor and writes one: this counts only one of the two",
            "one = rows * width * elem_bytes\nreturn len(groups) * one, (sum(groups) - len(groups)) * one",
        ),
        "all in one": (
            "this is a single kernel: the plan has one for each group",
            "one = 2 * rows * width * elem_bytes\nreturn one, (sum(groups) - 1) * one",
        ),
        "elements": (
            "these are elements: each has elem_bytes bytes",
            "one = 2 * rows * width\nreturn len(groups) * one, (sum(groups) - len(groups)) * one",
        ),
        "between kernels": (
            "this leaves out the first read and the last write",
            "one = 2 * rows * width * elem_bytes\nreturn (len(groups) - 1) * one, (sum(groups) - len(groups)) * one",
        ),
        "against all in one": (
            "the baseline of the saving is one kernel per operation, sum(groups) of them, not one kernel for the whole chain",
            "one = 2 * rows * width * elem_bytes\nreturn len(groups) * one, (len(groups) - 1) * one",
        ),
        "not a difference": (
            "the second number is what the plan saves: the unfused bytes minus the plan's",
            "one = 2 * rows * width * elem_bytes\nreturn len(groups) * one, sum(groups) * one",
        ),
    },
)
