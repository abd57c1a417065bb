"""Show a Record to a person, in three lines a part, a table of bytes, and a picture of touched elements."""

import html as _html

from grader.box.serve.printed import first_lines, shortened, without_warnings
from grader.judge import picture
from grader.judge.evidence import MOST_PRINTED
from grader.verdicts import FAIL, INCONCLUSIVE, OPEN, PASS, REFUSED

COLOURS = {PASS: "#1a7f4b", FAIL: "#b3261e", REFUSED: "#8a5a00", INCONCLUSIVE: "#5d5fa8", OPEN: "#5d6778"}
GREY = "#5d6778"
MARKS = {PASS: "✓", FAIL: "✗", INCONCLUSIVE: "?", OPEN: "…"}
PRINTED_LINES, LINE_CHARACTERS = 12, 160
WARNINGS = "a warning, which costs no points"
OURS = "This is the grader's own trouble and costs nothing; run the check again."
WALK = "_.step() in the next cell walks through the case that failed, line by line."
STEPS = ("a nudge", "the approach", "almost the line")


def points(value: float) -> str:
    return f"{value:g}"


def worth(record) -> str:
    """Return the worth of a verdict: 11 of 13 points, 2 open."""
    waits = record.open_points
    return f"{points(record.points)} of {points(record.of)} points" + f", {points(waits)} open" * bool(waits)


def title(record) -> tuple[str, str]:
    """Return the word and the colour of a verdict. An answer that isn't begun doesn't look like a failure."""
    return ("NOT STARTED", GREY) if record.not_started else (record.verdict, COLOURS[record.verdict])


def text(record) -> str:
    lines = [f"{title(record)[0]}  {record.question}  {worth(record)}  ({record.mode} mode)"]
    if record.message:
        lines += [f"  {record.message}" + (f" (line {record.line})" if record.line else "")]
    if record.verdict == INCONCLUSIVE:
        lines += [f"  {OURS}"]
    for part in record.parts:
        evidence = f"  [{part.evidence}]" if part.evidence else ""
        lines.append(f"  {part.state:<12} {part.name}  {points(part.points)} of {points(part.of)}{evidence}")
        if part.state in (FAIL, INCONCLUSIVE):
            lines += [f"    asked  {part.asked}", f"    came   {part.came}", f"    look   {part.look}"]
        elif part.came:
            lines.append(f"    {part.came}")
    if record.hints and record.verdict == FAIL:
        lines.append(f'  hint("{record.question}") gives a nudge; asking is free.')
    if record.walk:
        lines.append(f"  {WALK}")
    return visible("\n".join(lines + prints(record)))


def prints(record) -> list[str]:
    warned, own = without_warnings(record.printed.strip())
    return [*listed(WARNINGS, warned), *listed("your prints", first_lines(own, PRINTED_LINES).splitlines())]


def listed(heading: str, lines: list[str]) -> list[str]:
    return [f"  {heading}:", *(f"    {shown(line)}" for line in lines[: PRINTED_LINES + 1])] if lines else []


def shown(line: str) -> str:
    return line if len(line) <= LINE_CHARACTERS else line[: LINE_CHARACTERS - 1] + "…"


def visible(words: str) -> str:
    """Make an answer's words safe for a terminal. Characters that could steer it are shown as codes."""
    return "".join(c if c in "\n\t" or c.isprintable() else f"\\x{ord(c):02x}" for c in words)


def escaped(value) -> str:
    return _html.escape(visible(str(value)))


def html(record) -> str:
    """Return a notebook's output: plain tags and inline styles, so that it also reads in a saved page."""
    word, colour = title(record)
    head = (
        f'<div style="font-size:15px">{badge(word, colour)} <b>{escaped(record.question)}</b> '
        f"{worth(record)} "
        f'<span style="opacity:.75">({escaped(record.mode)} mode, {record.seconds:.1f} s)</span></div>'
    )
    body = [head]
    if record.message:
        place = f" (line {record.line} of the cell)" if record.line else ""
        body.append(f"<p>{escaped(record.message)}{place}</p>")
    if record.verdict == INCONCLUSIVE:
        body.append(f"<p>{OURS}</p>")
    body += [part_html(part, record.not_started) for part in record.parts]
    if record.walk:
        body.append(f"<p>{WALK}</p>")
    if record.hints and record.verdict == FAIL:
        body.append(hints_html(list(record.hints)))
    warned, own = without_warnings(record.printed.strip())
    body += [f"<p>{WARNINGS}: {escaped('; '.join(warned[:PRINTED_LINES]))}</p>"] * bool(warned)
    if own:
        kept = escaped(shortened(own, MOST_PRINTED))
        body.append(f"<details><summary>What your code printed</summary><pre>{kept}</pre></details>")
    label = f"Check of {escaped(record.question)}: {word}"
    return f'<div role="region" aria-label="{label}" style="line-height:1.45">{"".join(body)}</div>'


