"""Type the messages between referee, builder and bench on both sides: named operations, plain data in headers, arrays
as bytes after them. Both programs are ours, and all they learn of an answer is IR."""

from dataclasses import dataclass, field, fields
from typing import ClassVar


class BadRequest(ValueError):
    """The referee sent something that isn't an operation."""


class BadReply(ValueError):
    """The other side answered something that wasn't requested."""


@dataclass(frozen=True)
class Kernel:
    """IR as the machine printed it, and the settings that it is compiled with."""

    ir: str
    num_warps: int
    num_stages: int

    @property
    def settings(self) -> dict:
        return {"num_warps": self.num_warps, "num_stages": self.num_stages}


# ---- the builder


@dataclass(frozen=True)
class BuildRequest:
    """Request machine code of these kernels, with the number to build in parallel."""

    kernels: tuple[Kernel, ...]
    capability: int
    jobs: int

    def header(self) -> dict:
        return {**vars(self), "kernels": [vars(kernel) for kernel in self.kernels]}

    @classmethod
    def of(cls, header: dict) -> "BuildRequest":
        kernels = tuple(Kernel(**row) for row in header["kernels"])
        return cls(kernels, header["capability"], header["jobs"])


@dataclass(frozen=True)
class Built:
    """One kernel of the request by its number, with the reason for missing machine code, or nothing."""

    number: int
    failed: str = ""


# ---- the bench


@dataclass(frozen=True)
class Step:
    """One launch: arguments by name, each a tensor's pointer or a number of the request."""

    kernel: Kernel
    grid: tuple[int, int, int]
    arguments: tuple[str, ...]

    def plain(self) -> dict:
        return {**vars(self), "kernel": vars(self.kernel)}


@dataclass(frozen=True)
class Ran:
    """A launch's side effects outside its outputs, and where."""

    gpu: str
    sms: int
    torch: str
    triton: str
    changed: list[str]  # inputs that were written, and memory around a tensor
    repeats: bool | None  # whether the same inputs gave the same bits again, None if not requested


@dataclass(frozen=True)
class Timed(Ran):
    """The same with its times paired with the baseline's."""

    quads: list[list[float]]  # two seconds of the answer and two of the bar in each
    sets: int  # of inputs, which push each other out of the L2
    differing: bool  # whether a timed launch wrote other results than the judged one


@dataclass(frozen=True)
class Trial:
    """Times once more, of what already runs."""

    quads: list[list[float]]


@dataclass(frozen=True)
class Failed:
    """The answer is at fault, because it doesn't run on this GPU."""

    why: str


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """One case, launched once on the inputs that come along."""

    operation: ClassVar[str] = "run"
    steps: tuple[Step, ...]
    numbers: dict[str, int | float]  # the value of each argument that isn't a pointer
    tensors: tuple[dict, ...]  # name, dtype, shape, strides, axes, role, storage_bytes
    scratch: dict[str, dict] = field(default_factory=dict)  # name -> shape, dtype, fill
    repeat: int = 0  # times that the same inputs must give the same bits again

    @property
    def replies(self) -> tuple[type, ...]:
        """Yield the replies, one after another."""
        return (Ran,)

    def header(self) -> dict:
        return {"operation": self.operation, **vars(self), "steps": [step.plain() for step in self.steps]}


@dataclass(frozen=True, kw_only=True)
class TimeRequest(RunRequest):
    """A request to time it paired with the topic's baseline."""

    operation: ClassVar[str] = "time"
    bar: str  # its name
    bars: str  # the module that holds it
    quads: int

    @property
    def replies(self) -> tuple[type, ...]:
        return (Timed,)


@dataclass(frozen=True, kw_only=True)
class CompareRequest(RunRequest):
    """A request to time it paired with itself, which shows how good the clock is."""

    operation: ClassVar[str] = "compare"
    quads: int
    trials: int = 1
    load: bool = False  # while another process keeps the same GPU busy

    @property
    def replies(self) -> tuple[type, ...]:
        return (Timed, *(Trial,) * (self.trials - 1))


Reply = Ran | Timed | Trial | Failed
READY = b"ready\n"  # what the bench says first, once its libraries are loaded
REQUESTS = {one.operation: one for one in (RunRequest, TimeRequest, CompareRequest)}
REPLIES = {one.__name__: one for one in (Ran, Timed, Trial, Failed)}


def request_of(header: dict) -> RunRequest:
    """The request in a header that came over the pipe."""
    kind = REQUESTS.get(header.get("operation"))
    if kind is None:
        raise BadRequest(f"operation must be one of {', '.join(REQUESTS)}, got {header.get('operation')!r}")
    given = {name: value for name, value in header.items() if name not in ("operation", "nonce")}
    steps = tuple(
        Step(Kernel(**row["kernel"]), tuple(row["grid"]), tuple(row["arguments"])) for row in given["steps"]
    )
    return kind(**{**given, "steps": steps})


def reply_header(reply: Reply) -> dict:
    return {"reply": type(reply).__name__, **vars(reply)}


def reply_of(header: dict) -> Reply:
    """Return the reply in a header. Raise BadReply if it isn't one, or lacks a field."""
    kind = REPLIES.get(header.get("reply"))
    if kind is None:
        raise BadReply(f"no reply: {str(header.get('reply'))[:40]!r}")
    names = {one.name for one in fields(kind)}
    if names - header.keys():
        raise BadReply(f"a {kind.__name__} without {', '.join(sorted(names - header.keys()))}")
    return kind(**{name: header[name] for name in names})


def require_reply(request: RunRequest, kind: type, reply: Reply, arrays: dict) -> None:
    """BadReply where it is not of the kind whose turn it is, or comes without every output, whole."""
    if type(reply) is not kind:
        raise BadReply(f"a {type(reply).__name__} where a {kind.__name__} was asked for")
    outputs = {t["name"]: t["storage_bytes"] for t in request.tensors if t["role"] != "in"}
    wanted = {} if kind is Trial else outputs
    if {name: array.nbytes for name, array in arrays.items()} != wanted:
        raise BadReply("other arrays than the outputs of this case")
