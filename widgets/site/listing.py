"""Colour code line by line. Long code wraps under its own indentation and is never cut, and columns scroll."""

import re
from html import escape

LANGUAGES = {
    "py": "python",
    "python": "python",
    "sh": "bash",
    "bash": "bash",
    "cuda": "cuda",
    "c": "c",
    "json": "json",
}


def _lines(html: str) -> str:
    """Each line knows how far it is indented, so that its rest hangs a little deeper."""
    made = []
    for line in html.split("\n"):
        blanks = re.match(r"(?:<[^>]+>)*( *)", line)[1]
        made.append(f'<span class="line" style="--in:{len(blanks)}">{line}\n</span>')
    return "".join(made)


def code(text: str, language: str = "python") -> str:
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import get_lexer_by_name

    lexer = get_lexer_by_name(LANGUAGES.get(language, "text"), stripnl=False)
    inside = highlight(text.rstrip("\n"), lexer, HtmlFormatter(nowrap=True)).rstrip("\n")
    name = "Python code" if LANGUAGES.get(language) == "python" else "Text"
    return f'<div class="listing"><pre class="code" role="group" aria-label="{name}"><code>{_lines(inside)}</code></pre></div>\n'


def _in_columns(text: str) -> bool:
    """Return whether several lines have at least three words or numbers kept apart by wide gaps, as in a table."""
    return sum(len(re.split(r" {2,}", line.strip())) > 2 for line in text.splitlines()) > 1


def printed(text: str, name: str) -> str:
    """Return the output of code. Columns stay columns, and wide ones scroll in their own box, by keyboard too."""
    kind = '"printed columns" tabindex="0"' if _in_columns(text) else '"printed"'
    return f'<pre class={kind} role="group" aria-label="{name}">{_lines(escape(text.rstrip()))}</pre>\n'
