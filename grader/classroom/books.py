"""Keep the name under which instructors' scripts of this term open a gradebook. The code is in gradebooks.py."""

from grader.classroom.gradebooks import opened

__all__ = ["opened"]
