"""The figures of next_bottleneck, as its simulators give them."""

import pytest

from widgets.registry import find


def played(name, **inputs):
    simulator = find(name)
    return simulator.run(**simulator.inputs(inputs))


def speculative():
    """The source divides by 3.5 rounded, so its 10.3 ms are 10.2."""
    r = played("speculative_decoding", acceptance=0.78, drafts=5, draft_ms=0.8, step_ms=32)
    assert r.draft_s == pytest.approx(4e-3) and r.verify_s == 32e-3
    assert r.tokens == pytest.approx(3.5, rel=0.01)
    assert r.token_s == pytest.approx(10.3e-3, rel=0.01)
    assert r.speedup == pytest.approx(3.1, rel=0.01)


FIGURES = {"speculative": speculative}
