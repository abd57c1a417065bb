"""JupyterLab as `make lab` starts it; `make lab INSTRUCTOR=1` shows all folders, and nbgrader's tools (instructor/)."""

import asyncio
import os
import re
from pathlib import Path

from jupyter_server.services.contents.largefilemanager import AsyncLargeFileManager
from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection

c = get_config()  # noqa: F821, given by traitlets


class PromptConnection(ZMQChannelsWebsocketConnection):
    """Sends each message at once: else a widget's answer, which follows the kernel's short "busy", waits
    until the browser has acknowledged that one, and a browser may take 40 ms to do so."""

    def connect(self):
        self.websocket_handler.set_nodelay(True)
        return super().connect()


c.ServerApp.kernel_websocket_connection_class = PromptConnection


def show_progress(notebook: dict) -> None:
    """Put under the start page's cell what running it would show: how far the learner has come."""
    from nbformat.v4 import new_output

    from grader import best_record
    from widgets.progress import progress

    for cell in notebook["cells"]:
        if cell["cell_type"] == "code" and cell["source"].rstrip().endswith("progress(best_record)"):
            shown = progress(best_record)
            said = {"text/html": shown._repr_html_(), "text/plain": repr(shown)}
            cell["outputs"] = [new_output("display_data", said)]


class CourseContents(AsyncLargeFileManager):
    """The list on the left holds what a learner opens, in the course's order; the rest is there and opens by its path."""

    START = "course/start.ipynb"

    SHOWN = {"": {"course", "work"}, "course": {"simulators", ".ipynb"}}
    LESSON = re.compile(r"\d\d_\w+")  # a folder of pages
    HIDDEN = {"work": {"exchange", "records"}}

    def lists(self, folder: str, name: str) -> bool:
        wanted = {".ipynb"} if folder.startswith("course/") else self.SHOWN.get(folder)
        lesson = folder == "course" and self.LESSON.fullmatch(name)
        return (
            not wanted or lesson or not wanted.isdisjoint({name, Path(name).suffix})
        ) and name not in self.HIDDEN.get(folder, ())

    async def _dir_model(self, path, content=True):
        model, folder = await super()._dir_model(path, content=content), path.strip("/")
        if content and Path(self.root_dir, self.START).exists():
            model["content"] = [one for one in model["content"] if self.lists(folder, one["name"])]
        return model

    async def get(self, path, content=True, *args, **kwargs):
        model = await super().get(path, content, *args, **kwargs)
        if content and path.strip("/") == self.START and model["type"] == "notebook":
            try:
                await asyncio.to_thread(show_progress, model["content"])
            except Exception as error:  # the page opens all the same, and its cell can be run
                self.log.warning("progress is not shown on the start page: %s", error)
        return model


# Texts are turned into notebooks by the build alone: pairing in the server would write answers into copies.
left_out = ["jupyterlab_jupytext"]
if not os.environ.get("INSTRUCTOR"):
    c.ServerApp.contents_manager_class = CourseContents
    # Out of a learner's sight, and two seconds of each start.
    tools = ("assignment_list", "course_list", "formgrader", "validate_assignment")
    left_out += [f"nbgrader.server_extensions.{name}" for name in tools]
c.ServerApp.jpserver_extensions = dict.fromkeys(left_out, False)

c.LabApp.custom_css = True  # custom/custom.css: lines of a readable length, pictures that follow the theme
c.ServerApp.tornado_settings = {"static_custom_path": [str(Path(__file__).parent / "custom")]}
c.LabApp.default_url = "/lab/tree/course/start.ipynb"
c.ServerApp.allow_root = True  # in a container there is often nobody else
c.ContentsManager.pre_save_hook = "grader.notebooks.saving.keep_built"
