"""Let submissions into nbgrader, which gets the instructor's notebook with the student's answers."""

from contextlib import contextmanager
from pathlib import Path

import nbformat
from nbconvert.exporters import NotebookExporter
from nbgrader.converters.base import NbGraderException

from grader import box
from grader.classroom import lock, transplant
from grader.classroom.jobs import job
from grader.classroom.open_safely import IntakeTrouble, Submitted, take_in

TRIES = 3
NOT_READ = "not_read"  # notebook metadata that says why a person must read this submission


def required_box(say) -> None:
    """NbGraderException where strangers' code could not be kept apart well enough."""
    try:
        job.require_box()
    except box.BoxError as error:
        say(str(error))
        raise NbGraderException(str(error)) from None


class SubmissionExporter(NotebookExporter):
    """nbgrader's notebook exporter, except for how it reads what a student handed in."""

    def __init__(self, **more):
        super().__init__(**more)
        required_box(self.log.error)
        with self._course_to_itself():  # before anything of an earlier entry is removed
            pass

    @contextmanager
    def _course_to_itself(self):
        try:
            with lock.held(Path(self.parent.coursedir.root), "nbgrader autograde"):
                yield
        except lock.Busy as busy:
            self.log.error(str(busy))
            raise NbGraderException(str(busy)) from None

    def from_filename(self, filename, resources=None, **more):
        with self._course_to_itself():
            if not self.parent._sanitizing:
                return super().from_filename(filename, resources, **more)
            return self._submitted(filename, resources, **more)

    def _submitted(self, filename, resources, **more):
        place = resources["nbgrader"]
        coursedir = self.parent.coursedir
        released = coursedir.format_path(coursedir.release_directory, ".", place["assignment"])
        lab = nbformat.read(Path(released) / f"{place['notebook']}.ipynb", as_version=4)
        notebook, said = fill(lab, Path(filename))
        for line in said:
            self.log.warning("%s: %s", filename, line)
        resources["metadata"] = {"name": place["notebook"], "path": str(Path(filename).parent)}
        return self.from_notebook_node(notebook, resources, **more)


def fill(lab, path: Path):
    """Return (the lab with the answers of the submission at `path`, remarks about it)."""
    submitted, trouble = Submitted(), ""
    for _ in range(TRIES):
        try:
            submitted, trouble = take_in(path, transplant.asked(lab)), ""
            break
        except IntakeTrouble as error:
            trouble = f"{path.name} was not read, by no fault of its writer: {error}"
    notebook, said = transplant.transplant(lab, Submitted(trouble=trouble) if trouble else submitted)
    notebook = nbformat.from_dict(notebook)
    if trouble or submitted.trouble:
        notebook.metadata[NOT_READ] = trouble or submitted.trouble
    return notebook, said
