"""A lab's bundle judges and runs its cells alone: unpacked into an empty folder, with numpy and nothing else of the course on the path."""

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
JUDGE = """
import json, os, sys
from importlib.util import find_spec
sys.path.insert(0, {folder!r})
from grader.site.inside import reply
assert all(find_spec(one).origin.startswith({folder!r}) for one in ("ml_dtypes", "triton", "grader", "kernels"))
os.makedirs(os.path.join({folder!r}, {cwd!r}), exist_ok=True)
os.chdir(os.path.join({folder!r}, {cwd!r}))
for asked in json.load(sys.stdin):
    print(reply(json.dumps(asked)))
"""
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


@pytest.mark.parametrize(
    "lab", [pytest.param(lab, marks=() if lab in QUICK else pytest.mark.slow) for lab in build.labs()]
)
def test_a_bundle_judges_its_questions_and_runs_its_cells(lab, tmp_path):
    for content in (shared(), bundle.of_lab(lab)):
        zipfile.ZipFile(io.BytesIO(content)).extractall(tmp_path)
    asked = bundle.questions_of(lab)
    requests = [{"what": "check", "question": one.id, "source": right(one.id)} for one in asked]
    done = subprocess.run(
        [sys.executable, "-c", JUDGE.format(folder=str(tmp_path), cwd=f"labs/{lab.partition('/')[0]}")],
        input=json.dumps(requests + cells(lab)),
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
    assert len(ran) == len(cells(lab)) and not [one["html"] for one in ran if one["failed"]]
