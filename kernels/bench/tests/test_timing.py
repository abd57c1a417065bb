"""How times are taken: what is thrown away, what the L2 holds before, what a ratio is."""

import pytest
import torch

from kernels import timing


class Clock:
    """Time that passes when work runs and when somebody sleeps."""

    def __init__(self, monkeypatch):
        self.now, self.slept = 0.0, []
        monkeypatch.setattr(timing.time, "perf_counter", lambda: self.now)
        monkeypatch.setattr(timing.time, "sleep", self.sleep)
        monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)

    def sleep(self, seconds):
        self.now += seconds
        self.slept.append(seconds)

    def watch(self):
        """A millisecond at a clock that halves after the first 0.1 s of load."""
        self.now += 1e-3
        milliseconds = 1.0 if self.now < 0.1 else 2.0
        start = type("Event", (), {"elapsed_time": lambda _, end: milliseconds})()
        return start, None


def test_what_runs_before_the_clocks_settle_is_thrown_away(monkeypatch):
    watch = Clock(monkeypatch).watch
    cold = timing.interleave({"it": watch}, 0.05)["it"]
    settled = timing.interleave({"it": Clock(monkeypatch).watch}, 0.05, warm=0.2)["it"]
    assert min(cold) == pytest.approx(1e-3) and min(settled) == pytest.approx(2e-3)


def test_a_rested_round_follows_an_idle_stretch(monkeypatch):
    clock = Clock(monkeypatch)
    times = timing.interleave({"it": clock.watch}, 0.0, least=3, rest=1.2)["it"]
    assert len(times) == 3 and clock.slept == [1.2] * 3


def test_a_flush_reads_all_of_its_buffer_and_leaves_it_as_it_was(monkeypatch):
    properties = type("Properties", (), {"L2_cache_size": 1 << 16})
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: properties)
    monkeypatch.setattr(timing, "FLUSH_BYTES", 1 << 18)
    flush = timing.Flush("cpu")
    before = flush.buffer.clone()
    flush()
    assert torch.equal(flush.buffer, before) and flush.buffer.nbytes == 1 << 18
    assert float(flush.sum) == pytest.approx(float(before.double().sum()), rel=1e-3, abs=0.1)


def test_ratio_and_its_interval():
    base = [1.0, 2.0, 4.0, 3.0, 5.0, 1.5, 2.5]
    middle, low, high = timing.ratio([1.1 * t for t in base], base)
    assert low == pytest.approx(1.1) == pytest.approx(high) == pytest.approx(middle)
    noisy = [t * (1.1 + 0.01 * (-1) ** i) for i, t in enumerate(base)]
    middle, low, high = timing.ratio(noisy, base)
    assert 1.09 <= low <= middle <= high <= 1.11
