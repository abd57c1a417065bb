"""A lesson that is a folder: its pages in order, their reading time, and the way from one to the next."""

import re

import nbformat
import pytest

from grader.notebooks import command, pages
from grader.paths import ROOT
from kernels import texts

PAGE = "# {title}\n\nWords.\n\n```python\nx = 1\n```\n\n## Now you\n\nTry it.\n"
NAMES = {"a_first": "The first", "b_second": "The second", "appendix": "Appendix", "review": "Review"}


@pytest.fixture
def course(tmp_path):
    folder = tmp_path / "course/09_toy"
    folder.mkdir(parents=True)
    for name, title in NAMES.items():
        (folder / f"{name}.md").write_text(PAGE.format(title=title))
    return tmp_path


def cells(course, name):
    return nbformat.read(course / f"course/09_toy/{name}.ipynb", as_version=4).cells


def test_each_page_says_where_it_is_and_leads_on(course, capsys):
    assert command.main([], course) == 0 and "4 lessons" in capsys.readouterr().out
    order = ["a_first", "b_second", "review", "appendix"]
    for at, name in enumerate(order):
        head, *inside, foot = cells(course, name)
        assert (
            head.source.startswith(f"Lesson 09, page {at + 1} of 4 · about 1 min")
            and "way" in head.metadata.tags
        )
        assert inside[0].source.startswith(f"# {NAMES[name]}") and len(inside) == 3
        after = order[at + 1 : at + 2]
        wanted = f"[{NAMES[after[0]]}]({after[0]}.ipynb)" if after else "last page of lesson 09"
        assert wanted in foot.source
    nbformat.validate(nbformat.read(course / "course/09_toy/a_first.ipynb", as_version=4))


def test_a_topic_is_built_alone(course):
    (course / "course/08_other.md").write_text("# Other\n")
    assert command.main(["toy"], course) == 0
    assert not (course / "course/08_other.ipynb").exists() and len(cells(course, "review")) == 5


def test_minutes_are_counted_over_words_and_not_over_addresses():
    assert pages.minutes("word " * 401) == 3
    assert pages.minutes("[a](" + "x" * 500 + ") " + '<a id="b">' * 300) == 1


@pytest.mark.parametrize(
    "name, text, said",
    [
        ("c_third", "# Third\n\nWords.\n\n## And more\n\nWords.\n", "must end in '## Now you'"),
        ("c_third", "# Third\n\nWords.\n", "something to do, got no section"),
        ("c_third", "Words.\n\n## Now you\n\nTry.\n", "must have a title"),
        ("third", PAGE.format(title="Third"), "must be named a_title, review or appendix, got third"),
    ],
)
def test_a_page_without_a_name_a_title_or_something_to_do_is_refused(course, capsys, name, text, said):
    (course / f"course/09_toy/{name}.md").write_text(text)
    assert command.main([], course) == 1
    assert f"course/09_toy/{name}.md:" in (out := capsys.readouterr().out) and said in out


FOLDERS = {name: found for name, found in texts.lessons(ROOT / "course").items() if texts.in_folder(found[0])}
LINKED = re.compile(r"\[([^\]]+)\]\((https://[^)\s]+)\)")


@pytest.mark.parametrize("lesson", FOLDERS)
def test_a_lesson_ends_with_references_of_a_known_form(lesson):
    """Links are looked at and none is fetched."""
    words = FOLDERS[lesson][-1].read_text(encoding="utf-8")
    section = re.search(r"^## References\n(.*?)^<!-- #endregion", words, re.M | re.S)[1]
    entries = re.findall(r"^- (.*?)(?=^- |\n\n|\Z)", section, re.M | re.S)
    assert len(entries) > 5
    for entry in entries:
        assert LINKED.search(entry), f"a reference must have a link: {entry}"
    for said, link in LINKED.findall(section):
        if "arxiv.org" in link:
            number = re.fullmatch(r"https://arxiv\.org/abs/(\d{4}\.\d{4,5})", link)
            assert number and said == f"arXiv:{number[1]}", link
        if said.startswith("doi:"):
            assert link == f"https://doi.org/{said.removeprefix('doi:')}"
    papers = section[: section.index("Projects")]
    for entry in re.findall(r"^- (.*?)(?=^- |\n\n|\Z)", papers, re.M | re.S):
        assert re.search(r'^[^"]+, "[^"]+",\s(19|20)\d\d,\s', entry), f'authors, "title", year, link: {entry}'


@pytest.mark.parametrize("lesson", FOLDERS)
def test_code_of_a_lesson_fits_its_column(lesson):
    """Listings that are only read, too: a page shows 88 columns without scrolling."""
    wide = []
    for page in FOLDERS[lesson]:
        code = re.findall(r"^```py\S*.*?\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
        wide += [f"{page.name}: {line}" for cell in code for line in cell.split("\n") if len(line) > 88]
    assert wide == []
