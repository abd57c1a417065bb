"""List the mistakes of *product intensity*, a row each."""

from grader.questions.rows import in_cells

MISTAKES = in_cells(
    "product_intensity",
    "m, n, k, elem_bytes",
    {
        "one FLOP": (
            "this is half the right number: a multiply-add counts as two FLOP",
            "return m * n * k / (elem_bytes * (m * k + k * n + m * n))",
        ),
        "C left out": (
            "C is moved as well, once: its m * n elements are missing",
            "return 2 * m * n * k / (elem_bytes * (m * k + k * n))",
        ),
        "elements": (
            "this is FLOP per element: an element has elem_bytes bytes",
            "return 2 * m * n * k / (m * k + k * n + m * n)",
        ),
        "C both ways": (
            "C is only written, so it counts once",
            "return 2 * m * n * k / (elem_bytes * (m * k + k * n + 2 * m * n))",
        ),
        "whole numbers": (
            "the fraction is cut off: // rounds down to a whole number, so use /",
            "return 2 * m * n * k // (elem_bytes * (m * k + k * n + m * n))",
        ),
        "bytes of A alone": (
            "elem_bytes multiplies the elements of A alone: put the sum of all three matrices in parentheses",
            "return 2 * m * n * k / (elem_bytes * m * k + k * n + m * n)",
        ),
        "upside down": (
            "this is bytes per FLOP",
            "return elem_bytes * (m * k + k * n + m * n) / (2 * m * n * k)",
        ),
    },
)
