"""List the mistakes of *rotary cache*, a row each."""

import numpy as np

from grader.questions import Case
from grader.questions.draws import rounded
from grader.questions.families import computing, dense, family, one_stride, same_strides, within_limit
from grader.questions.rows import edited
from grader.topics.next_bottleneck.rotary_cache.cases import heads_of, normed, stored, turned

EPSILONS = (1e-6, 1e-5, 1e-3, 0.01, 0.1, 1.0)


def would(change):
    """Return `change(q, k, v, inputs, case)`, all three with heads as loaded. Stored values are rounded as their
    tensor is."""

    def wrong(inputs: dict, case: Case) -> dict:
        with np.errstate(all="ignore"):
            found = stored(inputs, case, *change(*heads_of(inputs, case), inputs, case))
            return {name: as_stored(values, name, case) for name, values in found.items()}

    return wrong


def as_stored(values, name: str, case: Case):
    return rounded(values, case.dtypes.get(name, case.dtype)).astype(np.float64)


def each(head_of):
    """Return the heads of q and of k as `head_of(heads, w, inputs, eps)` makes them, with v right."""

    def change(q, k, v, inputs, case):
        eps = case.scalars["eps"]
        return head_of(q, inputs["wq"], inputs, eps), head_of(k, inputs["wk"], inputs, eps), v

    return would(change)


def by_position(heads, inputs):
    return turned(heads, inputs["turns"], inputs["lens"] - 1)


def right(heads, w, inputs, eps):
    return by_position(normed(heads, w, eps), inputs)


def in_pairs(heads, w, inputs, eps):
    """Numbers 2 i and 2 i + 1 turned together, and left where they were."""
    x = normed(heads, w, eps)
    halves = np.concatenate([x[..., 0::2], x[..., 1::2]], axis=-1)
    a, b = np.split(by_position(halves, inputs), 2, axis=-1)
    return np.stack([a, b], axis=-1).reshape(x.shape)


def other_angles(change):
    """The right heads with other (cos, sin)."""

    def head_of(heads, w, inputs, eps):
        turns = np.concatenate(change(*np.split(inputs["turns"], 2, axis=-1)), axis=-1)
        return turned(normed(heads, w, eps), turns, inputs["lens"] - 1)

    return each(head_of)


def over_all_heads(heads, w, inputs, eps):
    mean = (heads**2).mean((-2, -1), keepdims=True)
    return by_position(heads / np.sqrt(mean + eps) * w.astype(np.float64), inputs)


def over_half(heads, w, inputs, eps):
    mean = 2 * (heads**2).mean(-1, keepdims=True)
    return by_position(heads / np.sqrt(mean + eps) * w.astype(np.float64), inputs)


def eps_outside(heads, w, inputs, eps):
    rms = np.sqrt((heads**2).mean(-1, keepdims=True))
    return by_position(heads / (rms + eps) * w.astype(np.float64), inputs)


def squares_in_16_bits(q, k, v, inputs, case):
    def head_of(heads, w):
        squares = rounded(heads**2, case.dtype).astype(np.float64).mean(-1, keepdims=True)
        return by_position(heads / np.sqrt(squares + case.scalars["eps"]) * w.astype(np.float64), inputs)

    return head_of(q, inputs["wq"]), head_of(k, inputs["wk"]), v


def rounded_before_the_turn(q, k, v, inputs, case):
    def head_of(heads, w):
        between = rounded(normed(heads, w, case.scalars["eps"]), case.dtype).astype(np.float64)
        return by_position(between, inputs)

    return head_of(q, inputs["wq"]), head_of(k, inputs["wk"]), v


def swapped_sources(q, k, v, inputs, case):
    eps = case.scalars["eps"]
    return right(q, inputs["wq"], inputs, eps), right(v, inputs["wk"], inputs, eps), k


def swapped_caches(inputs: dict, case: Case) -> dict:
    q, k, v = heads_of(inputs, case)
    eps = case.scalars["eps"]
    with np.errstate(all="ignore"):
        turned_k = right(k, inputs["wk"], inputs, eps)
        found = stored(inputs, case, right(q, inputs["wq"], inputs, eps), v, turned_k)
        return {name: as_stored(values, name, case) for name, values in found.items()}


