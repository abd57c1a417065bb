"""The figures of one lesson: numbered as they come, captioned, and found again by who links to them."""

import re
from collections.abc import Callable
from html import escape
from pathlib import Path

from widgets.site.drawings import inline
from widgets.site.prose import _picture

ELSEWHERE = re.compile(r'<a href="#drawn:([^"]+)">(.*?)</a>', re.S)


class Figures:
    def __init__(self, chapter: str, folder: Path, lead: Callable[[str], str | None]):
        self.chapter, self.folder, self.go = chapter, folder, lead
        self.count, self.drawn, self.shown = 0, {}, {}  # picture or simulator -> its number

    def _next(self) -> str:
        self.count += 1
        return f"{self.chapter}.{self.count}"

    def frame(self, inside: str, words: str, kind: str) -> str:
        """`words`: HTML beside the number."""
        number = self._next()
        caption = f"<figcaption><b>Figure {number}</b> {words}</figcaption>"
        return f'<figure class="{kind}" id="figure-{self.count}">{inside}{caption}</figure>\n'

    def picture(self, source: str, words: str) -> str:
        """A drawing stands in the page itself, where its colours follow the theme."""
        path = self.folder / source
        if path.suffix != ".svg" or not path.is_file():
            return _picture(self.go(source) or source, words)
        drawing = inline(path.read_text(encoding="utf-8"), f"drawing-{self.count + 1}")
        drawing = f'<div class="drawn" tabindex="0" role="group" aria-label="Drawing">{drawing}</div>'
        html = self.frame(drawing, escape(words), "drawing")
        self.drawn.setdefault(source, self.count)
        return html

    def simulator(self, html: str, name: str, title: str) -> str:
        link = f'<a href="../simulators/{name}.html">{escape(title)}</a>, a simulator'
        html = self.frame(html, link, "playable")
        self.shown.setdefault(name, self.count)
        return html

    def lead(self, href: str) -> str | None:
        """A link to a picture leads to its figure, which may come later in the text."""
        return f"#drawn:{href}" if (self.folder / href).suffix == ".svg" else self.go(href)

    def refer(self, html: str) -> str:
        """Once all figures have their numbers: links to them say the number."""

        def found(match: re.Match) -> str:
            source, words = match.groups()
            if source in self.drawn:
                number = self.drawn[source]
                return f'<a href="#figure-{number}">{words} (figure {self.chapter}.{number})</a>'
            return f'<a href="{self.go(source)}">{words}</a>' if self.go(source) else words

        return ELSEWHERE.sub(found, html)
