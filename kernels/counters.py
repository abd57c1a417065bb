"""Count the programs that have arrived. A counter is zero before a launch and zero again afterwards, because the last
program resets the counter.

Launches that may overlap need counters of their own. Launches of one stream follow each other, and share. Every
launch that a graph captures gets its own out of a store that was filled with zeros before, because a graph may be
replayed while anything else runs. A launch outside a capture renews a store that is half used up. If there is no
store yet, or one capture uses it up, the graph fills the counters itself, at the cost of one more node.
"""

import threading

import torch
from triton.runtime import driver

STORED = 2**20  # counters (4 MB), one per block of tokens, or part of a tile, in captured launches
LEAST = 1024


class Counters:
    """Hold the counters of one device."""

    def __init__(self, device):
        self.device = device
        self.by_stream: dict[int, torch.Tensor] = {}
        self.store, self.used = None, 0
        self.former = []  # stores that captured graphs still count in

    def take(self, blocks: int, stream: int = 0, capturing: bool = False) -> torch.Tensor:
        """Return at least `blocks` zeros, int32."""
        if capturing:
            return self._own(blocks)
        if self.store is None or self.used > STORED // 2:
            self.former += [self.store] if self.used else []
            self.store, self.used = self._zeros(STORED), 0
        if len(self.by_stream.get(stream, ())) < blocks:
            self.by_stream[stream] = self._zeros(max(blocks, LEAST))
        return self.by_stream[stream]

    def _own(self, blocks: int) -> torch.Tensor:
        if self.store is None or self.used + blocks > len(self.store):
            return self._zeros(blocks)
        self.used += blocks
        return self.store[self.used - blocks : self.used]

    def _zeros(self, count: int) -> torch.Tensor:
        return torch.zeros(count, dtype=torch.int32, device=self.device)


_of_devices: dict = {}


class Listener(threading.local):
    """Hear which counters this thread's launches were given, (counters, blocks), in order to replay the launches."""

    heard: list | None = None


LISTENER = Listener()


def arrivals(device, blocks: int) -> torch.Tensor:
    """Return counters for a launch on the current stream."""
    heard, LISTENER.heard = LISTENER.heard, None  # the store's own work belongs to no launch
    try:
        given = _arrivals(device, blocks)
    finally:
        LISTENER.heard = heard
    if heard is not None:
        heard.append((given, blocks))
    return given


def _arrivals(device, blocks: int) -> torch.Tensor:
    counters = _of_devices.get(device)
    if counters is None:
        counters = _of_devices[device] = Counters(device)
    if device.type != "cuda":
        return counters.take(blocks)
    stream = driver.active.get_current_stream(device.index)
    return counters.take(blocks, stream, torch.cuda.is_current_stream_capturing())