def with_weights(q, k, v, inputs, case):
    eps = case.scalars["eps"]
    return right(q, inputs["wk"], inputs, eps), right(k, inputs["wq"], inputs, eps), v


def q_alone(change):
    """Return q right, and k from `change(k, w, inputs, eps)`."""

    def both(q, k, v, inputs, case):
        eps = case.scalars["eps"]
        return right(q, inputs["wq"], inputs, eps), change(k, inputs["wk"], inputs, eps), v

    return would(both)


def unwritten(name: str):
    """Right but for a cache that stays as it was."""
    whole = each(right)
    return lambda inputs, case: whole(inputs, case) | {name: inputs[name].astype(np.float64)}


@computing
def from_a_table(inputs: dict, case: Case) -> dict:
    """The right result with the nearest eps of a table."""
    eps = min(EPSILONS, key=lambda e: abs(np.log(e / case.scalars["eps"])))
    return each(lambda heads, w, given, _: right(heads, w, given, eps))(inputs, case)


AT_X = "at_x = x_ptr + row * stride_xt + (head * 2 * HALF + offs) * stride_xc"
LOAD_A = "a = tl.load(at_x, mask=mask, other=0.0)"
AT = "at = tl.load(lens_ptr + row * stride_lenst) - 1"
PAGE = "page = tl.load(table_ptr + row * stride_tablet + at // S * stride_tablel).to(tl.int64)"
SCALE = "scale = tl.rsqrt((tl.sum(a * a, 0) + tl.sum(b * b, 0)) / (2 * HALF) + eps)"
WEIGH_A = "a = a * scale * tl.load(w_ptr + offs, mask=mask, other=0.0).to(tl.float32)"
WEIGH_B = "b = b * scale * tl.load(w_ptr + HALF + offs, mask=mask, other=0.0).to(tl.float32)"
COS = "cos = tl.load(turn_ptr + offs * stride_turnsd, mask=mask, other=0.0)"
SIN = "sin = tl.load(turn_ptr + (HALF + offs) * stride_turnsd, mask=mask, other=0.0)"
TURN = "return a * cos - b * sin, b * cos + a * sin"
TURN_Q = "first, second = turned(a, b, wq_ptr, turn_ptr, stride_turnsd, eps, offs, mask, HALF)"
TURN_K = TURN_Q.replace("wq_ptr", "wk_ptr")
PUT_Q = "put(q_ptr + row * stride_qt + head * stride_qh, first, second, stride_qd, offs, mask, HALF)"
PUT_K = "put(k_ptr + page * stride_kp + (head - H) * stride_kh + slot * stride_ks, first, second, stride_kd, offs, mask, HALF)"
PUT_V = "put(v_ptr + page * stride_vp + (head - H - G) * stride_vh + slot * stride_vs, a, b, stride_vd, offs, mask, HALF)"
GRID = '"grid": (p.T, p.H + 2 * p.G)'
NAMES = """x_ptr, lens_ptr, table_ptr, turns_ptr, wq_ptr, wk_ptr, q_ptr, k_ptr, v_ptr, H, G, eps,
    stride_xt, stride_xc, stride_lenst, stride_tablet, stride_tablel, stride_turnsp, stride_turnsd,
    stride_qt, stride_qh, stride_qd, stride_kp, stride_kh, stride_ks, stride_kd, stride_vp, stride_vh, stride_vs, stride_vd,
    S, """
WALKS = f"""@triton.jit
def walk(T, {NAMES}HALF: tl.constexpr, BLOCK: tl.constexpr):
    first = tl.program_id(0) * 4
    for row in range(first, tl.minimum(first + 4, T)):
        for head in range(0, H + 2 * G):
            one_head(row.to(tl.int64), head, {NAMES}HALF, BLOCK)


"""

HEAD = "@triton.jit\ndef rotary_cache"

