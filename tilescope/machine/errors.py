"""How a run ends early: by what the answer did, or by what it would have used up."""


class KernelError(Exception):
    """What the answer did wrong; `facts` says where: tensor, program, axis, index."""

    def __init__(self, kind: str, message: str, line: int = 0, **facts):
        super().__init__(f"{message} (line {line})" if line else message)
        self.kind, self.message, self.line, self.facts = kind, message, line, facts

    def report(self) -> dict:
        return {
            "stage": "kernel",
            "kind": self.kind,
            "message": self.message,
            "line": self.line or None,
            **self.facts,
        }


class OverLimit(Exception):
    """More processor time, operations or memory than a run may have."""

    def __init__(self, what: str, message: str, line: int = 0):
        super().__init__(f"{message} (line {line})" if line else message)
        self.what, self.message, self.line = what, message, line

    def report(self) -> dict:
        return {
            "stage": "kernel",
            "kind": "OverLimit",
            "message": self.message,
            "line": self.line or None,
            "what": self.what,
        }
