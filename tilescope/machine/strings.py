"""Read and write strings as MLIR quotes them, \\22 for a byte and UTF-8 between."""

import re

QUOTED = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
ESCAPE = re.compile(rb"\\(?:([0-9A-Fa-f]{2})|(.))", re.S)
PLAIN = {b"n": b"\n", b"t": b"\t"}


def unquoted(inside: str) -> str:
    if "\\" not in inside:
        return inside
    raw = ESCAPE.sub(_byte, inside.encode("utf-8", "surrogatepass"))
    return raw.decode("utf-8", "replace")


def _byte(found: re.Match) -> bytes:
    return bytes([int(found[1], 16)]) if found[1] else PLAIN.get(found[2], found[2])


def quoted(text: str) -> str:
    raw = text.encode("utf-8", "replace")
    return '"' + "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in raw) + '"'