MISTAKES = (
    family(
        "no norm",
        "the heads of q and k are normed before they are turned",
        each(lambda heads, w, inputs, eps: by_position(heads, inputs)),
        edits=((WEIGH_A, "a = a + 0.0"), (WEIGH_B, "b = b + 0.0")),
    ),
    family(
        "one weight for both",
        "the keys have a weight of their own: multiply k by wk, not by wq",
        q_alone(lambda k, w, inputs, eps: right(k, inputs["wq"], inputs, eps)),
        edits=((TURN_K, TURN_K.replace("wk_ptr", "wq_ptr")),),
    ),
    family(
        "no weight",
        "the weights of the norm are missing",
        each(lambda heads, w, inputs, eps: right(heads, np.ones_like(w), inputs, eps)),
        edits=((WEIGH_A, "a = a * scale"), (WEIGH_B, "b = b * scale")),
    ),
    family(
        "the other's weight",
        "wq and wk are swapped: q is multiplied by wq, and k by wk",
        would(with_weights),
        edits=(
            (TURN_Q, TURN_Q.replace("wq_ptr", "w_ptr")),
            (TURN_K, TURN_K.replace("wk_ptr", "wq_ptr")),
            (TURN_Q.replace("wq_ptr", "w_ptr"), TURN_K),
        ),
    ),
    family(
        "no eps",
        "eps is missing under the root",
        each(lambda heads, w, inputs, eps: right(heads, w, inputs, 0.0)),
        edits=((SCALE, SCALE.replace(" + eps)", ")")),),
    ),
    family(
        "half of the mean",
        "the mean is over all D elements of a head: both halves are in the sum, so divide by D",
        each(over_half),
        edits=((SCALE, SCALE.replace("(2 * HALF)", "HALF")),),
    ),
    family(
        "weighed after the turn",
        "multiply by the weight before the turn: the weight belongs to an element's index in the head, and the turn mixes two elements",
        each(lambda heads, w, inputs, eps: right(heads, np.ones_like(w), inputs, eps) * w.astype(np.float64)),
        edits=(
            (WEIGH_A, "wa = tl.load(w_ptr + offs, mask=mask, other=0.0).to(tl.float32)\n    a = a * scale"),
            (
                WEIGH_B,
                "wb = tl.load(w_ptr + HALF + offs, mask=mask, other=0.0).to(tl.float32)\n    b = b * scale",
            ),
            (TURN, "return (a * cos - b * sin) * wa, (b * cos + a * sin) * wb"),
        ),
    ),
    family(
        "not turned",
        "turn q and k by their position",
        each(lambda heads, w, inputs, eps: normed(heads, w, eps)),
        edits=((TURN, "return a, b"),),
    ),
    family(
        "k is not turned",
        "turn the keys like the queries: the cache holds turned keys",
        q_alone(lambda heads, w, inputs, eps: normed(heads, w, eps)),
        edits=((TURN_K, TURN_K.replace("turned(", "weighed(")),)
        + (
            (
                "@triton.jit\ndef rotary_cache",
                f"@triton.jit\ndef weighed(a, b, w_ptr, turn_ptr, stride_turnsd, eps, offs, mask, HALF: tl.constexpr):\n    {SCALE}\n    {WEIGH_A}\n    {WEIGH_B}\n    return a, b\n\n\n@triton.jit\ndef rotary_cache",
            ),
        ),
    ),
    family(
        "k is not normed",
        "norm the keys like the queries, head by head",
        q_alone(lambda heads, w, inputs, eps: by_position(heads, inputs)),
        edits=(
            (TURN_K, TURN_K.replace("turned(", "turned_alone(")),
            (
                HEAD,
                f"@triton.jit\ndef turned_alone(a, b, w_ptr, turn_ptr, stride_turnsd, eps, offs, mask, HALF: tl.constexpr):\n    {COS}\n    {SIN}\n    {TURN}\n\n\n{HEAD}",
            ),
        ),
    ),
    family(
        "neighbours turned together",
        "element i of a head is turned with element i + D / 2, not with its neighbour",
        each(in_pairs),
        edits=(
            (AT_X, "at_x = x_ptr + row * stride_xt + (head * 2 * HALF + 2 * offs) * stride_xc"),
            ("at_x + HALF * stride_xc", "at_x + stride_xc"),
            (WEIGH_A, WEIGH_A.replace("w_ptr + offs", "w_ptr + 2 * offs")),
            (WEIGH_B, WEIGH_B.replace("w_ptr + HALF + offs", "w_ptr + 2 * offs + 1")),
            ("tl.store(at + offs * stride,", "tl.store(at + 2 * offs * stride,"),
            ("tl.store(at + (HALF + offs) * stride,", "tl.store(at + (2 * offs + 1) * stride,"),
        ),
    ),
    family(
        "turned backwards",
        "the signs of the sines are reversed: a * cos - b * sin, and b * cos + a * sin",
        other_angles(lambda cos, sin: (cos, -sin)),
        edits=((TURN, "return a * cos + b * sin, b * cos - a * sin"),),
    ),
    family(
        "cosines for sines",
        "the sines are the second half of a row of turns, from D / 2 on",
        other_angles(lambda cos, sin: (cos, cos)),
        edits=((SIN, COS.replace("cos =", "sin =")),),
    ),
    family(
        "sines for cosines",
        "a row of turns holds the cosines first, and then the sines",
        other_angles(lambda cos, sin: (sin, cos)),
        edits=((TURN, "return a * sin - b * cos, b * sin + a * cos"),),
    ),
    family(
        "v from the keys' columns",
        "x has the columns of q, then those of k, then those of v",
        would(swapped_sources),
        edits=(
            (
                AT_X,
                "source = tl.where(head < H, head, tl.where(head < H + G, head + G, head - G))\n    "
                + AT_X.replace("head *", "source *"),
            ),
        ),
    ),
    family(
        "keys in v and values in k",
        "keys and values are swapped: keys belong in k, and values in v",
        swapped_caches,
        edits=(
            (PUT_V, PUT_V.replace("v_ptr", "k_ptr").replace("stride_v", "stride_k")),
            (PUT_K, PUT_K.replace("k_ptr", "v_ptr").replace("stride_k", "stride_v")),
        ),
    ),
    family(
        "k stays as it was",
        "the keys of this step are missing from the cache",
        unwritten("k"),
        edits=((PUT_K, "pass"),),
    ),
    edited(
        "eps outside the root",
        (SCALE, "scale = 1 / (tl.sqrt((tl.sum(a * a, 0) + tl.sum(b * b, 0)) / (2 * HALF)) + eps)"),
        told_as="no eps",
    ),
    edited(
        "heads rounded before the turn",
        (
            TURN,
            "a = a.to(w_ptr.dtype.element_ty).to(tl.float32)\n    b = b.to(w_ptr.dtype.element_ty).to(tl.float32)\n    "
            + TURN,
        ),
    ),
    edited(
        "squares in the dtype of x",
        (
            SCALE,
            "x = a.to(w_ptr.dtype.element_ty)\n    y = b.to(w_ptr.dtype.element_ty)\n    "
            + SCALE.replace("a * a", "(x * x).to(tl.float32)").replace("b * b", "(y * y).to(tl.float32)"),
        ),
    ),
    edited("eps of 50 at most", (SCALE, SCALE.replace("+ eps)", "+ tl.minimum(eps, 50.0))"))),
    edited("eps of 1e-6 always", (SCALE, SCALE.replace("+ eps)", "+ 1e-6)"))),
    edited("turned by the next position", ("turns_ptr + at *", "turns_ptr + (at + 1) *")),
    edited(
        "the page by a reciprocal of S",
        ("at // S *", "(at.to(tl.float32) * (1.0 / S)).to(tl.int32) *"),
        ("slot = at % S", "slot = at - (at.to(tl.float32) * (1.0 / S)).to(tl.int32) * S"),
    ),
    edited("put at the next place", (PAGE, f"{PAGE}\n    at = at + 1")),
    edited("pages in their order", (PAGE, "page = (at // S).to(tl.int64)")),
    edited("the first row's pages", (PAGE, PAGE.replace("row * stride_tablet + ", ""))),
    edited("the first page of each sequence", (PAGE, PAGE.replace(" + at // S * stride_tablel", ""))),
    edited(
        "pages of 16 always", ("S, HALF: tl.constexpr", "HALF: tl.constexpr"), (PAGE, "S = 16\n    " + PAGE)
    ),
    edited("no mask at the store", ("b.to(at.dtype.element_ty), mask=mask)", "b.to(at.dtype.element_ty))")),
    edited(
        "one warp's worth of a head",
        ("block = triton.next_power_of_2(p.D // 2)", "block = min(32, triton.next_power_of_2(p.D // 2))"),
    ),
    edited("columns of x taken for dense", ("+ offs) * stride_xc", "+ offs)"), ("HALF * stride_xc", "HALF")),
    edited("q taken for dense", ("row * stride_qt + head * stride_qh", "(row * H + head) * 2 * HALF")),
    edited("v by k's strides", (PUT_V, PUT_V.replace("stride_v", "stride_k"))),
    edited("lens taken for dense", ("row * stride_lenst", "row")),
    edited("the table taken for dense", ("at // S * stride_tablel", "at // S")),
    edited("turns taken for dense", ("* stride_turnsd", "")),
    edited(
        "NaN cleaned away",
        (SCALE, "a = tl.where(a == a, a, 0.0)\n    b = tl.where(b == b, b, 0.0)\n    " + SCALE),
    ),
    edited(
        "nonsense at the size that is compiled",
        (PUT_Q, f"first = tl.where(S == 64, first * 0.5, first)\n        {PUT_Q}"),
    ),
    edited(
        "x read twice",
        (LOAD_A, f"{LOAD_A}\n    a = tl.maximum(a, tl.load(at_x, mask=mask, other=0.0))"),
        part="traffic",
    ),
    edited(
        "the cache read before it is written",
        (
            PUT_V,
            f"a += 0.0 * tl.load(v_ptr + page * stride_vp + (head - H - G) * stride_vh + slot * stride_vs + offs * stride_vd, mask=mask, other=0.0)\n        {PUT_V}",
        ),
        part="traffic",
    ),
    edited(
        "angles for values, too",
        (
            "    slot = at % S\n",
            "    slot = at % S\n    eps += 0.0 * tl.sum(tl.load(turns_ptr + at * stride_turnsp + offs * stride_turnsd, mask=mask, other=0.0), 0)\n",
        ),
        part="traffic",
    ),
    edited(
        "each number thirty times",
        (
            SCALE,
            f"{SCALE}\n    for _ in range(60):\n        a = a + 0.0 * scale\n        b = b + 0.0 * scale",
        ),
        part="speed",
    ),
    edited(
        "one program for many rows",
        ("def rotary_cache(\n    x_ptr", "def one_head(\n    row, head, x_ptr"),
        ("    row = tl.program_id(0).to(tl.int64)\n    head = tl.program_id(1)\n", ""),
        ("def launch_rotary(p):", WALKS + "def launch_rotary(p):"),
        ('"kernel": rotary_cache, ' + GRID, '"kernel": walk, "grid": (triton.cdiv(p.T, 4),)'),
        part="speed",
    ),
)


