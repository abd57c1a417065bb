"""Configure nbgrader on a student's server: the course, and the folder where its labs and hand-ins meet."""

import os

c = get_config()  # noqa: F821, given by traitlets

c.CourseDirectory.course_id = "tile-by-tile"
c.Exchange.root = os.environ["NBGRADER_EXCHANGE"]
c.Exchange.path_includes_course = True  # ~/tile-by-tile/LAB, from where ../../course are the lessons
