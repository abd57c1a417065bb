"""A lab's bundle judges alone: unpacked into an empty folder, with numpy and nothing else of the course on the path."""

import io
import json
import os
import subprocess
import sys
import zipfile
from functools import cache

import pytest

from grader.places import ROOT
from grader.proofs.right import right
from grader.site import build, bundle

pytestmark = pytest.mark.skipif(
    not (ROOT / "solutions").exists(), reason="solutions/, which is not handed out"
)
AS_A_TAB = {"GRADER_BOX": "here", "TILESCOPE_FRONT_END": "python"}
JUDGE = """
import json, sys
from importlib.util import find_spec
sys.path.insert(0, {folder!r})
from grader.site.inside import reply
assert all(find_spec(one).origin.startswith({folder!r}) for one in ("ml_dtypes", "triton", "grader", "kernels"))
for asked in json.load(sys.stdin):
    print(reply(json.dumps(asked)))
"""
QUICK = ("00_roofline/kernel", "04_expert_load_balance/ranks")  # rows in bf16, and ranks without threads


@cache
def shared() -> bytes:
    return bundle.shared()


@pytest.mark.parametrize(
    "lab", [pytest.param(lab, marks=() if lab in QUICK else pytest.mark.slow) for lab in build.labs()]
)
def test_a_bundle_judges_its_questions(lab, tmp_path):
    for content in (shared(), bundle.of_lab(lab)):
        zipfile.ZipFile(io.BytesIO(content)).extractall(tmp_path)
    asked = bundle.questions_of(lab)
    requests = [{"what": "check", "question": one.id, "source": right(one.id)} for one in asked]
    done = subprocess.run(
        [sys.executable, "-c", JUDGE.format(folder=str(tmp_path))],
        input=json.dumps(requests),
        env={**os.environ, **AS_A_TAB, "TILE_RECORDS": str(tmp_path / "records")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    for question, line in zip(asked, done.stdout.splitlines(), strict=True):
        told, compiled = json.loads(line), any(part.judged_by("cpu") == "compiled" for part in question.parts)
        assert told["verdict"] == ("OPEN" if compiled else "PASS"), told["text"]
