"""Count what each line of a cell loads and stores, in one more run of a case."""

from collections import Counter


class ByLine:
    """Watches every access of a run, and adds up the bytes that all lanes ask for."""

    def __init__(self):
        self.asked: Counter = Counter()

    def __call__(self, frame, lanes, kind: str, line: int) -> None:
        self.asked[lanes.tensor.name, kind, line] += lanes.offset.size * lanes.size * lanes.times

    def rows(self) -> list[dict]:
        return [
            {"tensor": tensor, "kind": kind, "line": line, "bytes": int(asked)}
            for (tensor, kind, line), asked in sorted(self.asked.items())
        ]
