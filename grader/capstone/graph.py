"""Capture the step as one CUDA graph. Name the fillings that can't be in the graph, and the time that a replay
saves."""

from torch.overrides import TorchFunctionMode

from kernels import decode_step
from kernels.next_bottleneck.slots import Filling

WAITS = {"tolist", "item", "__int__", "__bool__", "__float__", "__index__", "nonzero", "cpu", "numpy"}


class Listening(TorchFunctionMode):
    """Hear which slot asks a tensor for its numbers."""

    def __init__(self):
        super().__init__()
        self.here, self.heard = "", {}

    def __torch_function__(self, function, types, args=(), kwargs=None):
        name = getattr(function, "__name__", "")
        if self.here and name in WAITS:
            self.heard.setdefault(self.here, name)
        return function(*args, **(kwargs or {}))


def asking(capstone) -> dict[str, str]:
    """Return slot -> call, for the learner's slots as a graph would hold them, out of one step of the speaking
    model."""
    ear = Listening()

    def told(name: str, one: Filling) -> Filling:
        def make(weight, shape):
            call = one.make(weight, shape)

            def heard(*given):
                ear.here = name
                try:
                    return call(*given)
                finally:
                    ear.here = ""

            return heard

        return Filling(make, one.source)

    own = {name: told(name, one) for name, one in capstone.own_in_a_graph.items()}
    fillings = {**capstone.fillings, **own}
    step = capstone._step(fillings)
    step.read(0, capstone.prompt[:-1])
    ear.heard.clear()  # a prompt is read eagerly
    with ear:
        step.next_of(step.decode([0], [capstone.prompt[-1]]), [0])
    return ear.heard


def captured(capstone) -> dict:
    """Time the step eagerly and as a graph. Slots that ask the host are filled by the course's kernels, or by
    PyTorch."""
    from kernels import timing

    asks = capstone.asks_the_host()
    own = {name: one for name, one in capstone.own_in_a_graph.items() if name not in asks}
    fillings = decode_step.fillings("course", **own)
    eager, step, plain = (
        capstone._timed_call(one) for one in (capstone.fillings, fillings, decode_step.fillings("plain"))
    )
    for call in (eager, step, plain):
        call()
    return {
        "eager_s": timing.elapsed(eager),
        "graph_s": timing.elapsed(timing.capture([step]).replay),
        "plain_graph_s": timing.elapsed(timing.capture([plain]).replay),
        "others": sorted(asks),
    }


def words(capstone) -> str:
    """Say which slots wait for the GPU, and what a replay saves."""
    asks = capstone.asks_the_host()
    said = [
        f"{slot} calls {call}() on a tensor: the host waits for its numbers" for slot, call in asks.items()
    ]
    said = said or ["No slot of yours waits for a number, so the whole step can be one graph."]
    if capstone.device == "cpu":
        found, launches = capstone.recorded(), sum(one.launches for one in capstone.measured().values())
        host = 1e6 * capstone.h200.launch_s * launches
        return "\n".join(
            [
                *said,
                f"Here is no GPU, so nothing is captured. Launched one by one, your {launches} launches would take the host {host:.0f} µs.",
                found.graph_words(),
            ]
        )
    found = capstone.captured()
    others = f", with other kernels for {', '.join(found['others'])}" if found["others"] else ""
    return "\n".join(
        [
            *said,
            f"{1e6 * found['eager_s']:.0f} µs eagerly, {1e6 * found['graph_s']:.0f} µs as one graph{others}.",
            f"Plain PyTorch as one graph: {1e6 * found['plain_graph_s']:.0f} µs. The bytes alone: {1e6 * capstone.bound_s:.0f} µs.",
            f"Share of the gap closed, both as graphs: {(found['plain_graph_s'] - found['graph_s']) / (found['plain_graph_s'] - capstone.bound_s):.0%}",
        ]
    )
