"""nbgrader for this course: it keeps release, collection, gradebook and feedback; grader/ decides (its README).

Instructors who share a machine with their students set NBGRADER_EXCHANGE to a folder all can write to. The gradebook is
a SQLite file, gradebook.db; NBGRADER_GRADEBOOK names a PostgreSQL database instead, as postgresql://USER@HOST/NAME.
"""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT))  # so that the names below are found from any folder

c = get_config()  # noqa: F821, given by traitlets

c.CourseDirectory.course_id = "tile-by-tile"
c.CourseDirectory.root = str(ROOT)
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "labs"
# The texts beside the notebooks hold the answers: they must never be copied into labs/.
c.CourseDirectory.ignore = [".ipynb_checkpoints", "__pycache__", "*.pyc", "*.md", "README*"]
c.Exchange.root = os.environ.get("NBGRADER_EXCHANGE", str(ROOT / "work" / "exchange"))
if os.environ.get("NBGRADER_GRADEBOOK"):
    c.CourseDirectory.db_url = os.environ["NBGRADER_GRADEBOOK"]

# Collecting again takes newer hand-ins; a late one counts, and the class command says so.
c.ExchangeCollect.update = True

# Submissions come in as the instructor's notebook with the answers in it; the referee judges them; nothing is executed.
c.Autograde.exporter_class = "grader.classroom.exporter.SubmissionExporter"
c.Autograde.pre_convert_hook = "grader.classroom.set_aside.hook"
c.Autograde.autograde_preprocessors = [
    "grader.classroom.preprocessors.Judge",
    "nbgrader.preprocessors.LimitOutput",
    "grader.classroom.preprocessors.SaveGrades",
    "nbgrader.preprocessors.AssignLatePenalties",
    "nbgrader.preprocessors.CheckCellMetadata",
]

# Late work. Each day that has begun may cost a share of the points that were reached; uncomment the line for 10%.
c.AssignLatePenalties.plugin_class = "grader.classroom.late.Penalty"
# c.Penalty.percent_a_day = 10

# Feedback and formgrader's pages are whole by themselves, and a score says what is still missing from it.
c.HTMLExporter.filters = {"markdown2html": "grader.classroom.pages.markdown"}
c.GenerateFeedback.exporter_class = "grader.classroom.feedback.FeedbackExporter"
c.GenerateFeedback.preprocessors = [
    "grader.classroom.pages.Grades",
    "nbconvert.preprocessors.CSSHTMLHeaderPreprocessor",
]