SHORTCUTS = {
    "eps outside the root": computing(each(eps_outside)),
    "one norm for all heads": computing(each(over_all_heads)),
    "heads rounded before the turn": computing(would(rounded_before_the_turn)),
    "squares in the dtype of x": computing(would(squares_in_16_bits)),
    "eps from a table": from_a_table,
    "pages of 16": lambda question, case: case.sizes["S"] != 16,
    "one page a sequence": within_limit("L", 1),
    "heads of a power of two": lambda question, case: case.sizes["D"] & (case.sizes["D"] - 1) != 0,
    **{
        f"{name} up to {most}": within_limit(name, most)
        for name, most in (
            ("T", 16),
            ("T", 64),
            ("H", 8),
            ("H", 32),
            ("G", 1),
            ("G", 4),
            ("D", 64),
            ("D", 128),
            ("L", 4),
            ("L", 16),
            ("S", 16),
            ("S", 64),
        )
    },
    **{
        f"stride {axis} of {name} taken for 1": one_stride(name, axis)
        for name, axes in (("x", 2), ("table", 2), ("turns", 2), ("q", 3), ("k", 4), ("v", 4))
        for axis in range(axes)
    },
    "stride of lens taken for 1": one_stride("lens", 0),
    **{f"{name} taken for dense": dense(name) for name in ("x", "lens", "table", "turns", "q", "k", "v")},
    "k's strides for v": same_strides("k", "v"),
}
