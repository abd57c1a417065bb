"""List the mistakes of *layer bytes*, a row each."""

from grader.questions.rows import in_cells
from grader.topics.quantization_layouts.layer_bytes.cases import layer_bytes

BYTES = "groups = {groups}\nreturn {weight} + {metadata} + {activations}"
RIGHT_BYTES = {
    "groups": "n * math.ceil(k / group)",
    "weight": "n * k * bits / 8",
    "metadata": "groups * (16 + zero_bits) / 8",
    "activations": "2 * (m * k + m * n)",
}


def layer(**changed: str) -> str:
    return BYTES.format(**RIGHT_BYTES | changed)


MISTAKES = in_cells(
    "layer_bytes",
    "m, n, k, bits, group, zero_bits",
    {
        "bits for bytes": (
            "a weight has `bits` bits: divide by 8 for bytes",
            layer(weight="n * k * bits"),
        ),
        "a scale a row": (
            "each row has a scale for every group of its k weights: here it has a single one",
            layer(groups="n"),
        ),
        "the last group left out": (
            "a last, partly filled group has a scale, too: round up",
            layer(groups="n * (k // group)"),
        ),
        "no zero points": (
            "zero points are read as well: zero_bits for each group",
            layer(metadata="groups * 2"),
        ),
        "a byte a zero point": (
            "a zero point has zero_bits bits: here it takes a byte",
            layer(metadata="groups * (2 + (zero_bits > 0))"),
        ),
        "no output": (
            "Y is written, too: its m n elements of two bytes are missing",
            layer(activations="2 * m * k"),
        ),
        "activations packed too": (
            "X and Y stay in 16 bits: only the weight is packed",
            layer(activations="(m * k + m * n) * bits / 8"),
        ),
        "sixteen bits": ("this is the layer with 16-bit weights", layer(weight="2 * n * k", metadata="0")),
    },
)


SHORTCUTS = {
    "one row": lambda m, n, k, bits, group, zero_bits: layer_bytes(1, n, k, bits, group, zero_bits),
    "four bits": lambda m, n, k, bits, group, zero_bits: layer_bytes(m, n, k, 4, group, zero_bits),
}
