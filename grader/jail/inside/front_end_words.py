"""Sentences of Python and of Triton's front end that send a learner the wrong way, said anew."""

import ast
import re

LOADS = "a block is read by tl.load(x_ptr + offs) and written by tl.store(y_ptr + offs, block)"
ANEW = (
    (
        r"`?_semantic`? argument must be provided outside of JIT functions",
        f"a pointer is no array, so x_ptr[offs] means nothing, and tl's functions work inside a @triton.jit function alone: {LOADS}",
    ),
    (
        r"'range' object has no attribute 'type'",
        "tl.range counts the turns of a loop; a block of the numbers 0, 1, 2 … is tl.arange(0, BLOCK)",
    ),
    (
        r"Loop-carried variable (?P<name>\w+) has initial type (?P<was>.+?) but is re-assigned to (?P<now>.+?) in loop",
        "{name} begins as {was} and becomes {now} in the loop; begin with what it becomes, as tl.zeros or tl.full give it",
    ),
    (
        r"error encountered during parsing",
        "the operations don't fit together: is the condition of each while one number compared with another, and no block?",
    ),
    (
        r"arange's range must be a power of 2",
        "a block has a power of two of numbers: round up with triton.next_power_of_2 in launch(p), and mask what is too many",
    ),
)
KINDS = {
    "int1": "a bool",
    "int8": "an 8-bit integer",
    "int32": "a 32-bit integer",
    "int64": "a 64-bit integer",
    "fp16": "a single fp16 number",
    "bf16": "a single bf16 number",
    "fp32": "a single fp32 number",
}
BLOCK = re.compile(r"<\[(?P<sides>[^\]]*)\], (?P<kind>\w+)>")
REPR = re.compile(r"^(?P<kind>[A-Z]\w*(?:Error|Exception))\((?P<text>['\"].*['\"])\)$", re.DOTALL)


def said_anew(text: str) -> str:
    """The sentence as a learner can use it; any other stays as it is."""
    text = unwrapped(text)
    for pattern, sentence in ANEW:
        if found := re.search(pattern, text, re.DOTALL):
            return sentence.format(**{name: kind_of(value) for name, value in found.groupdict().items()})
    return text


def unwrapped(text: str) -> str:
    """What stands in NameError('...'): an exception that was shown rather than told."""
    found = REPR.match(text.strip())
    if not found:
        return text
    try:
        told = ast.literal_eval(found["text"])
    except (ValueError, SyntaxError):
        return text
    return told if found["kind"] == "AssertionError" else f"{found['kind']}: {told}"


def kind_of(text: str) -> str:
    """Triton's "<['64', '32'], fp32>" as "a block of 64 x 32 in fp32"; a name stays."""
    if found := BLOCK.fullmatch(text.strip()):
        return f"a block of {' x '.join(re.findall(r'[0-9]+', found['sides']))} in {found['kind']}"
    return KINDS.get(text.strip(), text.strip())
