"""JupyterLab as `make lab` starts it."""

from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection

c = get_config()  # noqa: F821, given by traitlets


class PromptConnection(ZMQChannelsWebsocketConnection):
    """Sends each message at once: else a widget's answer, which follows the kernel's short "busy", waits
    until the browser has acknowledged that one, and a browser may take 40 ms to do so."""

    def connect(self):
        self.websocket_handler.set_nodelay(True)
        return super().connect()


c.ServerApp.kernel_websocket_connection_class = PromptConnection

c.LabApp.default_url = "/lab/tree/course/start.ipynb"
c.ServerApp.allow_root = True  # in a container there is often nobody else
# Texts are turned into notebooks by the build alone: pairing in the server would write answers into copies.
c.ServerApp.jpserver_extensions = {"jupyterlab_jupytext": False}
c.ContentsManager.pre_save_hook = "grader.notebooks.saving.keep_built"
