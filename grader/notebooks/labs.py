"""solutions/ -> labs/ through nbgrader's own generate_assignment, with no gradebook and no noise."""

import logging
import warnings
from pathlib import Path

CONFIG = Path(__file__).parents[2] / "nbgrader_config.py"


def _config(root: Path):
    """nbgrader_config.py, for the course under `root`."""
    from traitlets.config import Config
    from traitlets.config.loader import PyFileConfigLoader

    config = Config(PyFileConfigLoader(CONFIG.name, path=str(CONFIG.parent)).load_config())
    config.CourseDirectory.root = str(root)
    config.CourseDirectory.assignment_id = "*"
    config.SaveCells.enabled = False
    config.GenerateAssignment.no_database = True
    config.GenerateAssignment.force = True
    return config


def stubs(root: Path) -> set[str]:
    """Return the lines that replace a removed solution."""
    from nbgrader.preprocessors import ClearSolutions

    clear = ClearSolutions(config=_config(root))
    return {
        line.strip() for stub in (clear.code_stub["python"], clear.text_stub) for line in stub.split("\n")
    }


class NotReleased(Exception):
    """nbgrader refused to make a lab, in its own words."""


class _Last(logging.Handler):
    """Keeps what nbgrader complained of, to be said in one line."""

    def __init__(self):
        super().__init__(logging.ERROR)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said += record.getMessage().strip().splitlines()[-1:]


def release(root: Path) -> None:
    """Make root/labs from root/solutions. Without solutions, do nothing."""
    if not any((root / "solutions").glob("*/*.ipynb")):
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # SQLAlchemy's, on import
        from nbgrader.converters import GenerateAssignment, NbGraderException
        from nbgrader.coursedir import CourseDirectory

        config, log, heard = _config(root), logging.Logger("nbgrader.build"), _Last()
        log.addHandler(heard)
        coursedir = CourseDirectory(config=config, log=log)
        converter = GenerateAssignment(coursedir=coursedir, config=config, log=log)
        try:
            converter.start()
        except NbGraderException as error:
            raise NotReleased("; ".join(heard.said[:2]) or str(error)) from None
