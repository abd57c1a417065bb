"""What feedback tells of hidden cases, and the key under which a record is kept."""

import re
import subprocess
import sys

import pytest

from grader import questions
from grader.judge import referee
from grader.judge.evidence import Evidence
from grader.judge.record import FAIL
from grader.proofs.right import edited, right

PUBLIC = questions.find("gemm_tiling.tile_loads").public
TALKS = """
def tile_loads(m, n, k, bm, bn):
    print("SECRET", m, n, k)
    if (m, n, k) not in ((256, 256, 256), (100, 70, 50), (1, 4096, 4096)):
        {act}
    return m * k * -(-n // bn) + k * n * -(-m // bm)
"""


def hidden_calls(seed: int) -> list:
    return Evidence(questions.find("gemm_tiling.tile_loads"), "", seed).hidden_cases()


@pytest.mark.parametrize(
    "act", ["raise ValueError(f'SECRET {m} {n} {k}')", "return 7_654_321", "return 'SECRET'"]
)
def test_feedback_holds_no_word_of_a_hidden_case(act):
    verdict = referee.grade_one(TALKS.format(act=act), questions.find("gemm_tiling.tile_loads"), seed=5)
    assert verdict.verdict == FAIL
    told = verdict.for_feedback()
    html, text = told._repr_html_(), str(told)
    assert "a hidden case (" in text and told.seed == ""
    secret = {call.args[:3] for call in hidden_calls(5)} - {call.args[:3] for call in PUBLIC}
    for words in (html, text):
        said = {tuple(map(int, found)) for found in re.findall(r"(\d+)[ ,]+(\d+)[ ,]+(\d+)", words)}
        assert not said & secret and "7654321" not in words.split("drawn anew")[0]


@pytest.mark.parametrize("edits", [[], [("2 * x", "x + tl.load(x_ptr + offs)")]], ids=["pass", "fail"])
def test_feedback_holds_no_size_of_the_metered_case(edits):
    """Which those who hand in later in the same round would meet."""
    from grader.judge.kernel_evidence import METERED

    question = questions.find("roofline.doubled")
    verdict = referee.grade_one(edited(right(question.id), edits), question, seed=5, eager=False)
    size = question.metered(Evidence(question, "", 5).rng(METERED)).sizes["N"]
    told = verdict.for_feedback()
    sizes = {f"{size}", f"{size:,}", f"{4 * size:,}", f"{4 * size / 1e3:.4g}"}
    assert any(one in str(verdict) for one in sizes)
    for words in (told._repr_html_(), str(told)):
        assert not {one for one in sizes if re.search(rf"(?<![\d.,]){re.escape(one)}(?![\d.,])", words)}
    assert ("at most what the model says" if edits else "all 9 limits kept") in str(told)


def test_answers_of_one_round_meet_hidden_cases_of_their_own():
    def judged(source, **more):
        return referee.grade_one(source, questions.find("gemm_tiling.tile_loads"), seed=5, **more).seed

    act = TALKS.format(act="pass")
    assert judged(act, epoch="a round") == judged(act.replace("\n", "\r\n"), epoch="a round")
    assert judged(act, epoch="a round") != judged(act + "# another\n", epoch="a round")
    assert judged(act) == judged(act + "# another\n") == f"{5:032x}"


KERNEL_TALKS = """
@triton.jit
def layernorm_gelu(x_ptr, y_ptr, M, N):
    tl.store(y_ptr, 0.0)


def launch(p):
    print("SECRET", p.M, p.N)
    return {"steps": [{"kernel": layernorm_gelu, "grid": (1,)}]}
"""


def test_prints_are_of_public_cases_alone():
    from grader.judge.kernel_evidence import HIDDEN, PUBLIC, KernelEvidence

    gathered = KernelEvidence(questions.find("roofline.layernorm_gelu"), KERNEL_TALKS, seed=1)
    gathered.run(HIDDEN)
    assert gathered.printed == ""
    gathered.run(PUBLIC)
    assert gathered.printed == "SECRET 4 64"


@pytest.mark.parametrize("act", ["print(HEARD)", "if (p.M, p.N) == (4, 64): raise ValueError(str(HEARD))"])
def test_a_launch_that_remembers_cannot_tell_hidden_sizes_in_a_public_case(act):
    """Cases that are shown are lowered by a process that never hears of the others."""
    from grader.judge.kernel_evidence import KernelEvidence

    source = "HEARD = []\n" + KERNEL_TALKS.replace(
        'print("SECRET", p.M, p.N)', f"HEARD.append((p.M, p.N))\n    {act}"
    )
    gathered = KernelEvidence(questions.find("roofline.layernorm_gelu"), source, seed=1)
    said = [gathered.run(purpose).outcome.error for purpose in gathered.public] + [gathered.printed]
    known = {
        (c.sizes["M"], c.sizes["N"]) for c in (*gathered.question.public, gathered.question.compile_case)
    }
    told = {tuple(map(int, found)) for found in re.findall(r"\((\d+), (\d+)\)", str(said))}
    assert told and told <= known


def test_a_key_is_the_same_in_every_process():
    code = (
        "from grader import questions; from grader.judge import referee; "
        "print(referee.specification(questions.find('gemm_tiling.block_scaled_gemm')))"
    )
    said = {subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout for _ in "ab"}
    assert len(said) == 1 and len(said.pop()) > 40
