"""Each concepts lab opens its answers with the same rules, and names a question of its own."""

import pytest

from grader.notebooks import filled, rules
from grader.paths import ROOT

LABS = sorted(ROOT.glob("solutions/*/concepts.md"))


@pytest.mark.parametrize("path", LABS, ids=lambda path: path.parent.name)
def test_a_concepts_lab_has_the_rules_once(path):
    words = path.read_text(encoding="utf-8")
    topic = path.parent.name.split("_", 1)[1]
    assert len(rules.MARK.findall(words)) == 1 and "from top to bottom" not in words
    made = filled.fill(words, topic)
    assert (
        not made.complaints
        and f'`hint("{topic}.' in made.text
        and "must not change its arguments" in made.text
    )


@pytest.mark.parametrize("name", ["roofs", "layernorm_gelu"])
def test_a_mark_without_a_question_of_the_lab_is_named_by_its_line(name):
    ((line, what),) = filled.fill(f"one\n<!-- rules={name} -->\n", "roofline").complaints
    assert line == 2 and "must name a question" in what
