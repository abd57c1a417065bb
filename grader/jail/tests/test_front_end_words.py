"""What Python and Triton's front end say in their own words is said in a learner's."""

import pytest

from grader.jail import host
from grader.jail.inside.front_end_words import said_anew
from grader.jail.protocol import LowerRequest, ToldCase


@pytest.mark.parametrize(
    "text, said",
    [
        ("Did you forget to add @triton.jit ? (`_semantic` argument must be provided outside of JIT functions.)", "tl.load(x_ptr + offs)"),
        ("'range' object has no attribute 'type'", "tl.arange(0, BLOCK)"),
        (
            "Loop-carried variable h has initial type int32 but is re-assigned to <['64', '16'], fp32> in loop! Please",
            "h begins as a 32-bit integer and becomes a block of 64 x 16 in fp32 in the loop",
        ),
        ("NameError('offz is not defined')", "NameError: offz is not defined"),
        ("AssertionError(\"K must be a multiple of 16\")", "K must be a multiple of 16"),
        ("something else entirely", "something else entirely"),
    ],
)  # fmt: skip
def test_a_sentence_is_said_anew(text, said):
    assert said in said_anew(text) and "AssertionError(" not in said_anew(text)


LINES = {  # what somebody who knows numpy writes between load and store -> what is said of it
    "y = 2 * x + np.arange(BLOCK)": "np doesn't work inside a kernel: for np.arange write tl.arange(0, n)",
    "y = np.where(x > 0, x, 0)": "for np.where write tl.where(condition, a, b)",
    "y = np.transpose(x)": "for np.transpose write tl.trans(x)",
    "y = np.argmax(x)": "for np.argmax write tl.argmax(x, axis=0)",
    "y = np.matmul(x, x)": "for np.matmul write tl.dot(a, b)",
    "y = np.sort(x)": "for np.sort write tl.sort(x)",
    "y = np.exp(x)": "for np.exp write tl.exp",
    "y = np.multiply(2, x)": "for np.multiply write a * b",
    "y = x[np.newaxis, :]": "for np.newaxis write None: x[:, None] is a column",
    "y = math.sqrt(x)": "math.sqrt takes one number of Python's, and this is a block: write tl.sqrt",
    "y = torch.exp(x)": "torch doesn't work inside a kernel",
    "import torch": "imports stand above the kernel",
    "y = x - max(x)": "max(a, b) compares two blocks number by number: the maximum of one block is tl.max(x, axis=0)",
    "y = x - min(x)": "the minimum of one block is tl.min(x, axis=0)",
    "y = x - sum(x)": "a kernel has no sum(): write tl.sum(x, axis=0)",
    "y = abs(x)": "a kernel has no abs(): write tl.abs(x)",
    "y = x * len(x)": "a block's length is the constexpr that made it",
    "y = 2 * float(x)": "x.to(tl.float32) makes floats of a whole block",
    "y = 2 * int(x)": "x.to(tl.int32) makes whole numbers of a whole block",
    "y = x[0:32]": "a block can't be sliced",
    "y = x[1:]": "a block can't be sliced",
    "y = x * x[0]": "no single element can be read out of a block",
    "x[0] = 0.0": "[ ] = writes nothing in a kernel: tl.where(mask, new, old)",
    "y_ptr[offs] = x": "tl.store(y_ptr + offs, block) writes to memory",
    "y = x_ptr[offs]": "a pointer isn't an array",
    "if x > 0: x = 2 * x": "an if takes one number, and a block has many: choose number by number with tl.where",
    "while x > 0: x = x - 1": "a while takes one number, and a block has many",
    "y = 2 * x if x > 0 else x": "write tl.where(condition, a, b)",
    "y = tl.where(0 < x < 5, x, 0)": "write (a < x) & (x < b)",
    "y = tl.where(offs < 60 & offs > 2, x, 0)": "& and | bind tighter than <, so each comparison needs parentheses: write (a < x) & (x < b)",
    "y = tl.where((0 < x < 5) & (x > 1), x, 0)": "a < x < b is two comparisons",
    "a = tl.zeros((16, 16), tl.float16); y = tl.dot(a, a, a)": "is in fp32: begin with tl.zeros((BLOCK_M, BLOCK_N), tl.float32)",
    "a = tl.zeros((16, 8), tl.float16); y = tl.dot(a, tl.trans(a))": "K at least 16: make the shorter side of the blocks longer",
    "y = x ** 2": "Triton has no operator **: x * x is the square, tl.sqrt(x) the root",
    "y = x ** 0.5": "Triton has no operator **",
    "y = x @ x": "the product of two blocks is tl.dot(a, b)",
    "y = x * tl.sqrt(2)": "tl.sqrt takes floats, and 2 is a whole number: write 2.0",
    "y = x * tl.exp(1)": "tl.exp takes floats, and 1 is a whole number: write 1.0",
    "y = x * tl.sqrt(offs)": "tl.sqrt takes floats, and these are whole numbers: write .to(tl.float32)",
    "y = x.view(tl.int32)": "its bits in another type are x.to(tl.int32, bitcast=True)",
    "y = x.view(np.int32)": "its bits in another type are x.to(tl.int32, bitcast=True)",
    "y = x.astype(tl.float32)": "a block has no .astype: write x.to(tl.float32)",
    "y = x.copy()": "a block needs no copy",
    "y = x - x.mean()": "write tl.sum(x, axis=0) / N",
    "y = x.T": "a block of one axis has nothing to transpose",
    "y = x * [1, 2]": "a list of numbers isn't a block",
    "x = [x]; x.append(x)": "a kernel has no lists that grow",
    "y = [2 * v for v in x]": "a kernel has no lists: 2 * x acts on all numbers of a block at once",
    "for v in x: y = v": "a kernel can't loop over a block",
    "for i in range(x): y = x": "range takes single whole numbers",
    "y = x + (3 in x)": "`in` doesn't work on blocks",
    "print(x)": "print inside a kernel takes a label first",
    "y = x + tl.arange(0, 48)": "a block has a power of two of numbers",
    "y = x + tl.arange(0, tl.program_id(0))": "the length of a block is fixed when the kernel is compiled",
    "y = x + tl.zeros((tl.program_id(0),), tl.float32)": "the length of a block is fixed when the kernel is compiled",
    "y = x + tl.arange(BLOCK)": "tl.arange takes both ends",
    "y = x + tl.zeros(BLOCK, tl.float32)": "tl.zeros takes (BLOCK,)",
    "y = x + tl.zeros((BLOCK,))": "tl.zeros takes a type as well",
    "y = x + tl.range(0, BLOCK)": "is tl.arange(0, BLOCK)",
    "y = tl.float32(x)": "a type isn't a function: x.to(tl.float32)",
    "y = tl.tanh(x)": "tl has no tanh: write 2 * tl.sigmoid(2 * x) - 1",
    "y = x.to(tl.f32)": "tl has no f32: write tl.float16, tl.float32",
    "y = tl.mean(x)": "tl has no mean: write tl.sum(x, axis=0) / N",
    "y = x + tl.arange(0, 32)": "the two blocks have 64 and 32 numbers along axis 0",
    "y = x[:, None]; tl.store(y_ptr + offs, y)": "the pointer has the shape 64 where the others have 64 x 64",
    "y = x & 15": "&, |, ^, << and >> take whole numbers",
    "y = x // 2": "// takes whole numbers, and one of these is a float",
    "y = x.to(tl.int16, bitcast=True)": "a bitcast keeps the bits, so both types need the same number: these have 32 and 16",
    "y, z = 2 * x": "a block can't be taken apart into several names",
    "y = (lambda v: v)(x)": "a kernel has no lambda",
    "y = {'a': x}": "a kernel has no dicts",
    "assert_ = 1; y = None": "this is None, not a block",
}  # fmt: skip
KERNEL = """@triton.jit
def kernel_{number}(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs)
    y = 2 * x
    {line}
    tl.store(y_ptr + offs, y)


"""
LAUNCH = """def launch(p):
    return {"steps": [{"kernel": globals()[f"kernel_{p.N}"], "grid": (1,), "constexprs": {"BLOCK": 64}}]}
"""


