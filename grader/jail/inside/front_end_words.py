"""Replace sentences of Python and of Triton's front end that mislead a learner, with the cure.

Each row of ANEW is (what the sentence says, what the line holds, the words). Groups of both patterns are filled in. Where
Triton names no line at all, UNPLACED looks for the line that it can't take.
"""

import ast
import re

LOADS = "a block is read by tl.load(x_ptr + offs) and written by tl.store(y_ptr + offs, block)"
FIXED = (
    "the length of a block is fixed when the kernel is compiled: make it a parameter with ': tl.constexpr', and give it in "
    'launch(p) under "constexprs"'
)
NUMPYS = {  # what numpy, torch and Python call it -> what a kernel writes
    "abs": "tl.abs(x)",
    "add": "a + b",
    "all": "tl.min(condition.to(tl.int32), axis=0)",
    "any": "tl.max(condition.to(tl.int32), axis=0)",
    "arange": "tl.arange(0, n)",
    "argmax": "tl.argmax(x, axis=0)",
    "argmin": "tl.argmin(x, axis=0)",
    "array": "tl.arange, tl.zeros or tl.full",
    "concatenate": "tl.join, tl.cat or one load more",
    "cumsum": "tl.cumsum(x, axis=0)",
    "divide": "a / b",
    "dot": "tl.dot(a, b)",
    "empty": "tl.zeros((n,), tl.float32)",
    "enumerate": "range(n)",
    "full": "tl.full((n,), value, tl.float32)",
    "int": "x.to(tl.int32)",
    "isnan": "x != x",
    "len": "the constexpr that made the block, such as BLOCK",
    "matmul": "tl.dot(a, b)",
    "max": "tl.max(x, axis=0)",
    "maximum": "tl.maximum(a, b)",
    "mean": "tl.sum(x, axis=0) / N",
    "min": "tl.min(x, axis=0)",
    "minimum": "tl.minimum(a, b)",
    "multiply": "a * b",
    "negative": "-x",
    "newaxis": "None: x[:, None] is a column, x[None, :] a row",
    "ones": "tl.full((n,), 1.0, tl.float32)",
    "pow": "x * x for a square, tl.exp2(y * tl.log2(x)) for any power",
    "power": "x * x for a square, tl.exp2(y * tl.log2(x)) for any power",
    "prod": "tl.reduce, or tl.exp(tl.sum(tl.log(x), axis=0))",
    "relu": "tl.maximum(x, 0.0)",
    "round": "tl.floor(x + 0.5)",
    "sigmoid": "tl.sigmoid(x)",
    "softmax": "tl.exp(x - tl.max(x, axis=0)), divided by its tl.sum",
    "sort": "tl.sort(x)",
    "sorted": "tl.sort(x)",
    "subtract": "a - b",
    "sum": "tl.sum(x, axis=0)",
    "swapaxes": "tl.trans(x)",
    "tanh": "2 * tl.sigmoid(2 * x) - 1",
    "transpose": "tl.trans(x)",
    "type": "x.dtype",
    "where": "tl.where(condition, a, b)",
    "zeros": "tl.zeros((n,), tl.float32)",
    "zip": "range(n)",
}
ATTRIBUTES = {
    "astype": "x.to(tl.float32)",
    "item": "tl.sum(x, axis=0), which makes one number of a block",
    "float": "x.to(tl.float32)",
    "int": "x.to(tl.int32)",
    "half": "x.to(tl.float16)",
    "mean": "tl.sum(x, axis=0) / N",
    "numel": "the constexpr that made the block, such as BLOCK",
    "size": "the constexpr that made the block, such as BLOCK",
    "transpose": "tl.trans(x)",
    "type": "x.to(tl.float32)",
}
NODES = {
    "Break": "a kernel's loop has no break: end it by the condition of a while, or by the number of its turns",
    "Continue": "a kernel's loop has no continue: put the rest of the turn under an if, or mask it",
    "Dict": "a kernel has no dicts: give each block a variable of its own",
    "Import": "imports stand above the kernel, and a kernel has only tl: torch and numpy don't work inside it",
    "ImportFrom": "imports stand above the kernel, and a kernel has only tl: torch and numpy don't work inside it",
    "Lambda": "a kernel has no lambda: write a function of its own with @triton.jit above the kernel",
    "Raise": 'a kernel raises nothing: tl.device_assert(condition, "words") checks while it runs',
    "Try": "a kernel has no try: nothing raises in it, and a mask keeps an access inside its tensor",
    "Set": "a kernel has no sets: give each block a variable of its own",
}
ANEW = (
    # numpy, torch and math inside a kernel
    (r"", r"\.view\(\s*(?:tl|np|torch)\.\w+\s*\)", "x.view gives a block another shape: its bits in another type are x.to(tl.int32, bitcast=True)"),
    (r"has no attribute|cannot convert|not supported for the input types|must have type|has no len|is not defined|_semantic|Cannot call @triton|gufunc|AxisError", r"\b(?P<package>np|torch)\.(?P<numpy>\w+)", "{package} doesn't work inside a kernel: for {package}.{numpy} write {numpys}"),
    (r"must be real number, not tensor", r"\b(?P<package>math)\.(?P<numpy>\w+)", "math.{numpy} takes one number of Python's, and this is a block: write {numpys}"),
    (r"min requires at least 2 values", r"\b(?P<which>max|min)\(", "{which}(a, b) compares two blocks number by number: the {which}imum of one block is tl.{which}(x, axis=0)"),
    (r"^(?:NameError: )?(?P<numpy>sum|abs|round|len|type|enumerate|zip|sorted|any|all|pow)\b.* is not defined", r"", "a kernel has no {numpy}(): write {numpys}"),
    (r"^(?:NameError: )?(?P<package>torch|np|numpy|math) is not defined", r"", "{package} doesn't work inside a kernel: its functions are in tl, such as tl.exp(x) and tl.sum(x, axis=0)"),
    (r"has no len\(\)", r"", "a block's length is the constexpr that made it, such as BLOCK: len() doesn't work on blocks"),
    (r"float\(\) argument must be", r"", "float() takes one number of Python's: x.to(tl.float32) makes floats of a whole block"),
    (r"int\(\) argument must be", r"", "int() takes one number of Python's: x.to(tl.int32) makes whole numbers of a whole block"),
    # a block is not an array or a list
    (r"unsupported tensor index: .*slice", r"", "a block can't be sliced: load only the part that is needed, x_ptr + start + tl.arange(0, n), or keep the lanes of a mask with tl.where"),
    (r"unsupported tensor index: constexpr\[(?P<place>-?\d+)\]", r"", "no single element can be read out of a block: load it by its pointer, or take tl.sum(tl.where(lanes == {place}, x, 0), axis=0)"),
    (r"unsupported tensor index", r"", "an index of a block is : or None: x[:, None] is a column, x[None, :] a row"),
    (r"__setitem__", r"", "[ ] = writes nothing in a kernel: tl.where(mask, new, old) changes some lanes of a block, and tl.store(y_ptr + offs, block) writes to memory"),
    (r"`?_semantic`? argument must be provided outside of JIT functions", r"", f"a pointer isn't an array, so x_ptr[offs] means nothing, and tl's functions work inside a @triton.jit function alone: {LOADS}"),
    (r"'tensor' object has no attribute '__pow__'", r"", "Triton has no operator **: x * x is the square, tl.sqrt(x) the root, and tl.exp2(y * tl.log2(x)) any power"),
    (r"'tensor' object has no attribute 'copy'", r"", "a block needs no copy: every operation makes a new one"),
    (r"'tensor' object has no attribute '(?:append|extend|insert)'", r"", "a block keeps its length: change it with tl.where, or store each part where it belongs"),
    (r"'tensor' object has no attribute 'values'", r"", "a block can't be taken apart into several names: give each its own expression"),
    (r"'tensor' object has no attribute '(?P<attribute>\w+)'", r"", "a block has no .{attribute}: write {attributes}"),
    (r"'tuple_type' object has no attribute", r"", "a list of numbers isn't a block: make one with tl.arange, tl.zeros, tl.full or tl.load"),
    (r"'tuple' object has no attribute append", r"", "a kernel has no lists that grow: keep one block in a variable and change it in each iteration"),
    (r"only tuple comprehensions", r"", "a kernel has no lists: 2 * x acts on all numbers of a block at once, without a loop"),
    (r"'Name' object has no attribute 'func'", r"^for ", "a kernel can't loop over a block: operations act on all its numbers at once, and a for takes range(start, stop, step)"),
    (r"'Name' object has no attribute 'func'", r"^with ", "a kernel has no with"),
    (r"'In' object|'NotIn' object", r"", "`in` doesn't work on blocks: compare with ==, and tl.max over the result says whether any is equal"),
    (r"Shape element \d+ must have type .constexpr\[int\]., got .constexpr\[.*tensor", r"", FIXED),
    (r"Boolean value of Tensor", r"", "an if takes one number, and a block has many: choose number by number with tl.where(condition, a, b)"),
    (r"simultaneous multiple comparison", r"[<>=][^()<>]*[&|][^()<>]*[<>=]", "Python's & and | bind tighter than <, so each comparison needs parentheses: write (a < x) & (x < b)"),
    (r"simultaneous multiple comparison", r"", "a < x < b is two comparisons: write (a < x) & (x < b)"),
    # types
    (r"Expected dtype .*fp32.* but got u?int\d+", r"\btl\.(?P<which>\w+)\(", "tl.{which} takes floats, and these are whole numbers: write .to(tl.float32) after them"),
    (r"invalid operands of type triton\.language\.(?:float|bfloat)", r"", "&, |, ^, << and >> take whole numbers, and one of these is a float: .to(tl.int32) makes whole numbers, .to(tl.int32, bitcast=True) gives the bits"),
    (r"unexpected type (?:fp\d+|bf16)", r"//", "// takes whole numbers, and one of these is a float: write / for a quotient, tl.floor(a / b) to round it down"),
    (r"acc\.type\.shape == ret_ty\.shape", r"", "the accumulator of tl.dot(a, b, acc) has the shape of the product and is in fp32: begin with tl.zeros((BLOCK_M, BLOCK_N), tl.float32), and round to 16 bits once, at the store"),
    (r"Input shapes should have M >= 1, N >= 1 and K >= (?P<k>\d+)", r"", "tl.dot multiplies a block of M x K by one of K x N, with K at least {k}: make the shorter side of the blocks longer, and mask the extra numbers with other=0.0"),
    (r"Input shapes should have M >= (?P<m>\d+), N >= (?P<n>\d+) and K >= (?P<k>\d+)", r"", "tl.dot multiplies a block of M x K by one of K x N, with M at least {m}, N at least {n} and K at least {k}: make the shorter side of the blocks longer, and mask the extra numbers with other=0.0"),
    (r"'dtype' object is not callable", r"", "a type isn't a function: x.to(tl.float32) turns a block into it"),
    (r"Cannot bitcast data-type of size (?P<one>\d+) to data-type of size (?P<other>\d+)", r"", "a bitcast keeps the bits, so both types need the same number: these have {one} and {other}. A plain .to() converts the number"),
    # functions of tl
    (r"'range' object has no attribute 'type'", r"", "tl.range counts the iterations of a loop. A block of the numbers 0, 1, 2 … is tl.arange(0, BLOCK)"),
    (r"arange\(\) missing 1 required positional argument", r"", "tl.arange takes both ends: tl.arange(0, BLOCK)"),
    (r"arange's range must be a power of 2", r"", "a block has a power of two of numbers: round up with triton.next_power_of_2 in launch(p), and mask the extra ones"),
    (r"arange's arguments must be of type tl\.constexpr", r"", FIXED),
    (r"'int' object is not iterable", r"\btl\.(?P<which>zeros|full|reshape|broadcast_to)\b", "a shape is a tuple, also of one axis: tl.{which} takes (BLOCK,)"),
    (r"missing a required argument: 'dtype'", r"\btl\.(?P<which>zeros|full)\b", "tl.{which} takes a type as well, such as tl.float32"),
    (r"module 'triton\.language' has no attribute '(?P<which>fp?(?:16|32|64))'", r"", "tl has no {which}: write tl.float16, tl.float32 or tl.float64"),
    (r"module 'triton\.language' has no attribute '(?P<numpy>\w+)'", r"", "tl has no {numpy}: write {numpys}"),
    (r"permute dims must have the same length", r"\.T\b|trans", "a block of one axis has nothing to transpose: x[:, None] is a column and x[None, :] a row"),
    (r"incompatible dimensions at index (?P<axis>\d+): (?P<one>\d+) and (?P<other>\d+)", r"", "the two blocks have {one} and {other} numbers along axis {axis}, where both need the same number, or one of them 1: x[:, None] makes a column, x[None, :] a row"),
    (r"Expected (?P<what>pointer|value|mask|other) argument to have shape (?P<one>\[.*\]) but got (?P<other>\[.*\])", r"", "the {what} has the shape {other} where the others have {one}: pointers, block and mask go together number by number"),
    (r"cannot convert None .* to tensor", r"", "this is None, not a block: is it set on every way through the kernel?"),
    (r"'str' object has no attribute 'type'", r"", "a kernel can't compute with a text"),
    (r"For loop bounds and step must all be ints", r"", "range takes single whole numbers: a block, or a float, can't say how often a loop runs"),
    (r"unsupported AST node type: (?P<node>\w+)", r"", "{nodes}"),
    (r"Loop-carried variable (?P<name>\w+) has initial type (?P<was>.+?) but is re-assigned to (?P<now>.+?) in loop", r"", "{name} begins as {was} and becomes {now} in the loop; begin with what it becomes, as tl.zeros or tl.full give it"),
)  # fmt: skip
WARNED_ANEW = (
    (r"Logical operators 'and' and 'or' are deprecated", "join masks with & and |, and put each comparison in parentheses: `and` and `or` still work between blocks, but Triton will drop them"),
)  # fmt: skip
UNPLACED = (
    (r"\btl\.(?P<which>sqrt|exp2?|log2?|sin|cos|erf|rsqrt|sigmoid|floor|ceil)\(\s*(?P<number>-?\d+)\s*\)", "tl.{which} takes floats, and {number} is a whole number: write {number}.0"),
    (r"^while\b", "a while takes one number, and a block has many: which lanes go on is for tl.where to say"),
    (r"\bif\b.*\belse\b", "a if condition else b takes one number as its condition, and a block has many: write tl.where(condition, a, b)"),
)  # fmt: skip
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
SHAPE = re.compile(r"\[(?:'constexpr\[\d+\]'(?:, )?)+\]")
REPR = re.compile(r"^(?P<kind>[A-Z]\w*(?:Error|Exception|Impl))\((?P<text>['\"].*['\"])\)$", re.DOTALL)


