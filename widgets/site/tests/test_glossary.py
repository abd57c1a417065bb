"""The glossary holds every term of its sources, and every lesson links a term where it uses it first."""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from kernels import texts

ROOT = Path(__file__).parents[3]
COURSE = ROOT / "course"
PAGE = "glossary.ipynb"
LESSONS = {name: texts.words(COURSE, name) for name in texts.lessons(COURSE)}
TERMS = (Path(__file__).parent / "glossary_terms.txt").read_text(encoding="utf-8").splitlines()

ENTRY = re.compile(r'^<a id="([^"]+)"></a>\*\*(.+?)\*\*(?: \(([^)]+)\))?:\s', re.M)
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)")
NO_PROSE = (
    re.compile(r"^## References$.*?(?=^## |\Z)", re.M | re.S),  # titles of others
    re.compile(r"^(`{3,}).*?^\1\s*?$", re.M | re.S),  # code
    re.compile(r"`[^`\n]+`"),
    re.compile(r"\$\$.*?\$\$|\$[^$\n]+\$", re.S),  # formulas
    re.compile(r"!\[[^\]]*\]\([^)]*\)"),  # pictures
    re.compile(r"^#+ .*$|^\*\*[^*\n]+\?\*\*$", re.M),  # headings, and the question below the first
    re.compile(r'"[A-Z][^"]{2,40}"'),  # the title of a source or of a section
    re.compile(r"<!--.*?-->|\{\{.*?\}\}", re.S),  # names for the build, and what it fills in
    re.compile(r"<summary>.*?</summary>|<[^>\n]+>"),  # HTML, in which a link would not be one
)


@dataclass(frozen=True)
class Entry:
    anchor: str
    name: str
    others: tuple[str, ...]

    @property
    def forms(self) -> tuple[str, ...]:
        return (self.name, *self.others)


def slug(title: str) -> str:
    return re.sub(r"[^\w]+", "-", title.lower()).strip("-")


def entries(text: str) -> list[Entry]:
    found = ENTRY.findall(re.sub(r"(?<=\S)\n(?=\S)", " ", text))  # an entry is a paragraph, wrapped anywhere
    return [Entry(anchor, name, tuple(filter(None, others.split(", ")))) for anchor, name, others in found]


def pattern(form: str) -> str:
    """A form in any case, but for abbreviations such as SM; its plural; broken over two lines or not."""
    strict = re.search(r"(?<=.)[A-Z]", form) and not re.search(r"\d", form)
    return f"(?{'-i' if strict else 'i'}:{re.escape(form).replace(chr(92) + ' ', chr(92) + 's+')}(?:s|es)?)"


def searcher(known: list[Entry]) -> tuple[re.Pattern, dict[str, str]]:
    """Finds any form, the longest first; and to which anchor a form belongs."""
    anchors = {re.sub(r"\s+", " ", form.lower()): e.anchor for e in known for form in e.forms}
    forms = sorted({form for e in known for form in e.forms}, key=len, reverse=True)
    return re.compile(rf"(?<![\w-])(?:{'|'.join(map(pattern, forms))})(?![\w-])"), anchors


def anchor_of(word: str, anchors: dict[str, str]) -> str:
    word = re.sub(r"\s+", " ", word.lower())
    return next(anchors[w] for w in (word, word.removesuffix("s"), word.removesuffix("es")) if w in anchors)


def prose(text: str) -> str:
    """The text with all but its prose blanked, place for place; a link keeps its words."""
    for kind in NO_PROSE:
        text = kind.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
    return LINK.sub(lambda m: f" {m[1]} {' ' * (len(m[2]) + 2)}", text)


def first_uses(text: str, known: list[Entry]) -> dict[str, re.Match]:
    """anchor -> where a text uses the term first."""
    search, anchors = searcher(known)
    found = {}
    for match in search.finditer(prose(text)):
        found.setdefault(anchor_of(match[0], anchors), match)
    return found


def unlinked(text: str, known: list[Entry]) -> list[str]:
    """A line for each term whose first use does not lead to the glossary."""
    links = [(m.start(), m.end(), m[2]) for m in LINK.finditer(text)]
    said = []
    for anchor, use in first_uses(text, known).items():
        wanted = f"{PAGE}#{anchor}"
        if not any(
            start < use.start() < end and to.removeprefix("../") == wanted for start, end, to in links
        ):
            line = text.count("\n", 0, use.start()) + 1
            said.append(f"line {line}: {use[0]!r} must be [{use[0]}]({wanted}) where it comes first")
    return said


KNOWN = entries((COURSE / "glossary.md").read_text(encoding="utf-8"))


def test_an_entry_is_found_under_its_own_name():
    assert len(KNOWN) > 150
    anchors = [e.anchor for e in KNOWN]
    assert anchors == [slug(e.name) for e in KNOWN] and len(set(anchors)) == len(anchors)
    forms = [form.lower() for e in KNOWN for form in e.forms]
    assert sorted(set(forms)) == sorted(forms), "a word belongs to two entries"


@pytest.mark.parametrize("term", TERMS)
def test_the_glossary_has_the_term(term):
    assert slug(term) in {slug(form) for e in KNOWN for form in e.forms}


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_lesson_links_its_terms_where_they_come_first(lesson):
    assert unlinked(LESSONS[lesson], KNOWN) == []


@pytest.mark.parametrize(
    "path", sorted([*ROOT.glob("course/**/*.md"), *ROOT.glob("solutions/*/*.md")]), ids=str
)
def test_every_link_to_the_glossary_finds_an_entry(path):
    aimed = re.findall(r"glossary\.(?:ipynb|md)#([\w-]+)", path.read_text(encoding="utf-8"))
    assert set(aimed) <= {e.anchor for e in KNOWN}


GLOSSARY = """
<a id="warp"></a>**Warp**: 32 threads.

<a id="shared-memory"></a>**Shared memory** (SRAM): near.

<a id="memory"></a>**Memory**: far.
"""


@pytest.mark.parametrize(
    "text, missing",
    [
        ("A [warp](glossary.ipynb#warp), then warps.", []),
        ("Warps, then a [warp](glossary.ipynb#warp).", ["warp"]),
        ("A [warp](glossary.ipynb#memory).", ["warp"]),
        ("A [warp](01_warp.ipynb).", ["warp"]),
        ("# Warps\n\n`warp`\n\n```py\nwarp\n```\n\n$warp$ <b warp>\n\n![warp](warp.svg)", []),
        ("[Shared\nmemory](glossary.ipynb#shared-memory) is no memory of its own.", ["memory"]),
        ("[SRAM](glossary.ipynb#shared-memory), and shared memory.", []),
        ("A sram is no abbreviation, a warped one no warp-like one.", []),
    ],
)
def test_a_term_without_its_link_is_named(text, missing):
    said = unlinked(text, entries(GLOSSARY))
    assert [re.search(r"#([\w-]+)", line)[1] for line in said] == missing
