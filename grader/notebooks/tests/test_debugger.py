"""Each lab with kernels has tilescope by one import, and says once how to open it."""

import json
import re

import pytest

from grader import questions
from grader.notebooks import debugger, filled
from grader.paths import ROOT

LABS = [path.relative_to(ROOT) for path in sorted(ROOT.glob("labs/0[0-6]_*/*.ipynb"))]


def cells(path) -> list[tuple[str, str]]:
    found = json.loads((ROOT / path).read_text(encoding="utf-8"))["cells"]
    return [(cell["cell_type"], "".join(cell["source"])) for cell in found]


def asks_for_kernels(path) -> bool:
    topic, known = path.parent.name.split("_", 1)[1], questions.load()
    checked = re.findall(r'^check\("([\w.]+)"', "\n".join(text for _, text in cells(path)), re.M)
    return any(known[name].kind == "kernel" for name in checked if name.startswith(f"{topic}."))


def test_six_lessons_have_labs_with_kernels():
    assert {path.parent.name[:2] for path in LABS if asks_for_kernels(path)} == {
        "00",
        "01",
        "02",
        "03",
        "05",
        "06",
    }


@pytest.mark.parametrize("path", LABS, ids=str)
def test_a_lab_with_kernels_imports_tilescope_once(path):
    code = "\n".join(text for kind, text in cells(path) if kind == "code")
    prose = "\n".join(text for kind, text in cells(path) if kind == "markdown")
    wanted = int(asks_for_kernels(path))
    assert len(re.findall(r"^(?:import|from) tilescope\b", code, re.M)) == wanted
    assert prose.count(debugger.OPENING) == prose.count("`_.step()`") == wanted
    for entry in re.findall(r"`tried = run\((\w+), 0", prose):
        assert f"def {entry}(p)" in code


def test_the_paragraph_is_left_out_where_no_cell_can_be_added():
    made = filled.fill("one\n\n<!-- debugger=forward -->\n\ntwo", "flash_attention")
    assert not made.complaints and 'run(launch, 0, question="flash_attention.forward")' in made.text
    assert debugger.without(made.text) == "one\n\ntwo"
    assert "run(launch_doubled, 0)" in debugger.paragraph("roofline", "doubled")


@pytest.mark.parametrize("name", ["forwards", "reuse"])
def test_a_mark_that_leads_to_no_kernel_is_named_by_its_line(name):
    ((line, what),) = filled.fill(f"one\n<!-- debugger={name} -->\n", "gemm_tiling").complaints
    assert line == 2 and "must name a question" in what
