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
    """The one at `path`, else the one CHROMIUM or PATH names, else Playwright's own."""
    from playwright.sync_api import sync_playwright

    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    path = path or os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, headless=True, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


def open_page(
    browser,
    shown: list[tuple[Declaration, dict]],
    theme: str = "light",
    width: int = 1130,
    ahead: bool = False,
    **context,
):
    """A page with these simulators, in a column as wide as JupyterLab's in a window of 1280.

    Each simulator comes with the keywords of answer(): start, locked, measured. With `ahead`, Python also
    thinks of the steps that the next key may ask for, as it does in a notebook.
    """
    context = {"reduced_motion": "reduce", "viewport": {"width": width + 40, "height": 800}, **context}
    page = browser.new_context(**context).new_page()
    by_name = {declaration.id: Answers(declaration, **given) for declaration, given in shown}

    def reply(name: str, request: str) -> str:
        told = by_name[name].to(json.loads(request))
        return json.dumps(told if ahead else told["answer"])

    starts = [
        (
            d.id,
            {"spec": spec(d, given.get("start"), given.get("locked", False)), "answer": answer(d, **given)},
        )
        for d, given in shown
    ]
    ground = "#ffffff" if theme == "light" else "#111111"
    html = PAGE.format(
        theme=theme,
        width=width,
        ground=ground,
        ahead=json.dumps(ahead),
        starts=json.dumps(starts).replace("</", "<\\/"),
    )
    served = {
        "/": ("text/html", html),
        "/scene.js": ("text/javascript", static.javascript()),
        "/scene.css": ("text/css", static.css()),
    }

    def serve(route):
        kind, body = served.get(route.request.url.removeprefix(ORIGIN), ("text/plain", ""))
        route.fulfill(content_type=f"{kind}; charset=utf-8", body=body)

    page.expose_function("answer", reply)
    page.route("**/*", serve)
    page.goto(f"{ORIGIN}/")
    page.locator("html[data-mounted]").wait_for(state="attached")
    return page
