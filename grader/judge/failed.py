"""How a judge says that an answer failed, or that nobody can tell: by raising it where it is seen."""


class Failed(Exception):
    """The answer's fault: what came, where to look, and for a hidden case what feedback may say of it."""

    def __init__(self, came: str, look: str = "", *, told: str = "", points: float = 0.0, **facts):
        super().__init__(came)
        self.came, self.look, self.told, self.points, self.facts = came, look, told, points, facts


class Refusal(Exception):
    """The kernel's IR holds what an answer may not hold."""

    def __init__(self, message: str, line: int | None = None):
        super().__init__(message)
        self.line = line


class Unclear(Exception):
    """Nobody's fault: the part stays open until it is judged again or a person has looked."""


class Waits(Exception):
    """A part that this system cannot judge: neither passed nor failed."""
