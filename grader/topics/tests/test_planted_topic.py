"""A new topic costs its own rooms, a row of README.md and a line of CHANGELOG.md: built, checked and graded in a copy."""

import hashlib
import os
import shutil
import subprocess
import sys
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from grader.paths import ROOT
from grader.tools.gates import tree

LABEL = "08_doubling"
HEAD = "```python locked=imports\nimport numpy as np\n\nfrom grader import check\n```\n\n"
CONCEPTS = """# Lab 08, concepts

```python answer=doubled
def doubled(x):
    \"\"\"Twice a number.\"\"\"
    ### BEGIN SOLUTION
    return 2 * x
    ### END SOLUTION
```

```python check=doubled
check("doubling.doubled", doubled)
```
"""
KERNEL_CELL = """@triton.jit
def double(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < N, other=0.0)
    tl.store(y_ptr + offs, x + x, mask=offs < N)


def launch(p):
    return {"steps": [{"kernel": double, "grid": (triton.cdiv(p.N, 128),), "constexprs": {"BLOCK": 128}}]}
"""
KERNEL = f"""# Lab 08, kernel

<!-- judged=double_kernel -->

```python answer=double_kernel
### BEGIN SOLUTION
{KERNEL_CELL.rstrip()}
### END SOLUTION
```

```python check=double_kernel
check("doubling.double_kernel", launch)
```
"""
DOUBLED = '''"""doubled: what is asked, and what each part is worth."""

import numpy as np

from grader.questions import Call, NumpyQuestion, Part
from grader.topics.doubling.doubled.mistakes import MISTAKES
from kernels.doubling import reference

QUESTION = NumpyQuestion(
    id="doubling.doubled",
    notebook="concepts",
    asks="doubled(x): twice a number",
    entry="doubled",
    parts=(Part("values", 2, "calls"),),
    reference=reference.doubled,
    public=(Call((3.0,)), Call((-1.0,), "a negative number")),
    hidden=lambda rng: [Call((float(x),), "another number") for x in rng.standard_normal(4)],
    mistakes=MISTAKES,
)
'''
SQUARE = '''"""doubled: how answers go wrong, a row each."""

from grader.questions import Mistake

MISTAKES = (Mistake("square", "this is the square", cell="def doubled(x):\\n    return x * x"),)
'''
DOUBLE_KERNEL = '''"""double_kernel: what is asked, and what each part is worth."""

from grader.questions import Case, KernelQuestion, Part, Tensor, UpTo
from grader.topics.doubling.double_kernel import cases
from grader.topics.doubling.double_kernel.mistakes import MISTAKES
from kernels.doubling import reference

QUESTION = KernelQuestion(
    id="doubling.double_kernel",
    notebook="kernel",
    asks="y = 2 x",
    parts=(Part("values", 2, "values", asks="twice x, of any length"), Part("traffic", 1, "traffic", asks="x once, y once")),
    tensors=(Tensor("x", "n", ("N",), "fp32"), Tensor("y", "n", ("N",), "fp32", role="out")),
    inputs=cases.inputs,
    reference=lambda i, c: {"y": reference.doubled(i["x"].astype("float64"))},
    tolerance=lambda i, c, want: {"y": 1e-6},
    public=(Case({"N": 256}, "fp32"), Case({"N": 100}, "fp32", kind="a ragged length")),
    hidden=cases.hidden,
    up_to={"N": UpTo(100_000)},
    metered=cases.metered,
    budgets={"traffic": cases.traffic},
    mistakes=MISTAKES,
)
'''
CASES = '''"""Draw the inputs of *double_kernel*, and set its budgets."""

from grader.questions import Budget, Case
from kernels.doubling import cost


def inputs(c, rng):
    return {"x": rng.standard_normal(c.sizes["N"]).astype("float32")}


def hidden(rng):
    return [Case({"N": int(rng.integers(200, 900))}, "fp32", kind="another length")]


def metered(rng):
    return Case({"N": int(rng.integers(900, 1100))}, "fp32", kind="the metered size")


def traffic(c):
    return [Budget(what="read of x", tensor="x", most=cost.once_bytes(c.sizes["N"]), model="once")]
'''
TRIPLED = '''"""double_kernel: how answers go wrong, a row each."""

from grader.questions.rows import edited

MISTAKES = (edited("tripled", ("x + x", "x + x + x")),)
'''
ROOMS = {
    f"course/{LABEL}.md": "# Doubling\n\nTwice is enough.\n",
    f"solutions/{LABEL}/concepts.md": CONCEPTS.replace(
        "# Lab 08, concepts\n\n", "# Lab 08, concepts\n\n" + HEAD
    ),
    f"solutions/{LABEL}/kernel.md": KERNEL.replace(
        "# Lab 08, kernel\n\n",
        "# Lab 08, kernel\n\n```python locked=imports\nimport triton\nimport triton.language as tl\n\nfrom grader import check\n```\n\n",
    ),
    "kernels/doubling/__init__.py": "",
    "kernels/doubling/reference.py": '"""Doubling in numpy."""\n\n\ndef doubled(x):\n    return 2 * x\n',
    "kernels/doubling/cost.py": '"""What doubling costs."""\n\n\ndef once_bytes(n: int) -> int:\n    return 4 * n\n',
    "grader/topics/doubling/__init__.py": "",
    "grader/topics/doubling/lab.py": '"""In the order of the labs."""\n\nORDER = ("doubled", "double_kernel")\n',
    "grader/topics/doubling/doubled/__init__.py": "",
    "grader/topics/doubling/doubled/question.py": DOUBLED,
    "grader/topics/doubling/doubled/mistakes.py": SQUARE,
    "grader/topics/doubling/double_kernel/__init__.py": "",
    "grader/topics/doubling/double_kernel/question.py": DOUBLE_KERNEL,
    "grader/topics/doubling/double_kernel/cases.py": CASES,
    "grader/topics/doubling/double_kernel/mistakes.py": TRIPLED,
}
ROW = (
    f"| 08 | `doubling` | Why twice? | [lesson](course/{LABEL}.ipynb) · [labs](labs/{LABEL}) · [solutions](solutions/{LABEL}) · "
    "[kernels](kernels/doubling) · widgets: none, a formula needs no picture · [checks](grader/topics/doubling) |\n"
)

