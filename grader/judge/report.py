"""A Record as a person reads it: three lines a part, a table of bytes, a picture of what was touched."""

import html as _html

from grader.judge import picture
from grader.verdicts import FAIL, INCONCLUSIVE, PASS, REFUSED

COLOURS = {PASS: "#1a7f4b", FAIL: "#b3261e", REFUSED: "#8a5a00", INCONCLUSIVE: "#5d5fa8"}
PRINTED_LINES = 12


def points(value: float) -> str:
    return f"{value:g}"


def text(record) -> str:
    lines = [
        f"{record.verdict}  {record.question}  {points(record.points)} of {points(record.of)} points  ({record.mode} mode)"
    ]
    if record.message:
        lines += [f"  {record.message}" + (f" (line {record.line})" if record.line else "")]
    if record.verdict == INCONCLUSIVE:
        lines += ["  This is the grader's own trouble and costs nothing; run the check again."]
    for part in record.parts:
        lines.append(
            f"  {part.state:<12} {part.name}  {points(part.points)} of {points(part.of)}"
            + (f"  [{part.evidence}]" if part.evidence else "")
        )
        if part.state in (FAIL, INCONCLUSIVE):
            lines += [f"    asked  {part.asked}", f"    came   {part.came}", f"    look   {part.look}"]
        elif part.came:
            lines.append(f"    {part.came}")
    if record.hint:
        lines.append(f"  {record.hint}")
    if record.printed.strip():
        shown = record.printed.strip().splitlines()
        lines += ["  your prints:"] + [f"    {line[:160]}" for line in shown[:PRINTED_LINES]]
        if len(shown) > PRINTED_LINES:
            lines.append(f"    ... {len(shown) - PRINTED_LINES} more lines")
    return visible("\n".join(lines))


def visible(words: str) -> str:
    """Words of an answer in a terminal: characters that could steer it are shown as codes."""
    return "".join(c if c in "\n\t" or c.isprintable() else f"\\x{ord(c):02x}" for c in words)


def html(record) -> str:
    """For a notebook's output: plain tags and inline styles, so that it also reads in a saved page."""
    colour = COLOURS[record.verdict]
    head = (
        f'<div style="font-size:15px"><b style="background:{colour};color:#fff;border-radius:4px;padding:2px 8px">{record.verdict}</b> '
        f"<b>{escaped(record.question)}</b> {points(record.points)} of {points(record.of)} points "
        f'<span style="opacity:.75">({record.mode} mode, {record.seconds:.1f} s)</span></div>'
    )
    body = [head]
    if record.message:
        place = f" (line {record.line} of the cell)" if record.line else ""
        body.append(f"<p>{escaped(record.message)}{place}</p>")
    if record.verdict == INCONCLUSIVE:
        body.append("<p>This is the grader's own trouble and costs nothing; run the check again.</p>")
    body += [_part(part) for part in record.parts]
    if record.hint:
        body.append(f"<p>{escaped(record.hint)}</p>")
    if record.printed.strip():
        body.append(
            f"<details><summary>What your code printed</summary><pre>{escaped(record.printed[:4000])}</pre></details>"
        )
    return f'<div role="region" aria-label="Check of {escaped(record.question)}: {record.verdict}" style="line-height:1.45">{"".join(body)}</div>'


def escaped(value) -> str:
    return _html.escape(visible(str(value)))


def _part(part) -> str:
    mark = {PASS: "✓", FAIL: "✗", INCONCLUSIVE: "?"}.get(part.state, "·")
    tone = COLOURS.get(part.state, "#5d6778")
    evidence = f' <span style="opacity:.7">[{escaped(part.evidence)}]</span>' if part.evidence else ""
    head = f'<div style="margin-top:6px"><b style="background:{tone};color:#fff;border-radius:3px;padding:0 6px">{mark}</b> <b>{escaped(part.name)}</b> {points(part.points)} of {points(part.of)}{evidence}</div>'
    if part.state in (FAIL, INCONCLUSIVE):
        rows = "".join(
            f'<tr><td style="text-align:left;opacity:.7;vertical-align:top">{k}</td><td style="text-align:left">{escaped(v)}</td></tr>'
            for k, v in (("asked", part.asked), ("came", part.came), ("look", part.look))
        )
        head += f'<table style="margin:2px 0 2px 16px;color:inherit">{rows}</table>'
    elif part.came:
        head += f'<div style="margin-left:18px">{escaped(part.came)}</div>'
    elif part.state not in (PASS, FAIL):
        head += f'<div style="margin-left:18px;opacity:.7">{part.state}: {escaped(part.asked)}</div>'
    return head + traffic_html(part.facts)


def traffic_html(facts: dict) -> str:
    """Bytes by operand as a table, and each operand as a map of touches."""
    if not facts.get("launches"):
        return ""
    columns = ("requested", "dedup", "sectors", "wave", "unique")
    titles = ("asked for", "without duplicates", "in 32-byte sectors", "unique per wave", "unique")
    rows = [
        f"<tr><td style='text-align:left'>{escaped(launch['kernel'])}</td><td style='text-align:left'>{escaped(name)} {kind}</td>"
        + "".join(f"<td>{counts[c]:,}</td>" for c in columns)
        + "</tr>"
        for launch in facts["launches"]
        for name, kinds in launch["tensors"].items()
        for kind, counts in kinds.items()
    ]
    head = "".join(f"<th>{t}</th>" for t in ("kernel", "operand", *titles))
    maps = picture.svgs(facts.get("touched", {}))
    return (
        f'<details open style="margin-left:18px"><summary>Bytes moved, counted</summary><table style="color:inherit"><tr>{head}</tr>{"".join(rows)}</table>'
        f'<div style="display:flex;gap:18px;flex-wrap:wrap">{"".join(maps)}</div></details>'
    )
