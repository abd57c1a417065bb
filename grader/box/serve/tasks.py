"""Do the common work of a worker's two programs: make its module ready, read requests and run one task."""

import importlib
import importlib.util
import os
import struct
import sys
import types

HERE = os.path.dirname(os.path.abspath(__file__))
CHUNK = 1 << 16
U32 = struct.Struct("<I")


class Ready:
    """A worker's module, with what requests and answers are made of."""

    def __init__(self, folder: str, module: str, shown: list[str]):
        sys.path.insert(0, HERE)
        stand_in_for_parents(folder, shown)
        self.frames, self.printed, self.reported = map(
            importlib.import_module, ("frames", "printed", "reported")
        )
        self.worker = importlib.import_module(module)
        self.worker.prepare()

    def requests(self, stream):
        """(seconds that it may take, block) of each request, until the other side ends."""
        while True:
            try:
                (wall,) = struct.unpack("<d", read_exactly(stream, 8))
                (size,) = self.frames.LENGTH.unpack(read_exactly(stream, self.frames.LENGTH.size))
                yield wall, read_exactly(stream, size)
            except EOFError:
                return

    def done(self, block: bytes, limit) -> memoryview:
        """Run one task and pack its result. `limit` learns of the task before the module does."""
        printed = sys.stdout = sys.stderr = self.printed.Printed()
        task, arrays = self.frames.unpack(block)
        limit(task)
        result = {}
        try:
            header, result = self.worker.run(task, arrays)
        except BaseException as error:
            header = {"error": self.reported.report_of(error)}
        header = {**header, "nonce": task["nonce"], "printed": header.get("printed") or printed.text()}
        try:
            return memoryview(self.frames.pack(header, result))
        except MemoryError as error:
            result.clear()
            found = {"error": self.reported.report_of(error), "nonce": task["nonce"]}
            return memoryview(self.frames.pack(found, {}))


def read_exactly(stream, count: int) -> bytes:
    data = stream.read(count)
    if len(data) != count:
        raise EOFError
    return data


def stand_in_for_parents(folder: str, shown: list[str]) -> None:
    """Make packages above and of what is shown bare names with this checkout's path, whatever else is installed.

    A box may not list what surrounds it, so a module that is shown alone is loaded by its path.
    """
    for path in shown:
        *parts, last = path.split("/")
        parts += [] if last.endswith(".py") else [last]
        for depth in range(1, len(parts) + 1):
            package = types.ModuleType(".".join(parts[:depth]))
            package.__path__ = [os.path.join(folder, *parts[:depth])]
            sys.modules.setdefault(package.__name__, package)
        if last.endswith(".py"):
            name = ".".join([*parts, last.removesuffix(".py")])
            spec = importlib.util.spec_from_file_location(name, os.path.join(folder, path))
            sys.modules[name] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(sys.modules[name])
            setattr(sys.modules[".".join(parts)], last.removesuffix(".py"), sys.modules[name])