def said_anew(text: str, code: str = "") -> str:
    """Return a known sentence in words for a learner, and any other unchanged. `code` is the sentence's line."""
    text = unwrapped(text)
    for pattern, held, sentence in ANEW:
        found, line = re.search(pattern, text, re.DOTALL), re.search(held, code)
        if found and line:
            return filled(sentence, {**line.groupdict(), **found.groupdict()}) or text
    return text


def warned_anew(text: str) -> str:
    """Return a known warning in words for a learner, and any other unchanged."""
    return next((words for pattern, words in WARNED_ANEW if re.search(pattern, text)), text)


def unplaced(lines: list[tuple[int, str]]) -> tuple[int, str] | None:
    """Return the first line of a kernel that Triton's parser refuses without naming a line, and why."""
    for number, code in lines:
        for pattern, sentence in UNPLACED:
            if found := re.search(pattern, code.strip()):
                return number, filled(sentence, found.groupdict())
    return None


def filled(sentence: str, words: dict[str, str]) -> str:
    """Return the sentence with its words filled in, or an empty text if the name is unknown."""
    words = {name: kind_of(value) for name, value in words.items()}
    if "{numpys}" in sentence:
        words["numpys"] = NUMPYS.get(
            words["numpy"], f"tl.{words['numpy']}" if "package" in words else "what tl has for it"
        )
    if "{attributes}" in sentence:
        words["attributes"] = ATTRIBUTES.get(
            words["attribute"], "what tl has for it, a function of the block"
        )
    if "{nodes}" in sentence:
        words["nodes"] = NODES.get(words["node"], "")
    return sentence.format(**words)


def unwrapped(text: str) -> str:
    """Return the text inside NameError('...'), an exception that was printed by repr."""
    found = REPR.match(text.strip())
    if not found:
        return text
    try:
        told = ast.literal_eval(found["text"])
    except (ValueError, SyntaxError):
        return text
    return (
        told
        if found["kind"] in ("AssertionError", "IncompatibleTypeErrorImpl")
        else f"{found['kind']}: {told}"
    )


def kind_of(text: str) -> str:
    """Return Triton's "<['64', '32'], fp32>" as "a block of 64 x 32 in fp32". A name stays."""
    if found := BLOCK.fullmatch(text.strip()):
        return f"a block of {' x '.join(re.findall(r'[0-9]+', found['sides']))} in {found['kind']}"
    if SHAPE.fullmatch(text.strip()):
        return " x ".join(re.findall(r"[0-9]+", text))
    return KINDS.get(text.strip(), text.strip())
