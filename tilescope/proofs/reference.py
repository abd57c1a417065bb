"""What Triton's own interpreter makes of a launch, in a child process of its own: it patches Triton while it runs, and may
take for ever."""

import os
import signal
import tempfile
import time
from pathlib import Path

import numpy as np

SECONDS = 60.0


class Unable(Exception):
    """Triton's interpreter can't run this launch."""


def interpreted(kernel, grid, args: list, kwargs: dict, memories: list[np.ndarray]) -> list[np.ndarray]:
    """What the memories hold after Triton's interpreter ran the launch; here they are left as they are."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder, "memories")
        child = os.fork()
        if not child:
            run_and_leave(kernel, grid, args, kwargs, memories, result)
        wait(child)
        if not result.exists():
            error = Path(folder, "error")
            raise Unable(error.read_text() if error.exists() else f"it needs more than {SECONDS:g} s")
        raw, found, at = np.fromfile(result, np.uint8), [], 0
        for memory in memories:
            found.append(raw[at : at + memory.nbytes].view(memory.dtype))
            at += memory.nbytes
        return found


def run_and_leave(kernel, grid, args, kwargs, memories, result: Path) -> None:
    try:
        run(kernel, grid, args, kwargs)
        part = result.with_suffix(".part")
        with part.open("wb") as file:
            for memory in memories:
                file.write(np.ascontiguousarray(memory).view(np.uint8).tobytes())
        part.rename(result)
    except BaseException as error:
        words = " ".join(f"{type(error).__name__}: {error}".split())
        result.with_name("error").write_text(words[:300])
    finally:
        os._exit(0)


def run(kernel, grid, args, kwargs) -> None:
    from triton.runtime.interpreter import GridExecutor, InterpretedFunction
    from triton.runtime.jit import JITFunction

    JITFunction.__call__ = lambda self, *given, **named: InterpretedFunction(self.fn)(*given, **named)
    function = InterpretedFunction(kernel.fn)
    kwargs = {name: value for name, value in kwargs.items() if name in kernel.arg_names}
    with np.errstate(all="ignore"):
        GridExecutor(function.rewrite(), kernel.arg_names, grid)(*args, **kwargs)


def wait(child: int) -> None:
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        if os.waitpid(child, os.WNOHANG)[0]:
            return
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
