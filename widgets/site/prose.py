"""Turn Markdown into JupyterLab's HTML, with tables, details, formulas, coloured code and working links."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from html import escape

from widgets.site.formulas import Unreadable, mathml
from widgets.site.listing import code

PASSED = r"(?:https?:|mailto:|#|data:)"


def _picture(source: str, words: str) -> str:
    return f'<p><img src="{escape(source)}" alt="{escape(words)}" loading="lazy"></p>\n'


@dataclass(frozen=True)
class Place:
    """Hold where a text is in the site."""

    lead: Callable[
        [str], str | None
    ]  # a link as written -> the link in the site, or None if it has no target
    picture: Callable[[str, str], str] = _picture  # (a picture alone in its paragraph, its words) -> HTML


def formula(latex: str, display: bool) -> str:
    """Return MathML. A formula that can't be read stays as it was written."""
    try:
        return mathml(latex, display)
    except Unreadable:
        return f'<code class="unread">{escape(latex.strip())}</code>'


def _slug(title: str, taken: set[str]) -> str:
    """Return a heading's id, with -section added if a term of the text has that id."""
    name = re.sub(r"[^\w]+", "-", title.lower()).strip("-")
    return f"{name}-section" if name in taken else name


def _follow(tokens, place: Place) -> None:
    """Turn links and pictures to their addresses in the site. A link that leads nowhere becomes plain text."""
    lost = 0
    for token in tokens:
        if token.type == "link_open":
            href = token.attrs["href"]
            there = href if re.match(PASSED, href) else place.lead(href)
            lost += there is None
            if there is None:
                token.tag, token.attrs = "span", {"title": f"{href}, in the project's folder"}
            else:
                token.attrs["href"] = there
        elif token.type == "link_close" and lost:
            token.tag, lost = "span", lost - 1
        elif token.type == "image":
            token.attrs["src"] = place.lead(token.attrs["src"]) or token.attrs["src"]
            token.attrs["loading"] = "lazy"
        if token.children:
            _follow(token.children, place)


def _framed(tokens, place: Place) -> list:
    """Make a picture alone in its paragraph a figure of its own."""
    from markdown_it.token import Token

    made, i = [], 0
    while i < len(tokens):
        inside = tokens[i + 1].children if tokens[i].type == "paragraph_open" else None
        if inside and len(inside) == 1 and inside[0].type == "image":
            html = place.picture(inside[0].attrs["src"], inside[0].content)
            made.append(Token("html_block", "", 0, content=html))
            i += 3
        else:
            made.append(tokens[i])
            i += 1
    return made


def _wrapped_tables(html: str) -> str:
    """Let a wide table scroll by itself, by keyboard too, while the page does not."""
    opened = '<div class="wide" tabindex="0" role="group" aria-label="Table">\n<table>'
    return (
        html.replace("<table>", opened)
        .replace("</table>", "</table>\n</div>")
        .replace("<th></th>", "<td></td>")
    )


def _linked_headings(html: str) -> str:
    """Put a link next to each heading, and not inside it, where it would be read out as part of its name."""

    def linked(match: re.Match) -> str:
        level, name, title = match.groups()
        words = re.sub("<[^>]+>", "", title)
        link = f'<a class="here" href="#{name}" aria-label="Link to “{words}”">#</a>'
        return f'<div class="heading h{level}"><h{level} id="{name}">{title}</h{level}>{link}</div>'

    return re.sub(r'<h([23]) id="([^"]+)">(.*?)</h\1>', linked, html)


def markdown(text: str, place: Place) -> str:
    from markdown_it import MarkdownIt
    from mdit_py_plugins.anchors import anchors_plugin
    from mdit_py_plugins.dollarmath import dollarmath_plugin

    md = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    taken = set(re.findall(r'<a id="([^"]+)"', text))
    md.use(anchors_plugin, max_level=3, slug_func=lambda title: _slug(title, taken))
    md.use(
        dollarmath_plugin,
        allow_digits=False,
        double_inline=True,
        renderer=lambda latex, options: formula(latex, options["display_mode"]),
    )
    for kind in ("fence", "code_block"):
        md.add_render_rule(kind, lambda self, tokens, i, *_: code(tokens[i].content, tokens[i].info.strip()))
    tokens = _framed(md.parse(text), place)
    _follow(tokens, place)
    return _linked_headings(_wrapped_tables(md.renderer.render(tokens, md.options, {})))
