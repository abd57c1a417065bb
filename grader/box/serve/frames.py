"""Pack one request or answer for a pipe: a length, a JSON header, then the raw bytes of its arrays.

Nothing is ever unpickled, and no memory is reserved for a length that the other side only claims.
"""

import json
import struct
from math import prod

import numpy as np

try:
    import ml_dtypes

    NARROW = [np.dtype(t) for t in (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2)]
except ImportError:  # in a browser's tab, the same names as in tilescope's machine
    NARROW = [np.dtype([(n, f"<u{size}")]) for n, size in (("bf16", 2), ("e4m3", 1), ("e5m2", 1))]

DTYPES = {
    "bool": np.dtype(bool),
    **dict(zip(("bf16", "fp8e4nv", "fp8e5"), NARROW, strict=True)),
    "fp16": np.dtype(np.float16),
    "fp32": np.dtype(np.float32),
    "fp64": np.dtype(np.float64),
    **{
        f"{sign}{bits}": np.dtype(f"{sign}nt{bits}" if sign == "i" else f"uint{bits}")
        for sign in "iu"
        for bits in (8, 16, 32, 64)
    },
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
LENGTH = struct.Struct("<Q")
MOST_HEADER_BYTES = 32 << 20
MOST_ITEMS = 1 << 20  # of all lists and objects of a header, each of which takes about 100 bytes once read
MOST_AXES = 32


class BadFrame(ValueError):
    pass


def dtype_name(array: np.ndarray) -> str:
    if array.dtype not in NAMES:
        raise BadFrame(f"dtype must be one of {', '.join(DTYPES)}, got {array.dtype}")
    return NAMES[array.dtype]


def pack(header: dict, arrays: dict[str, np.ndarray]) -> bytes:
    """Header and arrays as one block of bytes."""
    listed = [
        {"name": name, "dtype": dtype_name(a), "shape": list(a.shape), "nbytes": int(a.nbytes)}
        for name, a in arrays.items()
    ]
    text = json.dumps({**header, "arrays": listed}, allow_nan=False).encode()
    return b"".join(
        [LENGTH.pack(len(text)), text, *(np.ascontiguousarray(a).tobytes() for a in arrays.values())]
    )


def unpack(block: bytes) -> tuple[dict, dict[str, np.ndarray]]:
    """Undo pack. Every claim is checked against the bytes that really arrived."""
    try:
        (size,) = LENGTH.unpack_from(block)
        if size > min(len(block) - LENGTH.size, MOST_HEADER_BYTES):
            raise BadFrame("the header is longer than the frame, or than any may be")
        text = block[LENGTH.size : LENGTH.size + size]
        if sum(map(text.count, (b"[", b"{", b","))) > MOST_ITEMS:
            raise BadFrame("the header has more items than any may have")
        header = json.loads(text)
        if not isinstance(header, dict):
            raise BadFrame("the header must be an object")
        listed = header.pop("arrays")
        arrays, at = {}, LENGTH.size + size
        for entry in listed:
            dtype, shape, nbytes = DTYPES[entry["dtype"]], tuple(entry["shape"]), entry["nbytes"]
            if len(shape) > MOST_AXES or any(
                not isinstance(n, int) or not 0 <= n <= len(block) for n in shape
            ):
                raise BadFrame("an array has a shape that none may have")
            if nbytes != dtype.itemsize * prod(shape):
                raise BadFrame("an array does not have the size it claims")
            if at + nbytes > len(block):
                raise BadFrame("an array is cut off")
            arrays[str(entry["name"])] = np.frombuffer(block, dtype, nbytes // dtype.itemsize, at).reshape(
                shape
            )
            at += nbytes
    except BadFrame:
        raise
    except (struct.error, ValueError, OverflowError, LookupError, TypeError, RecursionError) as error:
        raise BadFrame(f"not a frame: {type(error).__name__}") from error
    if at != len(block):
        raise BadFrame("bytes left over after the last array")
    return header, arrays


def read_block(read) -> bytes | None:
    """Return the next block of a stream, by read(count), or None at the stream's end."""
    head = read(LENGTH.size)
    return read(LENGTH.unpack(head)[0]) if len(head) == LENGTH.size else None


def write_block(stream, block: bytes) -> None:
    stream.write(LENGTH.pack(len(block)))
    stream.write(block)
    stream.flush()
