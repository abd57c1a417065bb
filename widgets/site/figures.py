"""Number and caption the figures of one lesson, in the order of its pages, and find them again for links."""

import re
from collections.abc import Callable
from html import escape

from widgets.site.contents import page_address, relative, root_of
from widgets.site.drawings import inline
from widgets.site.lessons import Text
from widgets.site.prose import _picture

ELSEWHERE = re.compile(r'<a href="#drawn:([^"]+)">(.*?)</a>', re.S)
STORY = re.compile(r'<a href="#set/(?:\w+\.)?(\w+)\?[^"]*"[^>]*>.*?</a>', re.S)


class Figures:
    def __init__(self, chapter: str, lead: Callable[[Text, str], str | None]):
        """Take `lead`, which returns where a link of a page leads in the site."""
        self.chapter, self.leads = chapter, lead
        self.count, self.drawn, self.shown = (
            0,
            {},
            {},
        )  # picture or simulator -> (its page's address, its number)

    def open(self, page: Text) -> None:
        """Begin a page. Its numbers go on from the last page's."""
        self.page, self.address = page, page_address(page)
        self.folder = page.path.parent

    def go(self, href: str) -> str | None:
        return self.leads(self.page, href)

    def _next(self) -> str:
        self.count += 1
        return f"{self.chapter}.{self.count}"

    def frame(self, inside: str, words: str, kind: str) -> str:
        """Return a figure with its number. `words` is the HTML next to the number."""
        number = self._next()
        caption = f"<figcaption><b>Figure {number}</b> {words}</figcaption>"
        return f'<figure class="{kind}" id="figure-{self.count}">{inside}{caption}</figure>\n'

    def picture(self, source: str, words: str) -> str:
        """Return a drawing inside the page itself, so that its colours follow the theme."""
        path = self.folder / source
        if path.suffix != ".svg" or not path.is_file():
            return _picture(self.go(source) or source, words)
        drawing = inline(path.read_text(encoding="utf-8"), f"drawing-{self.count + 1}")
        drawing = f'<div class="drawn" tabindex="0" role="group" aria-label="Drawing">{drawing}</div>'
        html = self.frame(drawing, escape(words), "drawing")
        self.drawn.setdefault((self.folder / source).resolve(), (self.address, self.count))
        return html

    def simulator(self, html: str, name: str, title: str) -> str:
        link = f'<a href="{root_of(self.address)}simulators/{name}.html">{escape(title)}</a>, a simulator'
        html = self.frame(html, link, "playable")
        self.shown.setdefault(name, (self.address, self.count))
        return html

    def lead(self, href: str) -> str | None:
        """Lead a link to a picture to its figure, which may come later in the text."""
        return f"#drawn:{href}" if (self.folder / href).suffix == ".svg" else self.go(href)

    def refer(self, html: str, page: Text) -> str:
        """Replace links to figures once all figures have their numbers, so that a page's links say them."""
        self.open(page)

        def found(match: re.Match) -> str:
            source, words = match.groups()
            if there := self.drawn.get((self.folder / source).resolve()):
                address, number = there
                to = "" if address == self.address else relative(address, self.address)
                return f'<a href="{to}#figure-{number}">{words} (figure {self.chapter}.{number})</a>'
            return f'<a href="{self.go(source)}">{words}</a>' if self.go(source) else words

        return STORY.sub(self._cited(), ELSEWHERE.sub(found, html))

    def _cited(self) -> Callable[[re.Match], str]:
        """Return a function that writes sentences that set a simulator. The first of a page says the figure's number."""
        said = set()

        def cited(match: re.Match) -> str:
            link, name = match[0], match[1]
            address, number = self.shown.get(name, ("", 0))
            if address != self.address or name in said:
                return link
            said.add(name)
            return f'{link} (<a href="#figure-{number}">figure {self.chapter}.{number}</a>)'

        return cited
