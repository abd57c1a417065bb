"""An answer's Python may patch the builder that stands in for Triton's library, since both run in one process. All it can make
is text, and the machine judges the text: what it computes, loads and stores, and whether it may hold that at all."""

import pytest

from grader import questions
from grader.judge.record import FAIL, PASS, REFUSED
from grader.proofs import front_ends

pytestmark = pytest.mark.usefixtures("no_jails_left")

CELL = """
@triton.jit
def doubled(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offs, 2 * tl.load(x_ptr + offs))

def launch_doubled(p):
    return {"steps": [{"kernel": doubled, "grid": (p.N // 64,), "constexprs": {"BLOCK": 64}}]}
"""
PATCH = """
import sys
ir = sys.modules["triton._C.libtriton"].ir
printed = ir.module.__str__
def changed(old, new):
    def text(self):
        said = printed(self)
        assert old in said
        return said.replace(old, new)
    ir.module.__str__ = text
"""
TWICE = """
load = ir.builder.create_load
def two_loads(self, *given):
    first, second = load(self, *given), load(self, *given)
    return self.create_fmul(self.create_fadd(first, second), self.get_splat_half(first))
ir.builder.get_splat_half = lambda self, like: self.create_splat(like.type, self.get_fp32(0.5))
ir.builder.create_load = two_loads
"""
ATTACKS = {  # what the patch does: (its code, a word of the text that it makes, what the report says)
    "it loads each element twice": (TWICE, "arith.addf", "read of x"),
    "it computes something else": ('changed("arith.mulf", "arith.addf")', "arith.addf", "elements are off"),
    "it names an operation that no text may hold": (
        'changed("arith.mulf", "llvm.inline_asm")',
        "llvm.inline_asm",
        "llvm.inline_asm",
    ),
    "its types do not fit": ('changed("tensor<64xf32>", "tensor<64xf16>")', "tensor<64xf16>", "one of f16"),
    "it stores into an input": (
        'changed("(%1)", "(%0)")  # the splat of y\'s pointer',
        "(%0)",
        "y",
    ),
    "it says nothing of what it stores": (
        """
def text(self):
    said = printed(self)
    return "\\n".join(line for line in said.splitlines() if '"tt.store"' not in line)
ir.module.__str__ = text
""",
        "tt.load",
        "never written",
    ),
    "its text never ends": (
        'ir.module.__str__ = lambda self: printed(self) + " " * (2 << 20)',
        "",
        "wrote into the grader's own channel",
    ),
}


def test_the_cell_itself_is_right():
    verdict, _ = front_ends.judged(questions.find("roofline.doubled"), CELL, front_ends.IN_PYTHON)
    assert verdict["verdict"] == PASS


DAILY = ("it loads each element twice", "it names an operation that no text may hold")


@pytest.mark.parametrize(
    "name", [name if name in DAILY else pytest.param(name, marks=pytest.mark.slow) for name in ATTACKS]
)
def test_a_patched_builder_changes_nothing_but_the_text_that_is_judged(name):
    patch, forged, said = ATTACKS[name]
    question, cell = questions.find("roofline.doubled"), PATCH + patch + CELL
    if forged:  # the attack is live: what crossed is its text
        (first, _), *_ = front_ends.lowered(question, cell, front_ends.IN_PYTHON)
        assert forged in first[1][0]
    verdict, _ = front_ends.judged(question, cell, front_ends.IN_PYTHON)
    assert verdict["verdict"] in (FAIL, REFUSED) and verdict["points"] < verdict["of"]
    assert said in verdict["message"] + str(verdict["parts"]), verdict


@pytest.mark.slow
@pytest.mark.parametrize("name", ["it loads each element twice", "it computes something else"])
def test_with_tritons_library_such_a_patch_meets_nothing(name):
    """The builder in C++ takes no such patch, or the text is as it was."""
    verdict, _ = front_ends.judged(
        questions.find("roofline.doubled"), PATCH + ATTACKS[name][0] + CELL, front_ends.COMPILED
    )
    assert verdict["verdict"] == FAIL
