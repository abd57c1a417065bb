"""Say that an answer failed, or that no judge can tell, by raising an exception where it is seen."""


class Failed(Exception):
    """The answer failed. Holds the observed result, where to look, what feedback may reveal about a hidden case, and the
    one limit that was asked, if the part has many."""

    def __init__(
        self, came: str, look: str = "", *, told: str = "", asked: str = "", points: float = 0.0, **facts
    ):
        super().__init__(came)
        self.came, self.look, self.told, self.points, self.facts = came, look, told, points, facts
        self.asked = asked


class Refusal(Exception):
    """Say that the kernel's IR holds something an answer may not hold."""

    def __init__(self, message: str, line: int | None = None):
        super().__init__(message)
        self.line = line


class Unclear(Exception):
    """The judge can't tell, and the answer isn't to blame. The part stays open until it is judged again or a person
    has looked."""


class Waits(Exception):
    """Say that this system cannot judge a part, which has neither passed nor failed."""
