"""JupyterLab as `make lab` starts it."""

c = get_config()  # noqa: F821, given by traitlets

c.LabApp.default_url = "/lab/tree/course/start.ipynb"
c.ServerApp.allow_root = True  # in a container there is often nobody else
# Texts are turned into notebooks by the build alone: pairing in the server would write answers into copies.
c.ServerApp.jpserver_extensions = {"jupyterlab_jupytext": False}
c.ContentsManager.pre_save_hook = "grader.build.saving.keep_built"
