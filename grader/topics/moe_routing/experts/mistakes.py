"""List the mistakes of *experts*, a row each."""

from grader.questions.rows import in_cells

EXPERTS = """out = np.zeros((len(rows), down.shape[1]))
for e in range(len(down)):
    a, b = expert_offsets[e], expert_offsets[e + 1]
    w, d = {weights}
    both = rows[a:b] @ w.T
    g, u = {halves}
    out[a:b] = ({gated}) @ d.T
return out"""
RIGHT_EXPERTS = {
    "weights": "gate_up[e], down[e]",
    "halves": "np.split(both, 2, axis=1)",
    "gated": "g / (1 + np.exp(-g)) * u",
}


def experts(**changed: str) -> str:
    return EXPERTS.format(**RIGHT_EXPERTS | changed)


MISTAKES = in_cells(
    "experts",
    "rows, expert_offsets, gate_up, down",
    {
        "up through SiLU": (
            "gate and up are swapped: the first half of the rows is gate, which goes through SiLU",
            experts(gated="g * u / (1 + np.exp(-u))"),
        ),
        "no SiLU": ("gate goes through SiLU before it is multiplied by up", experts(gated="g * u")),
        "a sigmoid": (
            "this is only the sigmoid: SiLU(g) is g times sigmoid(g)",
            experts(gated="u / (1 + np.exp(-g))"),
        ),
        "powers of large gates": (
            "NaN for large gates: np.exp(g) overflows from 710 on, and infinity over infinity is NaN; g / (1 + np.exp(-g)) is the same and doesn't overflow that way",
            experts(gated="g * np.exp(g) / (1 + np.exp(g)) * u"),
        ),
        "SiLU of the product": (
            "apply SiLU to the gate only, before you multiply by up",
            experts(gated="g * u / (1 + np.exp(-g * u))"),
        ),
        "ReLU": (
            "this is ReLU: SiLU is not 0 below 0",
            experts(gated="np.maximum(g, 0) * u"),
        ),
        "gate and up in turn": (
            "all rows of gate come before those of up: split gate_up[e] in the middle, and don't take every other row",
            experts(halves="(both[:, ::2], both[:, 1::2])"),
        ),
        "the first expert for all": (
            "every expert has its own weights: gate_up[e] and down[e]",
            experts(weights="gate_up[0], down[0]"),
        ),
        "down of the first": (
            "every expert has its own down: down[e]",
            experts(weights="gate_up[e], down[0]"),
        ),
    },
)
