"""Rows that a topic keeps are found in its own folder."""

from grader.proofs.numpy_honest import FORMS
from grader.proofs.numpy_wrong import MADE
from grader.proofs.tables import of_topics
from grader.topics.roofline import concepts_wrong, honest


def test_a_topics_rows_are_found_beside_the_suites_own():
    assert concepts_wrong.MADE.items() <= of_topics("concepts_wrong", "MADE").items()
    assert MADE["roofline.roof"] == concepts_wrong.MADE["roofline.roof"] and "gemm_tiling.reuse" in MADE
    assert FORMS["roofline.roof"] == honest.NUMPY_FORMS["roofline.roof"]


def test_what_no_topic_has_is_an_empty_table():
    assert of_topics("no_such_module", "MADE") == {} == of_topics("honest", "NO_SUCH_TABLE")
