"""Frames survive a round trip, and no mangled frame gets further than BadFrame."""

import json

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


def header_alone(text: bytes) -> bytes:
    return frames.LENGTH.pack(len(text)) + text


def one_array(shape: list[int], nbytes: int) -> bytes:
    listed = {"name": "x", "dtype": "fp32", "shape": shape, "nbytes": nbytes}
    return header_alone(json.dumps({"arrays": [listed]}).encode()) + b"\x00" * nbytes


HOSTILE = {
    "a number of 5,000 digits": header_alone(b'{"a": %s, "arrays": []}' % (b"1" * 5000)),
    "a side beyond all memory, of nothing": one_array([0, 2**70], 0),
    "sides whose product is beyond all memory, of nothing": one_array([0, 2**63 - 1, 9], 0),
    "more axes than numpy has": one_array([1] * 70, 4),
    "a product of a million sides": one_array([9] * 400_000, 4),
    "a million empty lists": header_alone(b'{"a": [%s], "arrays": []}' % b",".join([b"[]"] * 600_000)),
    "nested beyond the stack": header_alone(b'{"a": %s, "arrays": []}' % (b"[" * 200_000)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_no_honest_program_sends_is_no_frame(name):
    """Soon, and not as an exception that would count as the grader's own."""
    with pytest.raises(frames.BadFrame):
        frames.unpack(HOSTILE[name])


def test_a_claimed_size_must_match_its_shape():
    with pytest.raises(frames.BadFrame):
        frames.unpack(block().replace(b'"nbytes": 48', b'"nbytes": 40'))