RULES = """# all but the one that collects tests: a topic need not have any, and it takes as long as the others together
from pathlib import Path
from grader.tools.gates import GATES, complaints
print(complaints(Path.cwd(), [name for name in GATES if name != "collected"]))
"""


SUITES = """# each wrong answer of the topic is made, loses its part and is told its sentence
from grader import questions
from grader.proofs import wrong
for question in questions.load().values():
    if question.slug == "doubling":
        for name, row in wrong.table(question).items():
            verdict = wrong.judged(question, wrong.source(question, row))
            print(wrong.complaint(question, verdict, row), end="")
"""


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    root = tmp_path_factory.mktemp("planted") / "course"
    files = list(tree.files(ROOT))
    compiled = {
        cached
        for path in files
        if path.suffix == ".py" and (cached := Path(cache_from_source(str(path)))).exists()
    }
    for path in (*files, *compiled):  # with their times: what is compiled here need not be there once more
        target = root / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target)
    before = state(root)
    for name, text in ROOMS.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    readme = (root / "README.md").read_text(encoding="utf-8")
    last = next(line for line in reversed(readme.splitlines(True)) if line.startswith("| 07 |"))
    (root / "README.md").write_text(readme.replace(last, last + ROW), encoding="utf-8")
    return root, before


def state(root: Path) -> dict[str, str]:
    return {
        p.relative_to(root).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest() for p in tree.files(root)
    }


def grader(root: Path, *words: str, text: str = ""):
    return python(root, "-m", "grader", *words, text=text)


def python(root: Path, *words: str, text: str = ""):
    """In the copy, which it takes for the whole course."""
    environment = {**os.environ, "PYTHONPATH": str(root), "TILE_RECORDS": str(root / "work/records")}
    return subprocess.run(
        [sys.executable, *words],
        cwd=root,
        env=environment,
        input=text,
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_it_is_built_checked_and_graded_and_touches_nothing_else(planted):
    root, before = planted
    built = grader(root, "build", "doubling")
    assert built.returncode == 0, built.stdout + built.stderr
    lab = (root / f"labs/{LABEL}/concepts.ipynb").read_text(encoding="utf-8")
    assert "check_doubled" in lab and "2 * x" not in lab

    wrong = grader(root, "check", "doubling.doubled", "-", text="def doubled(x):\n    return x * x\n")
    assert wrong.returncode == 1 and "this is the square" in wrong.stdout, wrong.stdout + wrong.stderr

    suites = python(root, "-c", SUITES)
    assert suites.stdout == "", suites.stdout + suites.stderr

    handed_in = root / "submitted/ada" / LABEL
    shutil.copytree(root / "solutions" / LABEL, handed_in, ignore=shutil.ignore_patterns("*.md"))
    graded = grader(root, "class", LABEL, "--mode", "cpu")
    assert graded.returncode == 0 and "5 of 5" in graded.stdout, graded.stdout + graded.stderr

    gates = python(root, "-c", RULES)
    assert gates.stdout == "[]\n", gates.stdout + gates.stderr
    changed = {name for name, now in state(root).items() if before.get(name) != now}
    own = {name for name in changed if "doubling" in name}
    left_behind = {
        name for name in changed - own if name.split("/")[0] in ("submitted", "autograded", "work")
    }
    assert changed - own - left_behind <= {"README.md", "gradebook.db"}, sorted(changed - own)
