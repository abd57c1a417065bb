"""Drawings that follow the theme, and figures with numbers that links say."""

import pytest

from widgets.site.drawings import dark, inline
from widgets.site.figures import Figures
from widgets.site.lessons import Text

SVG = (
    '<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg"><defs><marker id="arrow"/></defs>'
    '<rect fill="#ffffff" stroke="#123"/><path marker-end="url(#arrow)" fill="none"/></svg>\n'
)


def lightness(colour: str) -> float:
    return sum(int(colour[i : i + 2], 16) for i in (1, 3, 5)) / 765


@pytest.mark.parametrize(
    "colour", ["#ffffff", "#f1f3f6", "#dde7fa", "#2159c4", "#b8450b", "#1b2130", "#000000", "#fff"]
)
def test_light_turns_dark_and_dark_light(colour):
    whole = colour if len(colour) == 7 else "#ffffff"
    assert (lightness(dark(colour)) < 0.4) == (lightness(whole) > 0.7)
    assert len(dark(colour)) == 7


def test_order_and_hue_stay():
    shades = ["#000000", "#1b2130", "#5a6474", "#c3cad5", "#ffffff"]
    turned = [lightness(dark(one)) for one in shades]
    assert turned == sorted(turned, reverse=True)
    red, _, blue = (int(dark("#2159c4")[i : i + 2], 16) for i in (1, 3, 5))
    assert blue > red


def test_a_drawing_in_the_page_has_both_colours_and_ids_of_its_own():
    got = inline(SVG, "one")
    assert (
        got.startswith("<svg") and 'fill="light-dark(#ffffff, ' in got and 'stroke="light-dark(#123, ' in got
    )
    assert 'id="one-arrow"' in got and "url(#one-arrow)" in got and 'fill="none"' in got


@pytest.fixture
def figures(tmp_path):
    (tmp_path / "pictures").mkdir()
    for name in "ab":
        (tmp_path / f"pictures/{name}.svg").write_text(SVG)
    found = Figures("5", lambda page, href: href if href.endswith((".png", ".svg")) else None)
    found.open(Text(tmp_path / "05_a.ipynb"))
    return found


def test_figures_count_pictures_and_simulators_together(figures):
    first = figures.picture("pictures/a.svg", "A & B")
    second = figures.simulator("<div></div>", "tile_walk", "Tile walk")
    assert 'id="figure-1"' in first and "<b>Figure 5.1</b> A &amp; B" in first and "<svg" in first
    assert "<b>Figure 5.2</b>" in second and "../simulators/tile_walk.html" in second
    assert figures.shown == {"tile_walk": ("lessons/05_a.html", 2)}
    assert "<img" in figures.picture("pictures/c.png", "C") and figures.count == 2


def test_a_link_to_a_picture_says_its_number_wherever_it_comes(figures):
    text = f'<a href="{figures.lead("pictures/b.svg")}">the tiles</a> <a href="{figures.lead("pictures/a.svg")}">A</a>'
    figures.picture("pictures/b.svg", "B")
    got = figures.refer(text, figures.page)
    assert '<a href="#figure-1">the tiles (figure 5.1)</a>' in got
    assert '<a href="pictures/a.svg">A</a>' in got  # not drawn in this lesson: the file itself


def test_numbers_go_on_from_page_to_page_and_links_find_the_page(tmp_path):
    course = tmp_path / "course"
    first, second = (Text(course / f"05_a/{name}.ipynb") for name in ("a_one", "b_two"))
    (course / "pictures").mkdir(parents=True)
    (course / "pictures/a.svg").write_text(SVG)
    (course / "05_a").mkdir()
    figures = Figures("5", lambda page, href: href)
    figures.open(first)
    assert "Figure 5.1" in figures.picture("../pictures/a.svg", "A")
    figures.open(second)
    got = figures.simulator("<div></div>", "tile_walk", "Tile walk")
    assert "Figure 5.2" in got and 'href="../../simulators/tile_walk.html"' in got
    assert figures.shown == {"tile_walk": ("lessons/05_a/b_two.html", 2)}
    link = f'<a href="{figures.lead("../pictures/a.svg")}">A</a>'
    assert figures.refer(link, second) == '<a href="a_one.html#figure-1">A (figure 5.1)</a>'


def test_the_first_sentence_of_a_page_that_sets_a_simulator_says_its_figure(figures):
    figures.simulator("<div></div>", "tile_walk", "Tile walk")
    one, other = (
        '<a href="#set/tile_walk?m=1">one row</a>',
        '<a href="#set/gemm_tiling.tile_walk?m=2">two</a>',
    )
    got = figures.refer(f"{one}, {other}", figures.page)
    assert got == f'{one} (<a href="#figure-1">figure 5.1</a>), {other}'
    elsewhere = '<a href="#set/roofline?batch=1">not in this lesson</a>'
    assert figures.refer(elsewhere, figures.page) == elsewhere
