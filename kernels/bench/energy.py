"""Read what a call costs in joules, from the counter that NVIDIA's driver keeps."""

import time
from collections.abc import Callable

import torch

SECONDS, WARM = 0.4, 0.15  # of load, and before it
BURST = 0.01  # seconds of work between two looks at the counter, which moves every 20 to 100 ms


class Meter:
    """Hold the GPU's counter of joules. A driver that has none raises OSError."""

    def __init__(self, device: torch.device, seconds: float = SECONDS):
        self.seconds = seconds
        try:
            import pynvml

            pynvml.nvmlInit()
            # devices of this process may be fewer than the machine's, so ask by the name that both know
            uuid = f"GPU-{torch.cuda.get_device_properties(device).uuid}"
            self.handle = pynvml.nvmlDeviceGetHandleByUUID(uuid)
            self.counter = pynvml.nvmlDeviceGetTotalEnergyConsumption
            self.read()
        except Exception as why:  # a driver refuses in ways of its own
            raise OSError(f"the driver's counter of joules can't be read: {why}") from why

    def read(self) -> float:
        """Return joules since the driver was loaded."""
        return self.counter(self.handle) / 1e3

    def joules(self, replay: Callable[[], None], wait: Callable[[], None] | None = None) -> float:
        """Return the joules of one replay, back to back without a flush, between two ticks of the counter.

        The GPU's idle power is in it, as it is in the bill.
        """
        wait = wait or torch.cuda.synchronize
        each = self._many(replay, wait)
        runs = 0

        def until(moment: float) -> float:
            """Replay until the counter's first tick after a moment, and return the counter."""
            nonlocal runs
            before = self.read()
            while True:
                for _ in range(each):
                    replay()
                wait()
                runs += each
                now = self.read()
                if now != before and time.perf_counter() > moment:
                    return now
                before = now

        begin = until(time.perf_counter() + WARM)
        runs = 0
        end = until(time.perf_counter() + self.seconds)
        return (end - begin) / runs

    def _many(self, replay, wait) -> int:
        """Return how many replays fill a burst."""
        replay()
        wait()
        start = time.perf_counter()
        for _ in range(3):
            replay()
        wait()
        return max(1, int(3 * BURST / (time.perf_counter() - start)))
