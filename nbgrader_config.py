"""nbgrader for this course: it keeps release, collection, gradebook and feedback.

Instructors who share a machine with their students set NBGRADER_EXCHANGE to a folder all can write to.
"""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent

c = get_config()  # noqa: F821, given by traitlets

c.CourseDirectory.course_id = "tile-by-tile"
c.CourseDirectory.root = str(ROOT)
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "labs"
# The texts beside the notebooks hold the answers: they must never be copied into labs/.
c.CourseDirectory.ignore = [".ipynb_checkpoints", "__pycache__", "*.pyc", "*.md", "README*"]
c.Exchange.root = os.environ.get("NBGRADER_EXCHANGE", str(ROOT / "work" / "exchange"))
