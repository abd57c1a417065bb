"""Draw the picture of a shared link, a simulator's still under its question, 1200 by 630, by headless Chromium."""

import re

from widgets import static
from widgets.browser import chromium
from widgets.declare import Declaration
from widgets.registry import every
from widgets.site.frame import ICON
from widgets.site.stills import opening

WIDE, HIGH = 1200, 630
COURSE = "online_softmax"  # whose picture represents the whole course
SMALL = {
    "width": WIDE // 2,
    "height": HIGH // 2,
}  # laid out at half the size and drawn at twice, so that words are large
PAGE = """<!doctype html><html lang="en" data-theme="light"><meta charset="utf-8"><style>{css}
html, body {{ margin: 0; background: #fff; }}
.tbt {{ display: grid; grid-template-rows: auto 1fr; gap: 8px; width: 600px; height: 315px; margin: 0; padding: 14px 20px; border: 0; border-radius: 0; }}
.tbt .tbt-question {{ margin: 0; font-size: 19px; }}
.tbt .tbt-question svg {{ width: 18px; margin-right: 9px; vertical-align: -3px; }}
.tbt svg.tbt-scene {{ width: 100%; height: 100%; min-height: 0; }}
</style><div class="tbt"><h3 class="tbt-question">{icon}{question}</h3>{picture}</div></html>"""


class NoBrowser(Exception):
    """Say why no picture could be drawn."""


def _page(one: Declaration) -> str:
    return PAGE.format(css=static.css(), icon=ICON, question=one.question, picture=static.svg(opening(one)))


def drawn(browser, shown: list[Declaration]) -> dict[str, bytes]:
    """Place in the site -> PNG."""
    context = browser.new_context(viewport=SMALL, device_scale_factor=2)
    page, made = context.new_page(), {}
    for one in shown:
        page.set_content(_page(one))
        made[f"assets/shared/{one.name}.png"] = page.screenshot()
    context.close()
    return made


def pictures() -> dict[str, bytes]:
    """Return every simulator's picture, and one for all other pages."""
    try:
        with chromium() as browser:
            made = drawn(browser, every())
    except Exception as problem:  # whatever a browser that is not there, or does not start, says
        raise NoBrowser(str(problem).splitlines()[0]) from None
    return made | {"assets/shared/course.png": made[f"assets/shared/{COURSE}.png"]}


def addressed(made: dict[str, bytes], address: str) -> dict[str, bytes]:
    """Return the pages with the pictures' whole addresses, which most readers of shared links want."""
    if not address:
        return made
    whole = f'content="{address.rstrip("/")}/assets/shared/'.encode()
    return {
        name: re.sub(rb'content="(?:\.\./)*assets/shared/', whole, page) if name.endswith(".html") else page
        for name, page in made.items()
    }
