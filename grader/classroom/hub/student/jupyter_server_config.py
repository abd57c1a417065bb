"""A student's server has the list of assignments, and nothing of the instructor's tools."""

c = get_config()  # noqa: F821, given by traitlets

c.ServerApp.jpserver_extensions = {
    "jupyterlab_jupytext": False,
    "nbgrader.server_extensions.formgrader": False,
    "nbgrader.server_extensions.course_list": False,
    "nbgrader.server_extensions.validate_assignment": False,
    "nbgrader.server_extensions.assignment_list": True,
}
