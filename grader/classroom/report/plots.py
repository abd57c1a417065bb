"""Draw plots as plain SVG: no script, colours by class so that light and dark follow the page, numbers in the nearby
text."""

from html import escape

from grader.classroom.report.facts import STATES

CLASSES = {state: f"s{number}" for number, state in enumerate(STATES)}
MOST_BARS = 12
WIDE, TALL, LEFT, BELOW, ABOVE = 340, 156, 30, 36, 16


def shares(counts: dict[str, int], said: str) -> str:
    """Draw one bar for a question with the number of answers in each state. It stretches to the available width."""
    total, at, parts = sum(counts.values()) or 1, 0.0, []
    for state, count in counts.items():
        wide = 100 * count / total
        if count:
            parts.append(f'<rect class="{CLASSES[state]}" x="{at:.3f}" width="{wide:.3f}" height="10"/>')
        at += wide
    return (
        f'<svg class="shares" role="img" aria-label="{escape(said)}" viewBox="0 0 100 10" '
        f'preserveAspectRatio="none">{"".join(parts)}</svg>'
    )


def legend() -> str:
    """List colours with their words. Hatching would be invisible at this size, so the table shows the counts too."""
    keys = "".join(
        f'<li><svg viewBox="0 0 10 10" aria-hidden="true"><rect class="{CLASSES[state]}" width="10" height="10"/></svg>'
        f"{MEANING[state]}</li>"
        for state in STATES
    )
    return f'<ul class="legend">{keys}</ul>'


MEANING = {
    "full": "all points",
    "part": "some points",
    "none": "no points",
    "not begun": "not begun",
    "open": "waits for a person",
}


def bins(values: list[float], most: float) -> list[tuple[float, float, int]]:
    """Return (from, to, count): whole points if the maximum is small, else twelve equal ranges. The last range
    includes its end."""
    most = max([most, *values, 1e-9])
    whole = most == int(most) and most < MOST_BARS and all(v == int(v) for v in values)
    if whole:
        return [(n, n, values.count(n)) for n in range(int(most) + 1)]
    step = most / MOST_BARS
    edges = [(n * step, (n + 1) * step) for n in range(MOST_BARS)]
    last = edges[-1]
    return [
        (low, high, sum(low <= v < high or (low, high) == last and v >= high for v in values))
        for low, high in edges
    ]


def histogram(values: list[float], most: float, what: str) -> str:
    """Draw how many students have how many points."""
    found = bins(values, most)
    highest = max((count for *_, count in found), default=0) or 1
    step, room = (WIDE - LEFT) / len(found), TALL - BELOW - ABOVE
    parts = [f'<line class="axis" x1="{LEFT}" x2="{WIDE}" y1="{TALL - BELOW}" y2="{TALL - BELOW}"/>']
    for place, (low, high, count) in enumerate(found):
        x, tall = LEFT + place * step, room * count / highest
        middle = x + step / 2
        parts.append(
            f'<rect class="bar" x="{x + 2:.1f}" y="{TALL - BELOW - tall:.1f}" width="{step - 4:.1f}" height="{tall:.1f}">'
            f"<title>{_range(low, high)} points: {count}</title></rect>"
        )
        if count:
            parts.append(f'<text x="{middle:.1f}" y="{TALL - BELOW - tall - 4:.1f}">{count}</text>')
        if low == high or place % 3 == 0:
            where, anchor = (middle, "middle") if low == high else (x + 2, "middle")
            parts.append(
                f'<text class="tick" x="{where:.1f}" y="{TALL - 20}" text-anchor="{anchor}">{low:.3g}</text>'
            )
    if found and found[-1][0] != found[-1][1]:
        parts.append(f'<text class="tick" x="{WIDE - 8}" y="{TALL - 20}">{found[-1][1]:.3g}</text>')
    parts.append(f'<text class="tick" x="{(LEFT + WIDE) / 2}" y="{TALL - 5}">points</text>')
    said = f"{what}: " + ", ".join(f"{count} with {_range(low, high)}" for low, high, count in found if count)
    return (
        f'<svg class="histogram" role="img" aria-label="{escape(said)}" viewBox="0 0 {WIDE} {TALL}">'
        f"{''.join(parts)}</svg>"
    )


def _range(low: float, high: float) -> str:
    return f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"
