"""What the search looks through."""

import json

from widgets.registry import every
from widgets.site import build
from widgets.site.contents import page_address
from widgets.site.search import sections, terms, words
from widgets.site.topics import topics

HTML = (
    '<p>Before <b>all</b>.</p><div class="heading h2"><h2 id="one">One &amp; two</h2><a class="here" href="#one">#</a></div>'
    "<pre><span>tl</span><span>.</span><span>dot</span></pre><math><mi>x</mi></math><svg><text>no</text></svg><p>End<br>.</p>"
)


def test_sections_have_their_words_and_addresses():
    assert sections("a.html", "01 A", "A", HTML) == [
        ("a.html", "01 A", "A", "Before all."),
        ("a.html#one", "01 A", "One & two", "tl.dotEnd."),
    ]


def test_terms():
    got = terms("g.html", '<p><a id="warp"></a><strong>Warp</strong>: 32 threads.</p>\n<p>Other</p>')
    assert got == [("g.html#warp", "Glossary", "Warp", "32 threads.")]


def test_words_leave_markup_behind():
    assert words("<p>a <code>b</code>\n\n c<img src='x'> d</p><style>no</style>") == "a b c d"


def test_every_lesson_simulator_lab_and_term_can_be_found(made):
    script = made["assets/search-data.js"].decode()
    rows = json.loads(script.removeprefix("window.tileByTile = ").rstrip().removesuffix(";"))
    addresses = {row[0] for row in rows}
    for topic in topics(build.ROOT):
        pages = topic.lesson.pages if topic.lesson else ()
        assert {page_address(page) for page in pages} <= addresses
        assert len([a for a in addresses if a.startswith(f"labs.html#{topic.number}")]) == len(topic.labs)
    assert {f"simulators/{d.name}.html" for d in every()} <= addresses
    assert "lessons/glossary.html#warp" in addresses
    assert all(address.partition("#")[0] in made for address in addresses) and len(addresses) == len(rows)
