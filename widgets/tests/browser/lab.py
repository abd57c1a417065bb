"""A real JupyterLab with one notebook, driven until its kernel has run it."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import nbformat

ROOT = Path(__file__).parents[3]
# Lab leaves cells outside the window undrawn unless told otherwise; the news popup is off as for learners.
SETTINGS = {
    "@jupyterlab/notebook-extension/tracker.jupyterlab-settings": {"windowingMode": "none"},
    "@jupyterlab/apputils-extension/notification.jupyterlab-settings": {
        "fetchNews": "false",
        "checkForUpdates": False,
    },
}
PANEL = "window.jupyterapp?.shell?.currentWidget"
OPENED = f"() => Boolean({PANEL}?.context && {PANEL}?.sessionContext)"
READY = f"""async () => {{
  await {PANEL}.context.ready;
  await {PANEL}.sessionContext.ready;
  await {PANEL}.sessionContext.session.kernel.info;
}}"""
IDLE = f"() => {PANEL}.sessionContext.session?.kernel?.status === 'idle'"
# The first picture's time is taken in the page; the braces matter: a command's promise never settles in an evaluate.
RUN = """() => {
  const start = performance.now();
  const watch = new MutationObserver(() => {
    if (!document.querySelector('.tbt[data-revision]')) return;
    watch.disconnect();
    requestAnimationFrame(() => setTimeout(() => { window.firstPictureMs = performance.now() - start; }, 0));
  });
  watch.observe(document.body, { subtree: true, childList: true });
  window.jupyterapp.commands.execute('notebook:run-all-cells');
}"""


def notebook(folder: Path, cells: list[str]) -> str:
    """Writes it into a folder of the server's, under a name of its own; its path there.

    So no session of an earlier run is found again.
    """
    name = f"simulators-{time.time_ns():x}.ipynb"
    spec = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells], metadata=spec)
    nbformat.write(made, folder / name)
    return f"{folder.name}/{name}"


def free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def server(folder: Path, more: dict[str, str] | None = None) -> Iterator[str]:
    """JupyterLab on loopback over `folder` as `make lab` starts it, with a state of its own; `more`: variables."""
    state = folder / ".state"
    for name, setting in SETTINGS.items():
        file = state / "settings" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(setting))
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "JUPYTER_CONFIG_PATH": str(ROOT / ".jupyter"),
        "JUPYTER_CONFIG_DIR": str(state / "config"),
        "JUPYTER_DATA_DIR": str(state / "data"),
        "JUPYTER_RUNTIME_DIR": str(state / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(state / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(state / "workspaces"),
        "IPYTHONDIR": str(state / "ipython"),
        **(more or {}),
    }
    base = f"http://127.0.0.1:{(port := free_port())}"
    options = (
        "--no-browser",
        "--allow-root",
        "--ip=127.0.0.1",
        f"--port={port}",
        "--IdentityProvider.token=",
        "--ServerApp.password=",
        "--LabApp.expose_app_in_browser=True",
        f"--ServerApp.root_dir={folder}",
    )
    with (folder / "server.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", *options],
            stdout=log,
            stderr=log,
            env=environment,
            cwd=folder,
        )
        try:
            _wait_for(base, process, folder / "server.log")
            yield base
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


def _wait_for(base: str, process: subprocess.Popen, log: Path) -> None:
    for _ in range(900):
        if process.poll() is not None:
            break
        try:
            urllib.request.urlopen(f"{base}/api/status", timeout=2).close()
            return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"JupyterLab must start, got:\n{log.read_text()[-3000:]}")


def open_notebook(page, base: str, name: str) -> None:
    page.goto(f"{base}/doc/tree/{name}?reset")
    page.wait_for_function(OPENED, timeout=60_000)
    page.evaluate(READY)
    page.wait_for_function(IDLE, timeout=60_000)


def open_instead(page, name: str) -> None:
    """In the Lab that the page already shows, whatever it says: to load Lab itself takes seconds of both cores."""
    for said in page.locator(".jp-Dialog .jp-mod-accept").all():
        said.click()
    page.evaluate("() => { for (const one of [...window.jupyterapp.shell.widgets('main')]) one.dispose(); }")
    page.evaluate("path => { window.jupyterapp.commands.execute('docmanager:open', { path }); }", name)
    page.wait_for_function(
        f"path => {PANEL}?.context?.path === path && {PANEL}.sessionContext", arg=name, timeout=60_000
    )
    page.evaluate(READY)
    page.wait_for_function(IDLE, timeout=60_000)


def run_all(page) -> None:
    page.evaluate(RUN)


def run_each(page, pictures: int) -> None:
    """The first cell, then one cell after another, each when the picture of the one before is there.

    anywidget gives a view two seconds to come up, and fifty at once take longer on a busy machine.
    """
    run_cell(page, 0)
    for number in range(1, pictures + 1):
        run_cell(page, number)
        page.wait_for_function(
            "many => document.querySelectorAll('.tbt[data-revision]').length >= many",
            arg=number,
            timeout=60_000,
        )


def keep_sockets(page) -> None:
    """To be called before the page loads: its web sockets, for widget_messages."""
    page.sockets = []
    page.on("websocket", lambda opened: page.sockets.append(opened))


def widget_messages(page) -> tuple[list[str], list[str]]:
    """Two lists that fill from now on: the state keys of each widget message sent, and of each that came."""
    sent, came = [], []
    for one in page.sockets:
        one.on("framesent", lambda data: sent.extend(_state_keys(data)))
        one.on("framereceived", lambda data: came.extend(_state_keys(data)))
    return sent, came


def _state_keys(data) -> list[str]:
    """Of Jupyter's binary protocol: offsets of channel, header, parent, metadata, content, then these."""
    if not isinstance(data, bytes):
        return []
    count = int.from_bytes(data[:8], "little")
    offsets = [int.from_bytes(data[8 * i : 8 * i + 8], "little") for i in range(1, count + 1)]
    parts = [data[a:b] for a, b in zip(offsets, offsets[1:], strict=False)]
    if json.loads(parts[1])["msg_type"] != "comm_msg":
        return []
    told = json.loads(parts[4])["data"]
    return [",".join(sorted(told.get("state", {})))]


def wait_until_quiet(page) -> None:
    """Until the kernel is idle again, and Lab has heard it: nothing is on its way."""
    page.wait_for_function(IDLE)
    page.evaluate("() => new Promise(done => setTimeout(done, 200))")


def run_cell(page, number: int) -> None:
    """Starts one cell, and does not wait for it."""
    page.evaluate(
        "number => { const panel = window.jupyterapp.shell.currentWidget; panel.content.activeCellIndex = number;"
        " panel.content.deselectAll(); window.jupyterapp.commands.execute('notebook:run-cell'); }",
        number,
    )


def save_and_stop(page) -> None:
    """The notebook goes to disk, and its kernel away."""
    page.evaluate(f"async () => {{ await {PANEL}.context.save(); await {PANEL}.sessionContext.shutdown(); }}")


def set_theme(page, dark: bool) -> None:
    theme = "JupyterLab Dark" if dark else "JupyterLab Light"
    page.evaluate(
        "theme => { window.jupyterapp.commands.execute('apputils:change-theme', { theme }); }", theme
    )
    page.locator(f"body[data-jp-theme-light='{'false' if dark else 'true'}']").wait_for(state="attached")
    page.evaluate(
        "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done())))"
    )