@pytest.fixture(scope="module")
def found() -> dict[str, dict]:
    """Return what Triton's own front end made of each line: all of them in one cell, a case each."""
    cell = "".join(KERNEL.format(number=n, line=line) for n, line in enumerate(LINES)) + LAUNCH
    tensors = tuple(
        {"name": name, "dtype": "fp32", "shape": [64], "strides": [1], "axes": "n", "role": role}
        for name, role in (("x", "in"), ("y", "out"))
    )
    cases = [ToldCase(sizes={"N": n}, scalars={}, sm_count=16, tensors=tensors) for n in range(len(LINES))]
    _, lowered = host.lower(LowerRequest(cell, "launch", cases, 80))
    return dict(zip(LINES, lowered.plans, strict=True))


@pytest.mark.parametrize("line", LINES)
def test_a_line_of_numpy_in_a_kernel_is_told_its_cure(found, line):
    error = found[line]
    assert isinstance(error, dict), f"{line} must not compile"
    assert LINES[line] in error["message"], error["message"]
    of_kernel = list(LINES).index(line) * KERNEL.count("\n")
    assert error["line"] in (of_kernel + 6, of_kernel + 7), error


def test_numpy_questions_hear_nothing_of_kernels():
    """An error of plain Python keeps Python's own words."""
    outcome = host.call("def f(x):\n    return len(3) + x\n", "f", [[{"value": 1}]], {})
    assert "has no len()" in outcome.error["message"] and "block" not in outcome.error["message"]
