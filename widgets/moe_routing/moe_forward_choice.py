"""Draw one token's way to its experts, from its numbers times the gate over the logits as bars to top-k's choice."""

from collections.abc import Mapping, Sequence

from widgets import units
from widgets.scene import line, rect, text

LEFT, COLUMN, WIDE_BAR = 470, 58, 34  # where the token's numbers end, from one expert to the next, a bar
ZERO, UNIT = 234, 44  # below the panel's top, the logits' zero, and the height of a logit of 1
SHOW = units.fixed(2)


def choice_panel(
    top: float,
    token: int,
    x: Sequence[float],
    gate: Sequence[Sequence[float]],
    logits: Sequence[float],
    weights: Mapping[int, float],
) -> list[dict]:
    """Draw the matmul and its bars. With `weights` (expert to weight) only the experts that are kept stay solid."""
    words = f"t{token} × gate: a logit for each expert"
    if weights:
        words = f"t{token} keeps its {len(weights)} largest, softmax weighs them"
        words = f"t{token} keeps its largest logit, with weight 1" if len(weights) == 1 else words
    marks = [text("gate-title", LEFT - 74, top - 12, words, "now", "small", bold=True)]
    for j, (number, row) in enumerate(zip(x, gate, strict=True)):
        y = top + 34 + 20 * j
        marks.append(text(f"gate-x{j}", LEFT, y, SHOW(number), "now", "small", "end", bold=True))
        marks += [
            text(f"gate-{j}-{e}", _middle(e), y, f"× {SHOW(value)}", "muted", "small", "middle")
            for e, value in enumerate(row)
        ]
    right, zero = _middle(len(logits) - 1) + COLUMN / 2, top + ZERO
    marks += [
        line("gate-sum", LEFT - 40, top + 83, right, top + 83, "axis"),
        text("gate-logit", LEFT, top + 100, "logit", "muted", "small", "end"),
        text("gate-zero", LEFT, zero + 4, "0", "muted", "small", "end"),
        line("gate-zero-line", LEFT + 6, zero, right, zero, "axis"),
    ]
    for e, logit in enumerate(logits):
        kept = not weights or e in weights
        marks += [
            text(f"gate-e{e}", _middle(e), top + 14, f"E{e}", "primary", "small", "middle", bold=True),
            text(
                f"gate-logit{e}",
                _middle(e),
                top + 100,
                SHOW(logit),
                "ink" if kept else "muted",
                "small",
                "middle",
                kept,
            ),
            rect(
                f"gate-bar{e}",
                _middle(e) - WIDE_BAR / 2,
                zero - max(0, logit) * UNIT,
                WIDE_BAR,
                abs(logit) * UNIT,
                "now" if kept else "idle",
                f"Token {token}, expert {e}: logit {SHOW(logit)}",
            ),
        ]
        if e in weights:
            weight = SHOW(weights[e])
            marks.append(
                text(f"gate-weight{e}", _middle(e), top + 120, weight, "now", "small", "middle", True)
            )
    if weights:
        marks.append(text("gate-weight", LEFT, top + 120, "weight", "muted", "small", "end"))
    return marks


def _middle(expert: int) -> float:
    return LEFT + 38 + COLUMN * expert
