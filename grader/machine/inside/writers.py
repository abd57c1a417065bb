"""Find which line and which program stored each element of an output last, in one more run of a case."""

import numpy as np

from tilescope.machine.interpreter import Launch

from ..protocol import TOLD_OF_WRITERS


class Writers:
    """Watches every store of a run. Elements that nothing stores have -1."""

    def __init__(self, tensors: list):
        outputs = [one for one in tensors if one.role in ("out", "inout")]
        self.tensors = {one.name: np.full((3, one.extent), -1, np.int64) for one in outputs}
        self.launch = -1

    def begin(self, number: int, *given) -> Launch:
        """Note which launch begins, and make its Launch."""
        self.launch = number
        return Launch(number, *given)

    def __call__(self, frame, lanes, kind: str, line: int) -> None:
        rows = self.tensors.get(lanes.tensor.name)
        if rows is None or kind == "load":
            return
        at = lanes.element
        rows[0, at] = lanes.per_element(frame.programs)
        rows[1, at], rows[2, at] = line, self.launch

    def arrays(self) -> dict[str, np.ndarray]:
        """Return by output the program, the line and the launch that stored each element last."""
        return {
            f"{what}:{name}": rows[number]
            for name, rows in self.tensors.items()
            for number, what in enumerate(TOLD_OF_WRITERS)
        }
