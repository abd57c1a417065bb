"""Run tasks in this very process where no box is possible. That is a browser's tab, which is a box of its own, or a
learner's Windows.

Nothing is held back and nothing is stopped here, so that only work at one's own pace is judged this way.
"""

import importlib
import os
import sys
import time

from grader.box.serve import frames
from grader.box.serve.printed import Printed
from grader.box.serve.reported import report_of

OURS = "tilescope"  # what a worker hides from an answer's Python, and others of this process still need


class Here:
    """Does what the programs of a worker do, one task at a time."""

    def __init__(self, worker, outcome: type):
        self.worker, self.outcome, self.module, self.all = worker, outcome, None, []

    def ask(self, task: dict, arrays: dict | None = None, limits=None):
        """Run a task. Its messages are packed and unpacked, as on the way into a box and out again."""
        started, cpu = time.monotonic(), time.process_time()
        module, printed = self._loaded(), Printed()
        task, arrays = packed(task, dict(arrays or {}))
        result = {}
        streams = sys.stdout, sys.stderr
        sys.stdout = sys.stderr = printed
        try:
            header, result = module.run(task, arrays)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            header = {"error": report_of(error)}
        finally:
            sys.stdout, sys.stderr = streams
        header = {**header, "printed": header.get("printed") or printed.text()}
        header, result = packed(header, result)
        took = {"seconds": time.monotonic() - started, "cpu_s": time.process_time() - cpu}
        return self.outcome(header, {name: result.pop(name).copy() for name in list(result)}, **took)

    def _loaded(self):
        """Return the worker's module, made ready once. Modules that it hides from an answer return afterwards."""
        if self.module is None:
            os.environ.update(self.worker.environment)
            for name in ("frames", "printed"):  # as a box finds them on its path
                sys.modules.setdefault(name, importlib.import_module(f"grader.box.serve.{name}"))
            self.module = importlib.import_module(self.worker.module)
            kept = {name: one for name, one in sys.modules.items() if name.split(".")[0] == OURS}
            self.module.prepare()
            sys.modules.update(kept)
        return self.module

    def stop(self) -> None:
        """Nothing runs on."""


def packed(header: dict, arrays: dict) -> tuple[dict, dict]:
    """Pack and unpack a message. Arrays go one by one and are taken out of `arrays`, because a tab has little
    memory."""
    header, found = frames.unpack(frames.pack(header, {}))
    for name in list(arrays):
        found |= frames.unpack(frames.pack({}, {name: arrays.pop(name)}))[1]
    return header, found
