"""A section is what is under its heading, and each topic of the course has its items."""

from pathlib import Path

import pytest

from kernels import from_sources

COURSE = Path(__file__).parents[2] / "course"
TEXT = """# Top
before
## One
says one
```python
# no heading
```
more of one
### Below
says two
<a id="term"></a>**Term**: A word.
"""


@pytest.mark.parametrize(
    ("heading", "words"),
    [("One", ["says one", "more of one"]), ("Below", ["says two"]), ("#term", ["**Term**: A word."])],
)
def test_a_section_is_what_its_heading_is_above(heading, words):
    found = from_sources.section(TEXT, heading)
    assert all(one in found for one in words) and ("says two" in found) == (heading == "Below")


@pytest.mark.parametrize("heading", ["no heading", "Two", "#other", "On"])
def test_what_is_no_heading_has_no_section(heading):
    assert from_sources.section(TEXT, heading) is None


def test_a_row_of_another_form_is_refused(tmp_path):
    table = tmp_path / from_sources.TABLE
    table.write_text("|".join(from_sources.COLUMNS) + "\nroofline|an item\n")
    with pytest.raises(ValueError, match=r"psv:2 must have 5 columns, got 2; "):
        from_sources.items(tmp_path)
    table.write_text("item|page\n")
    with pytest.raises(ValueError, match="must begin with topic"):
        from_sources.items(tmp_path)


def test_every_topic_has_items_and_the_page_lists_each_once():
    every = from_sources.items(COURSE)
    topics = {path.name[3:] for path in COURSE.glob("[0-9][0-9]_*")}
    assert {one.topic for one in every} == topics
    made = from_sources.page(COURSE, {topic: topic for topic in topics})
    assert all(made.count(f"| {one.item} |") == 1 for one in every)
