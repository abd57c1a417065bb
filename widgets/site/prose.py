"""Markdown -> HTML as JupyterLab shows it: tables, details, formulas, code with colours, links that lead on."""

import re
from collections.abc import Callable
from html import escape

from widgets.site.formulas import Unreadable, mathml

LANGUAGES = {
    "py": "python",
    "python": "python",
    "sh": "bash",
    "bash": "bash",
    "cuda": "cuda",
    "c": "c",
    "json": "json",
}
PASSED = r"(?:https?:|mailto:|#|data:)"

Lead = Callable[
    [str], str | None
]  # a link as written -> the link in the site; None: there is nothing to lead to


def code(text: str, language: str = "python") -> str:
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import get_lexer_by_name

    lexer = get_lexer_by_name(LANGUAGES.get(language, "text"), stripnl=False)
    inside = highlight(text.rstrip("\n"), lexer, HtmlFormatter(nowrap=True)).rstrip("\n")
    name = "Python code" if LANGUAGES.get(language) == "python" else "Text"
    return f'<pre class="code" tabindex="0" role="group" aria-label="{name}"><code>{inside}</code></pre>\n'


def formula(latex: str, display: bool) -> str:
    """MathML; what can't be read stays as it was written."""
    try:
        return mathml(latex, display)
    except Unreadable:
        return f'<code class="unread">{escape(latex.strip())}</code>'


def _slug(title: str) -> str:
    return re.sub(r"[^\w]+", "-", title.lower()).strip("-")


def _follow(tokens, lead: Lead) -> None:
    """Send links and pictures where they stand in the site; what leads nowhere is only text."""
    lost = 0
    for token in tokens:
        if token.type == "link_open":
            href = token.attrs["href"]
            there = href if re.match(PASSED, href) else lead(href)
            lost += there is None
            if there is None:
                token.tag, token.attrs = "span", {"title": f"{href}, in the project's folder"}
            else:
                token.attrs["href"] = there
        elif token.type == "link_close" and lost:
            token.tag, lost = "span", lost - 1
        elif token.type == "image":
            token.attrs["src"] = lead(token.attrs["src"]) or token.attrs["src"]
            token.attrs["loading"] = "lazy"
        if token.children:
            _follow(token.children, lead)


def _wrapped_tables(html: str) -> str:
    """A wide table scrolls by itself, by keyboard too, and the page does not."""
    opened = '<div class="wide" tabindex="0" role="group" aria-label="Table">\n<table>'
    return (
        html.replace("<table>", opened)
        .replace("</table>", "</table>\n</div>")
        .replace("<th></th>", "<td></td>")
    )


def markdown(text: str, lead: Lead) -> str:
    from markdown_it import MarkdownIt
    from mdit_py_plugins.anchors import anchors_plugin
    from mdit_py_plugins.dollarmath import dollarmath_plugin

    md = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    md.use(anchors_plugin, max_level=3, slug_func=_slug)
    md.use(
        dollarmath_plugin,
        allow_digits=False,
        double_inline=True,
        renderer=lambda latex, options: formula(latex, options["display_mode"]),
    )
    for kind in ("fence", "code_block"):
        md.add_render_rule(kind, lambda self, tokens, i, *_: code(tokens[i].content, tokens[i].info.strip()))
    tokens = md.parse(text)
    _follow(tokens, lead)
    return _wrapped_tables(md.renderer.render(tokens, md.options, {}))
