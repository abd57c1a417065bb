"""Code with colours, line by line: what does not fit is wrapped under its own indentation, never cut."""

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


def printed(text: str, name: str) -> str:
    """What code printed."""
    inside = _lines(escape(text.rstrip()))
    return f'<pre class="printed" role="group" aria-label="{name}">{inside}</pre>\n'
