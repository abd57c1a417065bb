"""LaTeX -> MathML: well formed, and nothing guessed."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from widgets.site.formulas import Unreadable, mathml
from widgets.site.lessons import lessons

ROOT = Path(__file__).parents[3]


def read(latex: str, display: bool = False) -> ElementTree.Element:
    return ElementTree.fromstring(mathml(latex, display))


def drawn(latex: str, display: bool = False) -> str:
    return re.sub(r"\s+", "", "".join(read(latex, display).itertext()))


@pytest.mark.parametrize(
    "latex, text",
    [
        (r"\frac{2 b_m b_n}{b_m + b_n}", "2bmbnbm+bn"),
        (r"m' = \max(m, x)", "m′=max(m,x)"),
        (r"\sum_{k \in \text{block } t} a_{ik}", "∑k∈blocktaik"),
        (r"\left\lfloor \frac{a}{b} \right\rfloor", "⌊ab⌋"),
        (r"x^{-1} \le 65{,}536", "x−1≤65,536"),
        (r"\left. f \right|_{0}", "f|0"),
        (r"\underbrace{Q K^\top}_{\text{scores}}", "QK⊤⏟scores"),
        (r"\begin{aligned} a &= 1 \\ b &= 2 \end{aligned}", "a=1b=2"),
        (r"\mathbb{R}^{d} < \mathbf{W}", "ℝd<W"),
    ],
)
def test_what_is_drawn(latex, text):
    assert drawn(latex) == drawn(latex, display=True) == text


def test_structure():
    fraction = read(r"\frac{2 b_m}{b_m + 1}").find("mfrac")
    assert len(fraction) == 2 and fraction[0].find("msub") is not None
    assert len(read(r"s^A_{i,t}").find("msubsup")) == 3
    assert read(r"\sum_{t}^{n} t", display=True).find(".//munderover") is not None
    assert read(r"\sum_{t}^{n} t").find(".//msubsup") is not None
    rows = read(r"\begin{cases} 1 & x > 0 \\ 0 & \text{else} \end{cases}").findall(".//mtr")
    assert [len(row) for row in rows] == [2, 2]


def test_the_source_stays_readable_for_tools():
    assert read(r"a_{i}   <  b").get("alttext") == "a_{i} < b"


@pytest.mark.parametrize(
    "latex",
    [r"\frac{1}{2", r"a }", r"\unheard{x}", r"\left( x", r"\text{open", r"\begin{odd} x \end{odd}", "x_"],
)
def test_what_is_not_known_is_said(latex):
    with pytest.raises(Unreadable, match="must .*, got .*; "):
        mathml(latex)


FORMULAS = re.compile(r"```.*?```|`[^`]*`|\$\$(.+?)\$\$|\$([^$\n]+)\$", re.S)


@pytest.mark.parametrize("lesson", lessons(ROOT / "course"), ids=lambda lesson: lesson.name)
def test_every_formula_of_a_lesson_is_read(lesson):
    for cell in lesson.cells:
        for match in FORMULAS.finditer(cell.text if cell.kind == "markdown" else ""):
            if latex := match[1] or match[2]:
                mathml(latex, bool(match[1]))
