"""Answers that were written before the labs took vLLM's names are judged as before, and so are their launches' facts."""

import re

import pytest

from grader import questions
from grader.judge.record import PASS
from grader.proofs import right
from grader.proofs import wrong as zoo

if not (right.ROOT / "solutions").exists():
    pytest.skip("solutions/, which is not handed out", allow_module_level=True)

pytestmark = pytest.mark.usefixtures("no_jails_left")

TABLES = {"sorted_token_ids": "picks", "inv_permuted_idx": "place", "expert_ids": "owner"}
EARLIER = {  # a question, what its answers called today's tensors, and a stride that launch(p) asks for
    "moe_routing.order": (TABLES | {"topk_ids": "chosen", "expert_offsets": "offsets"}, "chosent"),
    "moe_routing.grouped_gemm": (TABLES, "picksr"),
    "moe_routing.fused_combine": (TABLES | {"topk_weights": "weights"}, "placek"),
}
ORDER = questions.find("moe_routing.order")


def as_before(question) -> str:
    """Return the right answer with the old names. Its launch looks at a stride and a dtype before it plans."""
    names, stride = EARLIER[question.id]
    source = right.right(question.id)
    for today, earlier in names.items():
        source = re.sub(rf"\b{today}_ptr\b", f"{earlier}_ptr", source)
        source = re.sub(rf"\bstride_{today}(?=[a-z]\b)", f"stride_{earlier}", source)
    asks = f'    assert p.stride_{stride} > 0 and p.dtypes["{stride[:-1]}"] == "i32"\n'
    return source.replace(f"def {question.entry}(p):\n", f"def {question.entry}(p):\n{asks}")


QUICK = "moe_routing.fused_combine"


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=() if one == QUICK else pytest.mark.slow) for one in EARLIER]
)
def test_an_answer_with_the_old_names_passes(name):
    question = questions.find(name)
    few = right.inward(question, parts=question.parts[:2], hidden=lambda rng: question.hidden(rng)[:2])
    verdict = zoo.judged(few, as_before(question))
    assert verdict.verdict == PASS and verdict.points == few.points, verdict


def test_scratch_may_have_an_old_name():
    """A new answer knows no old names, so what it declares comes first."""
    source = right.right(ORDER.id).replace("counts_ptr", "picks_ptr").replace('"counts"', '"picks"')
    verdict = zoo.judged(right.inward(ORDER, parts=ORDER.parts[:1], hidden=lambda rng: []), source)
    assert verdict.verdict == PASS, verdict


def test_old_names_are_not_offered():
    source = right.right(ORDER.id).replace("sorted_token_ids_ptr", "pairs_ptr")
    verdict = zoo.judged(right.inward(ORDER, parts=ORDER.parts[:1], hidden=lambda rng: []), source)
    assert "takes pairs_ptr" in str(verdict) and "sorted_token_ids_ptr" in str(verdict)
    assert "picks" not in str(verdict)
