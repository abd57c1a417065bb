"""Markdown as the lessons use it."""

import re

from widgets.site.listing import code
from widgets.site.prose import Place, markdown

LEADS = {"01_a.ipynb": "01_a.html", "pictures/a.svg": "pictures/a.svg"}


def html(text: str) -> str:
    return markdown(text, Place(LEADS.get))


def test_details_hold_markdown():
    got = html("<details><summary><b>1.</b> Why?</summary>\n\n**Because** $a_1$.\n</details>\n\nAfter")
    assert got.count("<details>") == got.count("</details>") == 1
    assert (
        "<strong>Because</strong>" in got and "<msub>" in got and got.index("</details>") < got.index("After")
    )


def test_links_lead_on_or_are_only_text():
    assert html("[a](01_a.ipynb)") == '<p><a href="01_a.html">a</a></p>\n'
    got = html("[b *c*](../kernels/x.py) and [a](01_a.ipynb) and [out](https://example.org/x)")
    assert '<span title="../kernels/x.py, in the project\'s folder">b <em>c</em></span>' in got
    assert '<a href="01_a.html">a</a>' in got and '<a href="https://example.org/x">out</a>' in got
    assert html("![A tile](pictures/a.svg)").count('src="pictures/a.svg"') == 1


def test_tables_scroll_by_themselves():
    got = html("| | b |\n|---|---|\n| 1 | 2 |")
    assert '<div class="wide" tabindex="0"' in got and "<td></td>" in got and "<th></th>" not in got


def test_code_is_coloured_and_escaped():
    got = code("if a < b:  # less\n    pass")
    assert '<span class="k">if</span>' in got and "&lt;" in got and '<span class="c1"># less</span>' in got
    assert "a &lt; b" in code("a < b", "text") and 'class="k"' not in code("if a", "text")
    assert '<span class="k">' in html("```py\nif x: pass\n```")


def test_dollars_that_are_money_stay():
    assert "<math" not in html("It costs $5 and then $6 more.")
    assert html("Half: $n/2$").count("<math ") == 1


def test_headings_can_be_linked():
    got = html("## The tile walk")
    assert '<h2 id="the-tile-walk">' in got and '<a class="here" href="#the-tile-walk"' in got
    assert '<h2 id="tile-section">' in html('## Tile\n\n<a id="tile"></a>**Tile**: a piece.')


def test_a_formula_that_is_not_known_stays_as_it_was_written():
    assert r'<code class="unread">\unheard{x} &lt; 1</code>' in html(r"$\unheard{x} < 1$")


def test_code_wraps_under_its_own_indentation():
    got = code("def f():\n    return 1\n\nx = 2")
    assert [int(depth) for depth in re.findall(r'style="--in:(\d+)"', got)] == [0, 4, 0, 0]
    assert "".join(re.findall(r">([^<]+)<", got)).rstrip("\n") == "def f():\n    return 1\n\nx = 2"


def test_a_picture_alone_is_the_places_to_draw():
    place = Place(LEADS.get, lambda source, words: f"<figure>{source}|{words}</figure>")
    got = markdown("![A tile](pictures/a.svg)\n\nwords ![small](pictures/a.svg) words", place)
    assert "<figure>pictures/a.svg|A tile</figure>" in got and got.count("<img") == 1