def badge(word: str, colour: str) -> str:
    return f'<b style="background:{colour};color:#fff;border-radius:4px;padding:2px 8px">{word}</b>'


def hints_html(hints: list[str], step: int = 0) -> str:
    """Return hints in steps, each folded into the one before. The next hint is one click away and free."""
    if step == len(hints):
        return ""
    name = STEPS[step] if step < len(STEPS) else "more"
    inner = f"<p>{escaped(hints[step])}</p>{hints_html(hints, step + 1)}"
    return f'<details style="margin:4px 0 0 16px"><summary>Hint {step + 1}: {name}</summary>{inner}</details>'


def part_html(part, not_started: bool = False) -> str:
    tone = GREY if not_started else COLOURS.get(part.state, GREY)
    mark = "·" if not_started else MARKS.get(part.state, "·")
    evidence = f' <span style="opacity:.7">[{escaped(part.evidence)}]</span>' if part.evidence else ""
    head = (
        f'<div style="margin-top:6px">{badge(mark, tone)} <b>{escaped(part.name)}</b> '
        f"{points(part.points)} of {points(part.of)}{evidence}</div>"
    )
    if part.state in (FAIL, INCONCLUSIVE):
        rows = "".join(
            f'<tr><td style="text-align:left;opacity:.7;vertical-align:top;padding-right:10px">{key}</td>'
            f'<td style="text-align:left">{escaped(value)}</td></tr>'
            for key, value in (("asked", part.asked), ("came", part.came), ("look", part.look))
        )
        head += f'<table style="margin:2px 0 2px 16px;color:inherit">{rows}</table>'
    elif part.came:
        head += f'<div style="margin-left:18px">{escaped(part.came)}</div>'
    elif part.state not in (PASS, FAIL):
        head += f'<div style="margin-left:18px;opacity:.7">{escaped(part.state)}: {escaped(part.asked)}</div>'
    return head + traffic_html(part.facts)


COLUMNS = {
    "requested": "asked for",
    "dedup": "without duplicates",
    "sectors": "in 32-byte sectors",
    "wave": "unique per wave",
    "unique": "unique",
}
CELL = 'style="padding:1px 10px;text-align:right"'
LEFT = 'style="padding:1px 10px;text-align:left"'


def traffic_html(facts: dict) -> str:
    """Show bytes by operand as a table, and each operand as a map of touches."""
    if not facts.get("launches"):
        return ""
    rows = [
        f"<tr><td {LEFT}>{escaped(launch['kernel'])}</td><td {LEFT}>{escaped(name)} {escaped(kind)}</td>"
        + "".join(f"<td {CELL}>{megabytes(counts.get(column, 0))}</td>" for column in COLUMNS)
        + "</tr>"
        for launch in facts["launches"]
        for name, kinds in launch["tensors"].items()
        for kind, counts in kinds.items()
    ]
    head = f"<th {LEFT}>kernel</th><th {LEFT}>operand</th>"
    head += "".join(f"<th {CELL}>{title}</th>" for title in COLUMNS.values())
    maps = "".join(picture.svgs(facts.get("touched", {})))
    return (
        '<details open style="margin-left:18px"><summary>Bytes moved, counted</summary>'
        f'<table style="color:inherit;border-collapse:collapse"><tr>{head}</tr>{"".join(rows)}</table>'
        f'<div style="display:flex;gap:18px;flex-wrap:wrap;margin-top:8px">{maps}</div></details>'
    )


def megabytes(count: float) -> str:
    for size, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:,.0f} B"
