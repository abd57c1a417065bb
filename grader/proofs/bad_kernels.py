"""List kernels as learners first write them, with mistakes that Triton's front end reports, as name -> the body of
`doubled`.

Both ways to Triton IR must report the same sentence and line. OFFS, X and STORE are the right lines.
"""

OFFS = "offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)"
X = "x = tl.load(x_ptr + offs)"
STORE = "tl.store(y_ptr + offs, 2 * x)"
HEAD, END = (
    "@triton.jit\ndef doubled(x_ptr, y_ptr, BLOCK: tl.constexpr):\n",
    """

def launch_doubled(p):
    return {"steps": [{"kernel": doubled, "grid": (p.N // 64,), "constexprs": {"BLOCK": 64}}]}
""",
)
HELPER = "@triton.jit\ndef helper(a, b):\n    return a + b\n\n\n"
BODIES = {
    "a block that is not a power of two": ("offs = tl.arange(0, BLOCK + 1)", X, STORE),
    "a range that ends before it begins": ("offs = tl.arange(BLOCK, 0)", X, STORE),
    "a range of a number known at run time": ("offs = tl.arange(0, tl.program_id(0))", X, STORE),
    "a word that Triton has not": (OFFS, "x = tl.lod(x_ptr + offs)", STORE),
    "a name that is not there": (OFFS, X, "tl.store(y_ptr + offs, 2 * z)"),
    "a pointer indexed like an array": (OFFS, "x = x_ptr[offs]", STORE),
    "a pointer assigned like an array": (OFFS, X, "y_ptr[offs] = 2 * x"),
    "a block indexed by a number": (OFFS, X, "tl.store(y_ptr, x[0])"),
    "a load of numbers": (OFFS, "x = tl.load(offs)", STORE),
    "a store of a pointer": (OFFS, X, "tl.store(y_ptr + offs, x_ptr + offs)"),
    "pointers added": (OFFS, "x = tl.load(x_ptr + y_ptr)", STORE),
    "pointers multiplied": (OFFS, "x = tl.load(x_ptr * 2 + offs)", STORE),
    "a pointer moved by a float": (OFFS, "x = tl.load(x_ptr + offs * 1.0)", STORE),
    "shapes that do not fit": (OFFS, X, "tl.store(y_ptr + offs, x + tl.arange(0, 32))"),
    "a mask of another shape": (OFFS, "x = tl.load(x_ptr + offs, mask=tl.arange(0, 32) < 8)", STORE),
    "an other= without a mask": (OFFS, "x = tl.load(x_ptr + offs, other=0.0)", STORE),
    "a store of a row into one number": (OFFS, X, "tl.store(y_ptr, x)"),
    "an axis that is not there": (OFFS, X, "tl.store(y_ptr, tl.sum(x, axis=1))"),
    "a third program axis too many": ("offs = tl.program_id(3) + tl.arange(0, BLOCK)", X, STORE),
    "a product of rows": (OFFS, X, "tl.store(y_ptr + offs, tl.dot(x, x))"),
    "a product whose sides differ": (
        OFFS,
        X,
        "a = tl.zeros((16, 32), tl.float32)",
        "tl.store(y_ptr, tl.sum(tl.dot(a, a)))",
    ),
    "the operator @": (OFFS, X, "a = tl.zeros((16, 16), tl.float32)", "tl.store(y_ptr, tl.sum(a @ a))"),
    "a reshape of another size": (OFFS, X, "tl.store(y_ptr + offs, tl.reshape(x, (16, 16)))"),
    "a view that broadcasts what it can't": (OFFS, X, "tl.store(y_ptr + offs, tl.broadcast_to(x, (32, 64)))"),
    "a while over a block": (OFFS, X, "while x > 0:", "    x = x - 1", STORE),
    "a while over a number": (OFFS, X, "n = tl.program_id(0)", "while n:", "    n = n - 1", STORE),
    "an if over a block": (OFFS, X, "if x > 0:", "    x = x * 2", STORE),
    "a variable of one branch alone": (
        OFFS,
        X,
        "if tl.program_id(0) > 1:",
        "    z = x * 2",
        "tl.store(y_ptr + offs, z)",
    ),
    "a variable whose type the loop changes": (
        OFFS,
        "x = 0",
        "for i in range(0, tl.program_id(0)):",
        "    x = x + tl.load(x_ptr + offs)",
        STORE,
    ),
    "a variable whose shape the loop changes": (
        OFFS,
        "x = tl.zeros((32,), tl.float32)",
        "for i in range(0, tl.program_id(0)):",
        "    x = tl.load(x_ptr + offs)",
        STORE,
    ),
    "branches of two types": (
        OFFS,
        X,
        "if tl.program_id(0) > 1:",
        "    z = 1",
        "else:",
        "    z = 1.5",
        "tl.store(y_ptr + offs, x * z)",
    ),
    "break in a loop": (OFFS, X, "for i in range(8):", "    break", STORE),
    "a list of blocks": (OFFS, X, "both = [i for i in range(x)]", STORE),
    "a generator": (OFFS, X, "x = sum(i for i in x)", STORE),
    "an exception": (OFFS, X, "try:", "    x = x * 2", "except ValueError:", "    pass", STORE),
    "raise": ("raise NotImplementedError",),
    "numpy in a kernel": (OFFS, X, "tl.store(y_ptr + offs, np.exp(x))"),
    "Python's own function on a block": (OFFS, X, "tl.store(y_ptr + offs, math.exp(x))"),
    "range as a block": ("offs = range(BLOCK)", X, STORE),
    "print as in Python": (OFFS, X, "print(x)", STORE),
    "an f-string in a print": (OFFS, X, 'tl.device_print(f"x {BLOCK}", x)', "tl.device_print(x)", STORE),
    "a static assertion": (OFFS, X, 'tl.static_assert(BLOCK == 32, "blocks of 32")', STORE),
    "a kernel that returns": (OFFS, X, "return x + undefined"),
    "helper of too few arguments": (OFFS, "x = helper(tl.load(x_ptr + offs))", STORE),
    "helper of too many arguments": (OFFS, "x = helper(1, 2, 3)", STORE),
    "a cast to no dtype": (OFFS, X, "tl.store(y_ptr + offs, x.to(float16))"),
    "a cast of another width by its bits": (OFFS, X, "tl.store(y_ptr + offs, x.to(tl.int16, bitcast=True))"),
    "bits of a float": (OFFS, X, "tl.store(y_ptr + offs, x & 1)"),
    "a shift of a float": (OFFS, X, "tl.store(y_ptr + offs, x >> 1)"),
    "exp of a whole number": (OFFS, X, "tl.store(y_ptr + offs, tl.exp(offs))"),
    "a size that is not a constexpr": (OFFS, X, "z = tl.zeros((tl.program_id(0),), tl.float32)", STORE),
    "a keyword that is not there": (OFFS, "x = tl.load(x_ptr + offs, masks=offs < 8)", STORE),
    "a modifier that is not there": (OFFS, 'x = tl.load(x_ptr + offs, cache_modifier=".xy")', STORE),
}


def source(name: str) -> str:
    """Write the cell of a bad kernel."""
    return HELPER + HEAD + "".join(f"    {line}\n" for line in BODIES[name]) + END
