"""A headless Chromium, wherever this machine has one, and a bare page for simulators without a notebook."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from widgets import static
from widgets.ahead import Answers
from widgets.answer import answer, spec
from widgets.declare import Declaration

ORIGIN = "http://simulators.test"
BUSY_MS = 120_000  # an upper bound for a busy machine: nothing sleeps so long
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
PAGE = """<!doctype html><html lang="en" data-theme="{theme}"><meta charset="utf-8"><title>Simulators</title>
<link rel="stylesheet" href="/scene.css">
<style>html {{ color-scheme: {theme}; background: {ground}; }} body {{ margin: 20px; width: {width}px; }}</style>
<body><script type="module">
import {{ mount }} from '/scene.js';
for (const [name, start] of {starts}) {{
  const heard = {{ answer: new Set(), ahead: new Set() }};
  const hear = what => callback => {{ heard[what].add(callback); return () => heard[what].delete(callback); }};
  mount(document.body.appendChild(document.createElement('div')), {{
    ...start,
    ask: async request => {{
      const got = JSON.parse(await window.answer(name, JSON.stringify(request)));
      for (const [what, told] of Object.entries({ahead} ? got : {{ answer: got }})) heard[what].forEach(callback => callback(told));
    }},
    listen: hear('answer'),
    ahead: {ahead} ? hear('ahead') : null,
  }});
}}
document.documentElement.dataset.mounted = 'true';
</script></body></html>"""


@contextmanager
def chromium(path: str | None = None) -> Iterator:
    """Return the Chromium at `path`, else the one that CHROMIUM or PATH names, else Playwright's own."""
    from playwright.sync_api import sync_playwright

    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    path = path or os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, headless=True, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


class BarePage:
    """A page without a notebook, that can be given other simulators, because a new one costs a second of both cores."""

    def __init__(self, browser, **context):
        self.page = browser.new_context(**context).new_page()
        self.page.set_default_timeout(BUSY_MS)
        self._answers: dict[str, Answers] = {}
        self._ahead, self._html = False, ""
        self.page.expose_function("answer", self._reply)
        self.page.route("**/*", self._serve)

    def _reply(self, name: str, request: str) -> str:
        told = self._answers[name].to(json.loads(request))
        return json.dumps(told if self._ahead else told["answer"])

    def _serve(self, route) -> None:
        path = route.request.url.removeprefix(ORIGIN)
        served = {
            "/": ("text/html", lambda: self._html),
            "/scene.js": ("text/javascript", static.javascript),
            "/scene.css": ("text/css", static.css),
        }
        kind, body = served.get(path, ("text/plain", str))
        route.fulfill(content_type=f"{kind}; charset=utf-8", body=body())

    def show(self, shown: list[tuple[Declaration, dict]], theme: str, width: int, ahead: bool) -> None:
        """Load the page again, with these simulators as they open."""
        self._answers = {declaration.id: Answers(declaration, **given) for declaration, given in shown}
        self._ahead = ahead
        starts = [
            (
                d.id,
                {
                    "spec": spec(d, given.get("start"), given.get("locked", False)),
                    "answer": answer(d, **given),
                },
            )
            for d, given in shown
        ]
        self._html = PAGE.format(
            theme=theme,
            width=width,
            ground="#ffffff" if theme == "light" else "#111111",
            ahead=json.dumps(ahead),
            starts=json.dumps(starts).replace("</", "<\\/"),
        )
        self.page.goto(f"{ORIGIN}/")
        self.page.locator("html[data-mounted]").wait_for(state="attached")


def window(width: int) -> dict:
    """Return the size of a window around a column of this width."""
    return {"width": width + 40, "height": 800}


def open_page(
    browser,
    shown: list[tuple[Declaration, dict]],
    theme: str = "light",
    width: int = 1130,
    ahead: bool = False,
    **context,
):
    """Open a page with these simulators, in a column as wide as JupyterLab's in a window of 1280.

    Each simulator comes with the keywords start, locked and measured of answer(). With `ahead`, Python also
    thinks of the steps that the next key may ask for, as it does in a notebook.
    """
    bare = BarePage(browser, **{"reduced_motion": "reduce", "viewport": window(width), **context})
    bare.show(shown, theme, width, ahead)
    return bare.page
