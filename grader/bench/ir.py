"""Which operations IR text from the jail may hold before it is loaded beside the clock."""

import re

DIALECTS = ("tt", "arith", "math", "scf", "cf", "ub")
REFUSED = {"tt.elementwise_inline_asm", "tt.extern_elementwise", "tt.print", "tt.assert"}
MODULE_WORDS = {"tt.func", "tt.return", "tt.call"}
MOST_BYTES = 4 << 20
OPERATION = re.compile(r"(?:^|=)\s*\"?([a-z_]+\.[a-z_0-9.]+)\"?", re.MULTILINE)


class BadIR(ValueError):
    pass


def hold(text: str) -> None:
    """Raises BadIR where the text holds an operation that no answer needs."""
    if len(text) > MOST_BYTES:
        raise BadIR(f"IR must be at most {MOST_BYTES >> 20} MiB, got {len(text) >> 20} MiB")
    stripped = re.sub(r"loc\((?:[^()]|\([^()]*\))*\)|#loc.*", "", text)
    for name in OPERATION.findall(stripped):
        if name in REFUSED or name.split(".")[0] not in DIALECTS:
            raise BadIR(f"IR may not hold {name}; write the kernel with tl operations only")
    for word in ("inline_asm", "llvm.", "nvvm.", "ptx"):
        if word in stripped:
            raise BadIR(f"IR may not hold {word}; write the kernel with tl operations only")
