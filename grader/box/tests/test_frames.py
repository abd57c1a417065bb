"""Frames survive a round trip, and no mangled frame gets further than BadFrame."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.box.serve import frames


def block():
    return frames.pack(
        {"nonce": "n", "x": [1, 2]}, {"a": np.arange(6.0).reshape(2, 3), "b": np.array(7, np.int32)}
    )


def test_round_trip():
    header, arrays = frames.unpack(block())
    assert header == {"nonce": "n", "x": [1, 2]}
    assert np.array_equal(arrays["a"], np.arange(6.0).reshape(2, 3)) and arrays["b"] == 7


@settings(max_examples=300, deadline=None)
@given(st.integers(0, len(block()) - 1), st.binary(min_size=1, max_size=9))
def test_mangled_bytes_are_refused_or_read_as_arrays_of_their_own_size(at, junk):
    mangled = bytearray(block())
    mangled[at : at + len(junk)] = junk
    try:
        _, arrays = frames.unpack(bytes(mangled))
    except frames.BadFrame:
        return
    assert sum(a.nbytes for a in arrays.values()) <= len(mangled)


@pytest.mark.parametrize(
    "junk", [b"", b"\x00" * 8, frames.LENGTH.pack(2**60) + b"{}", block()[:-1], block() + b"x"]
)
def test_lies_about_length_are_refused(junk):
    with pytest.raises(frames.BadFrame):
        frames.unpack(junk)


def test_a_claimed_size_must_match_its_shape():
    with pytest.raises(frames.BadFrame):
        frames.unpack(block().replace(b'"nbytes": 48', b'"nbytes": 40'))
