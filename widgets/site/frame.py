"""Write the parts that every page has, which are head, bar at the top, contents at the side, and way on."""

import json
from dataclasses import dataclass
from html import escape

COLOURS = ("b8450b", "d9762f", "0b7285", "2159c4", "1f7a3d", "8f1fb0", "5fa8d3", "d9a441", "626b79")
ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" aria-hidden="true">'
    + "".join(
        f'<rect x="{1 + 8 * (i % 3)}" y="{1 + 8 * (i // 3)}" width="6.5" height="6.5" rx="1.4" fill="#{colour}"/>'
        for i, colour in enumerate(COLOURS)
    )
    + "</svg>"
)
# Nothing but the page's own folder, whatever a lesson might hold. 'data:' is a picture drawn in the page.
POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "font-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'"
)
FOOT = (
    "Everything here runs inside your browser. The simulators are the course’s own Python models, on the core of "
    "Pyodide (MPL 2.0). Nothing is fetched from anywhere else and nothing is sent. Code under the MIT licence, text "
    "and pictures under CC BY 4.0. Text is set in Inter "
    '(<a href="{root}fonts/inter/LICENSE">SIL Open Font License</a>) and formulas in STIX Two Math '
    '(<a href="{root}fonts/LICENSE">the same</a>).'
)


@dataclass(frozen=True)
class Page:
    title: str
    description: str
    body: str
    contents: str  # the chapters, for the list next to the page
    kind: str  # 'cover', 'lesson', 'simulator' or 'labs', which decides the space for the list
    root: str = ""
    live: bool = False  # it holds a simulator
    picture: str = ""  # of a shared link, as a file in assets/shared


def _bar(root: str) -> str:
    """Return the few stops before the text, which are home, contents, search and theme."""
    return (
        f'<header class="top"><a class="brand" href="{root}index.html">{ICON}<span>Tile by Tile</span></a>'
        '<span class="where" aria-hidden="true"></span>'
        '<button type="button" class="tool menu" popovertarget="site-contents">Contents</button>'
        '<button type="button" class="tool search needs-script" aria-keyshortcuts="/">Search</button>'
        '<button type="button" class="tool theme needs-script"></button>'
        '<div class="read" aria-hidden="true"></div></header>'
    )


def html(page: Page) -> str:
    root = page.root
    picture = f"{root}assets/shared/{page.picture or 'course'}.png"
    live = f'<script type="module" src="{root}assets/live.js"></script>' if page.live else ""
    return f"""<!doctype html>
<html lang="en" data-root="{root}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="description" content="{escape(page.description)}">
<meta property="og:type" content="website">
<meta property="og:site_name" content="Tile by Tile">
<meta property="og:title" content="{escape(page.title)}">
<meta property="og:description" content="{escape(page.description)}">
<meta property="og:image" content="{picture}">
<meta name="twitter:card" content="summary_large_image">
<title>{escape(page.title)}</title>
<link rel="icon" href="{root}assets/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="{root}assets/scene.css">
<link rel="stylesheet" href="{root}assets/page.css">
<link rel="stylesheet" href="{root}assets/book.css">
<link rel="stylesheet" href="{root}assets/print.css" media="print">
<script src="{root}assets/theme.js"></script>
<script src="{root}assets/book.js" defer></script>
<script src="{root}assets/search.js" defer></script>
{live}
</head>
<body class="on-{page.kind}">
<a class="skip" href="#main">Skip to the content</a>
{_bar(root)}
<div class="spread">
<main id="main" tabindex="-1">
{page.body}
</main>
<nav id="site-contents" class="contents" popover aria-label="Contents">
{page.contents}</nav>
</div>
<footer class="bottom"><p>{FOOT.format(root=root)}</p></footer>
</body>
</html>
"""


def _way(before: tuple[str, str] | None, after: tuple[str, str] | None) -> str:
    """Link (address, title) of the pages before and after."""
    ways = ((before, "prev", "Previous"), (after, "next", "Next"))
    return "".join(
        f'<a class="{rel}" rel="{rel}" href="{way[0]}"><small>{word}</small> {escape(way[1])}</a>'
        for way, rel, word in ways
        if way
    )


def between(body: str, before: tuple[str, str] | None, after: tuple[str, str] | None) -> str:
    """Write the way back and on, at both ends of a page."""
    ends = [
        f'<nav class="turn {end}" aria-label="Previous and next, {end}">{_way(before, after)}</nav>'
        for end in ("top", "bottom")
    ]
    return f"{ends[0]}{body}{ends[1]}"


def moved(title: str, first: str, places: dict[str, str]) -> str:
    """Return a page at an old address, which leads to the first page, or from an old part (#name) to its new address."""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta http-equiv="refresh" content="0; url={first}">
<title>{escape(title)} has moved · Tile by Tile</title>
<link rel="canonical" href="{first}">
<script src="../assets/moved.js" data-places="{escape(json.dumps(places))}"></script>
</head>
<body>
<p><a href="{first}">{escape(title)}</a> is several pages now.</p>
</body>
</html>
"""
