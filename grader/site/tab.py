"""Serve a site and drive its labs in Chromium, for the tests and for times.py."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HEAP = "import pyodide_js\nint(pyodide_js._module.HEAPU8.length)"
START_MS = 240_000  # Python in a page, on a machine that does much else
CHECK_MS = 1_200_000


class Handler(SimpleHTTPRequestHandler):
    """Send the .gz of a file where there is one, and note the bytes."""

    sent: dict[str, int] = {}

    def log_message(self, *_):
        pass

    def do_GET(self):
        path = Path(self.translate_path(self.path))
        if not path.is_file():
            return super().do_GET()
        packed = path.with_name(f"{path.name}.gz")
        content = (packed if packed.exists() else path).read_bytes()
        self.sent[self.path] = len(content)
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(path))
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "max-age=600")
        if packed.exists():
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        self.wfile.write(content)


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, dict[str, int]]]:
    """Serve a folder. Yield (its address, the bytes of each file that was sent)."""
    sent: dict[str, int] = {}
    handler = type("Counting", (Handler,), {"sent": sent})
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", sent
    server.shutdown()
    server.server_close()


def processor_s(browser) -> float:
    """Return the seconds that all processes of a Chromium have computed, the same on a busy machine and an idle
    one."""
    session = browser.new_browser_cdp_session()
    try:
        rows = session.send("SystemInfo.getProcessInfo")["processInfo"]
    finally:
        session.detach()
    return sum(row["cpuTime"] for row in rows)


class Tab:
    """Drive a lab in a browser's page."""

    def __init__(self, page, base: str):
        self.page, self.base = page, base

    def open(self, lab: str, part: str = "") -> None:
        self.page.goto("about:blank")  # so that a change of the fragment after # alone loads the page too
        self.page.goto(f"{self.base}/labs/{lab}.html{part}")
        self.page.locator("html[data-lab=ready]").wait_for(state="attached", timeout=START_MS)

    def at(self, lab: str) -> None:
        """Open a lab unless it is open. Python restarts with each page, which takes seconds."""
        if not self.page.url.startswith(f"{self.base}/labs/{lab}.html"):
            self.open(lab)

    def live(self) -> None:
        self.page.locator("html[data-judge=live]").wait_for(state="attached", timeout=START_MS)

    def cell(self, name: str):
        return self.page.locator(f'.lab-cell[data-cell="{name}"]')

    def text(self, name: str) -> str:
        return self.page.evaluate("name => tileLab.editors.get(name).text", name)

    def write(self, name: str, text: str) -> None:
        self.page.evaluate("([name, text]) => { tileLab.editors.get(name).text = text; }", [name, text])

    def press(self, name: str, button: str) -> dict:
        """Press a cell's button, wait for Python, and return what the page then says."""
        cell = self.cell(name)
        cell.locator(f"button.{button}").click()
        cell.locator("button.stop[hidden]").wait_for(state="attached", timeout=CHECK_MS)
        out = cell.locator(".lab-out")
        return {
            "text": out.inner_text(),
            "verdict": out.get_attribute("data-verdict"),
            "seconds": float(out.get_attribute("data-seconds") or 0),
        }

    def answered(self, name: str, text: str) -> dict:
        self.write(name, text)
        return self.press(name, "check")

    def ask(self, **request) -> dict:
        """Ask the judge what the page would ask, and return its whole answer."""
        got = self.page.evaluate("request => tileLab.ask(request, () => {})", request)
        if "answer" not in got:
            raise RuntimeError(f"the tab's Python must answer, got {got}")
        return got["answer"]

    def memory_bytes(self) -> int:
        """Return the memory of the page's Python, which never shrinks, so it's the most that it has used."""
        return int(
            re.search(r"\d{7,}", self.ask(what="cell", cell="memory", source=HEAP, above=[])["html"])[0]
        )
