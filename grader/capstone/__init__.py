"""Run the capstone's step. A learner's answers of all labs fill the slots of one decode step, which is counted, timed
and made to speak.

`from grader.capstone import Capstone` is all that its notebook needs.
"""


def __getattr__(name: str):
    if name == "Capstone":
        from grader.capstone.step import Capstone

        return Capstone
    raise AttributeError(f"grader.capstone has no {name!r}, only Capstone")
