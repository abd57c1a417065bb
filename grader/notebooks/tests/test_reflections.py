"""Those who learn alone can compare their reflections, folded; a student edition has nothing to compare with."""

import shutil

from grader.notebooks import reflections
from grader.paths import ROOT
from grader.verdicts import WRONG_USAGE

LAB = "01_gemm_tiling"


def test_every_reflection_has_its_question_and_a_folded_answer(tmp_path, capsys):
    shutil.copytree(ROOT / "solutions" / LAB, tmp_path / "solutions" / LAB)
    assert reflections.main([LAB], tmp_path) == 0
    page = (tmp_path / reflections.PLACE / f"{LAB}.html").read_text(encoding="utf-8")
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "solutions" / LAB).glob("*.md")]
    asked = sum(text.count("#region manual=") for text in texts)
    assert page.count("<details><summary>") == page.count("</details>") == asked >= 2
    question, answer = page.split("<details>")[1].rsplit("</summary>", 1)[0], page.split("</summary>")[1]
    assert "points" in page.split("<details>")[0] and len(answer) > 200 and "<script" not in question
    assert reflections.main(["02_nothing"], tmp_path) == WRONG_USAGE
    assert reflections.main([], tmp_path / "edition") == WRONG_USAGE
    assert "A student edition leaves reflections to the instructor" in capsys.readouterr().err


def test_what_a_solution_writes_as_html_is_shown_as_text():
    assert "<script>" not in reflections.page("x", [("concepts", "<script>alert(1)</script>", "*fine*")])
