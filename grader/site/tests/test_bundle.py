"""A lab's bundle judges and runs its cells alone: unpacked into an empty folder, with numpy and no other package in sight."""

import ast
import io
import json
import os
import subprocess
import sys
import zipfile
from functools import cache

import pytest

from grader.paths import ROOT
from grader.proofs.right import right
from grader.site import build, bundle, page

pytestmark = pytest.mark.skipif(
    not (ROOT / "solutions").exists(), reason="solutions/, which is not handed out"
)
AS_A_TAB = {"GRADER_BOX": "here", "TILESCOPE_FRONT_END": "python"}
LACKS = "curses dbm ensurepip grp pwd readline resource syslog tkinter turtle venv _multiprocessing _posixshmem"  # of Python
JUDGE = """
import json, os, sys
from importlib.abc import MetaPathFinder
from importlib.util import find_spec
sys.path.insert(0, {folder!r})
lacks = set({lacks!r}.split())
has = sys.stdlib_module_names - lacks | {{"numpy"}} | {{one.partition(".")[0] for one in os.listdir({folder!r})}}


class AsATab(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in has and not name.startswith("_sysconfigdata"):
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)


sys.meta_path.insert(0, AsATab())
for one in lacks:
    sys.modules.pop(one, None)
from grader.site.inside import reply
assert all(find_spec(one).origin.startswith({folder!r}) for one in ("ml_dtypes", "triton", "grader", "kernels"))
os.makedirs(os.path.join({folder!r}, {cwd!r}), exist_ok=True)
os.chdir(os.path.join({folder!r}, {cwd!r}))
for asked in json.load(sys.stdin):
    print(reply(json.dumps(asked)))
"""
DRAWN = """
from widgets import show
drawn = [show("tile_walk"), tilescope.show(run(launch, question="roofline.layernorm_gelu"))]
assert all("<svg" in one._repr_html_() for one in drawn) and "steps. In JupyterLab" in drawn[1]._repr_html_()
"""  # what other labs' cells draw, after their imports
QUICK = ("00_roofline/kernel", "04_expert_load_balance/ranks")  # rows in bf16, and ranks without threads


@cache
def shared() -> bytes:
    return bundle.shared()


def cells(lab: str) -> list[dict]:
    """Requests to run the cells of a lab with its answers, from top to bottom."""
    notebook = json.loads((ROOT / "solutions" / f"{lab}.ipynb").read_text(encoding="utf-8"))
    code = [one for one in notebook["cells"] if one["cell_type"] == "code" and not page.is_check(one)]
    texts = [[one["id"], "".join(one["source"])] for one in code]
    if any('needs("torch")' in text for _, text in texts):
        return []
    return [
        {"what": "cell", "cell": name, "source": text, "above": texts[:i]}
        for i, (name, text) in enumerate(texts)
    ]


def imports() -> str:
    """Every import of the labs' cells, of those with cells that a tab runs."""
    texts = [one["source"] for lab in build.labs() for one in cells(lab)]
    nodes = [node for text in texts for node in ast.parse(text).body]
    return "\n".join(
        {ast.unparse(node): None for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)}
    )


@pytest.mark.parametrize(
    "lab", [pytest.param(lab, marks=() if lab in QUICK else pytest.mark.slow) for lab in build.labs()]
)
def test_a_bundle_judges_its_questions_and_runs_its_cells(lab, tmp_path):
    for content in (shared(), bundle.of_lab(lab)):
        zipfile.ZipFile(io.BytesIO(content)).extractall(tmp_path)
    asked = bundle.questions_of(lab)
    requests = [{"what": "check", "question": one.id, "source": right(one.id)} for one in asked]
    requests += (own := cells(lab))
    if lab == QUICK[0]:
        above = [*own[-1]["above"], [own[-1]["cell"], own[-1]["source"]]]
        requests.append({"what": "cell", "cell": "drawn", "source": f"{imports()}\n{DRAWN}", "above": above})
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            JUDGE.format(folder=str(tmp_path), lacks=LACKS, cwd=f"labs/{lab.partition('/')[0]}"),
        ],
        input=json.dumps(requests),
        env={**os.environ, **AS_A_TAB, "TILE_RECORDS": str(tmp_path / "records")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    told = [json.loads(line) for line in done.stdout.splitlines()]
    for question, one in zip(asked, told, strict=False):
        compiled = any(part.judged_by("cpu") == "compiled" for part in question.parts)
        assert one["verdict"] == ("OPEN" if compiled else "PASS"), one["text"]
    ran = told[len(asked) :]
    assert len(told) == len(requests) and not [one["html"] for one in ran if one["failed"]]
