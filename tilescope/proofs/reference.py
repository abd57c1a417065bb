"""Run a launch in Triton's own interpreter, in a child process,
because it patches Triton while it runs and may never end."""

import ast
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
    """Return the memories after Triton's interpreter ran the launch. The originals are left as they are."""
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

    def helper(self, *given, **named):
        with_libdevice(self.fn)
        return InterpretedFunction(self.fn)(*given, **named)

    JITFunction.__call__ = helper
    with_float_arguments()
    with_counters()
    with_libdevice(kernel.fn)
    function = InterpretedFunction(kernel.fn)
    kwargs = {name: value for name, value in kwargs.items() if name in kernel.arg_names}
    with np.errstate(all="ignore"):
        GridExecutor(function.rewrite(), kernel.arg_names, grid)(*args, **kwargs)


def with_float_arguments() -> None:
    """Triton's interpreter hands a float on as Python's, which has no `to`."""
    import triton.language as tl
    from triton.runtime import interpreter

    original = interpreter._implicit_cvt

    def converted(value):
        if type(value) is float:
            return tl.tensor(interpreter.TensorHandle(np.array([value], np.float32), tl.float32), tl.float32)
        return original(value)

    interpreter._implicit_cvt = converted


def with_counters() -> None:
    """Triton's interpreter makes a loop's counter Python's int, which has no `to`."""
    from triton.runtime.interpreter import ASTTransformer, FunctionRewriter

    class Counting(ASTTransformer):
        def visit_For(self, node):
            self.generic_visit(node)
            if isinstance(node.target, ast.Name) and "static_range" not in ast.unparse(node.iter):
                text = f"{node.target.id} = interpreter_semantic.to_tensor({node.target.id}, False)"
                node.body[:0] = ast.parse(text).body
            return node

    FunctionRewriter.ast_transformer = Counting()


def with_libdevice(function) -> None:
    """Give Triton's interpreter the libdevice functions that kernels use most, in numpy, because it has none."""
    import triton.language as tl
    from triton.runtime.interpreter import TensorHandle

    def by(compute):
        def run(x, *more, **_):
            data = compute(*(y.handle.data if isinstance(y, tl.tensor) else y for y in (x, *more)))
            if data.dtype.kind == "b":
                type = tl.block_type(tl.int1, x.shape) if x.shape else tl.int1
                return tl.tensor(TensorHandle(data, tl.int1), type)
            return tl.tensor(TensorHandle(data.astype(x.handle.data.dtype), x.dtype), x.type)

        return run

    for name, value in list(function.__globals__.items()):
        if getattr(value, "__module__", "").endswith("libdevice"):
            own = {"rsqrt": lambda x: 1 / np.sqrt(x), "pow": np.power, "div_rn": np.divide}
            compute = own.get(value.__name__) or getattr(np, value.__name__, None)
            if compute is not None:
                function.__globals__[name] = by(compute)


def wait(child: int) -> None:
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        if os.waitpid(child, os.WNOHANG)[0]:
            return
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
