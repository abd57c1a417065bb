"""The site as a book, in Chromium: found by chapter and by word, read at any width and theme, printed whole.

Where every lesson is laid out alike, the shortest with drawings stands for all; `make proofs` takes the others too.
"""

import itertools
from functools import partial

import pytest
from playwright.sync_api import expect

from widgets.registry import every
from widgets.site import build
from widgets.site.contents import page_address
from widgets.site.listing import printed
from widgets.site.topics import topics
from widgets.tests.accessible import broken_rules

pytestmark = pytest.mark.browser
TOPICS = topics(build.ROOT)
READ = [topic for topic in TOPICS if topic.lesson]
READING = [page for topic in READ for page in topic.lesson.pages]
LESSONS = [page_address(page) for page in READING]
WITH_DRAWINGS = [page for page in READING if "pictures/" in "".join(cell.text for cell in page.cells)]
WITH_BOTH = [
    page for page in WITH_DRAWINGS if any(cell.shown for cell in page.cells)
]  # drawings and simulators
DRAWN = page_address(min(WITH_BOTH, key=lambda page: len(page.path.read_text())))  # axe reads every word
SIMULATOR = f"simulators/{every()[0].name}.html"
PAGES = ["index.html", "labs.html", SIMULATOR, DRAWN]
EACH_LESSON = [path if path == DRAWN else pytest.param(path, marks=pytest.mark.slow) for path in LESSONS]
WITH_SIMULATORS = {page_address(page) for page in READING if any(cell.shown for cell in page.cells)}
WITH_FIGURES = WITH_SIMULATORS | {page_address(page) for page in WITH_DRAWINGS}
PHONE, LAPTOP, WALL = (
    {"width": 390, "height": 800},
    {"width": 1280, "height": 800},
    {"width": 1920, "height": 1000},
)


@pytest.fixture
def opened(opened):
    return partial(opened, python=False)


def contents(page):
    return page.get_by_role("navigation", name="Contents", exact=True)


def test_chapters_stand_beside_the_text_in_the_courses_order(opened):
    page = opened(LESSONS[-1], viewport=LAPTOP)
    chapters = contents(page).locator(".chapter > a").all_inner_texts()
    assert [text.split()[0] for text in chapters] == [topic.number for topic in TOPICS]
    assert "03 MoE routing" in chapters
    box, text = contents(page).bounding_box(), page.locator("article p").nth(3).bounding_box()
    assert box["x"] + box["width"] < text["x"] and box["y"] < 120
    here = contents(page).locator('[aria-current="page"]')
    last = READ[-1].lesson
    assert here.inner_text() == (last.pages[-1].title if last.in_pages else f"{READ[-1].number} {last.title}")


def test_the_list_follows_what_is_read(opened):
    page = opened(LESSONS[0], viewport=LAPTOP)
    heads = page.locator("article h2")
    for at in (1, heads.count() - 1):
        heads.nth(at).evaluate("head => scrollTo(0, head.getBoundingClientRect().top + scrollY - 90)")
        marked = contents(page).locator('[aria-current="location"]')
        expect(marked).to_have_text(heads.nth(at).inner_text())
        expect(marked).to_be_in_viewport()
    assert float(page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--read')")) > 0.5


def test_on_a_phone_the_contents_are_one_press_away(opened):
    page = opened(LESSONS[0], viewport=PHONE)
    expect(contents(page)).to_be_hidden()
    button = page.get_by_role("button", name="Contents")
    button.focus()
    page.keyboard.press("Enter")
    expect(contents(page)).to_be_visible()
    page.keyboard.press("Escape")
    expect(contents(page)).to_be_hidden()
    expect(button).to_be_focused()
    button.press("Enter")
    wanted = contents(page).locator(".sections a").nth(2)
    name = wanted.inner_text()
    wanted.press("Enter")
    expect(contents(page)).to_be_hidden()
    expect(page.get_by_role("heading", name=name, exact=True)).to_be_in_viewport()
    expect(page.locator(".top .where")).to_have_text(name)


def test_a_search_finds_words_in_titles_texts_and_simulators_with_no_server(opened):
    page = opened(f"{LESSONS[0]}", viewport=LAPTOP)
    page.locator("article p").first.click()
    page.keyboard.press("/")
    field = page.get_by_role("searchbox", name="Search the course")
    expect(field).to_be_focused()
    found = page.locator("#site-search .found a")
    for topic in READ:
        field.fill(topic.title.lower())
        expect(found.first.locator("b")).to_contain_text(topic.title)
    field.fill("tile walk")
    expect(page.locator('#site-search .found a[href$="simulators/tile_walk.html"]')).to_be_visible()
    expect(found.first.locator("mark").first).to_be_visible()
    field.fill("no such words qqq")
    expect(page.locator("#site-search .count")).to_contain_text("Nothing found")
    field.fill("tile wal")
    expect(found.first).to_be_visible()
    page.keyboard.press("ArrowDown")
    expect(found.first).to_be_focused()
    address = found.first.get_attribute("href")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/{address.rpartition('../')[2]}")
    page.keyboard.press("/")
    page.keyboard.press("Escape")
    expect(field).to_be_hidden()


def test_previous_and_next_are_pressed_at_both_ends(opened):
    """Which pages they lead to is read from the pages themselves."""
    page = opened(LESSONS[0], scripts=False)
    for end, (here, there) in enumerate(itertools.pairwise(LESSONS[:3])):
        assert page.url.endswith(here)
        page.locator('a[rel="next"]').nth(end).click()
        page.wait_for_url(f"**/{there}")
    for end, there in enumerate(reversed(LESSONS[:2])):
        page.locator('a[rel="prev"]').nth(end).click()
        page.wait_for_url(f"**/{there}")


def colour(page, selector: str, of: str) -> float:
    """How light it is, 0 to 255, painted on a canvas, so that any way of writing a colour is read."""
    return page.locator(selector).first.evaluate(
        """(one, of) => { const pen = document.createElement('canvas').getContext('2d');
        pen.fillStyle = getComputedStyle(one)[of]; pen.fillRect(0, 0, 1, 1);
        const [r, g, b] = pen.getImageData(0, 0, 1, 1).data; return (r + g + b) / 3; }""",
        of,
    )


def test_the_theme_turns_page_drawings_and_simulators_and_is_kept(opened):
    page = opened(DRAWN, color_scheme="light", viewport=LAPTOP)
    seen = {"html": "backgroundColor", "figure.drawing svg rect": "fill", ".tbt": "backgroundColor"}
    assert all(colour(page, one, of) > 200 for one, of in seen.items())
    button = page.get_by_role("button", name="Theme")
    assert "as your system" in button.get_attribute("aria-label")
    for word, dark in (("dark", True), ("light", False)):
        button.press("Enter")
        assert word in button.get_attribute("aria-label")
        assert all((colour(page, one, of) < 90) == dark for one, of in seen.items()), word
    page.emulate_media(color_scheme="dark")
    page.reload()
    assert colour(page, "html", "backgroundColor") > 200
    page.evaluate("localStorage.clear()")
    page.reload()
    assert all(colour(page, one, of) < 90 for one, of in seen.items())
    page.get_by_role("button", name="Theme").press("Enter")
    assert colour(page, "html", "backgroundColor") > 200, "the first click is seen on a dark system too"


def test_headings_have_links_and_code_can_be_copied(opened):
    page = opened(LESSONS[0], viewport=LAPTOP, permissions=["clipboard-read", "clipboard-write"])
    head = page.locator("article h2").nth(1)
    page.get_by_role("link", name=f"Link to “{head.inner_text()}”").press("Enter")
    assert page.url.endswith("#" + head.get_attribute("id"))
    listing = page.locator(".prose > .listing").first
    listing.get_by_role("button", name="Copy this code").press("Enter")
    expect(listing.get_by_role("button")).to_have_text("Copied")
    text = page.evaluate("navigator.clipboard.readText()")
    first = next(
        cell.text for cell in READ[0].lesson.cells if cell.kind == "code" and "import" not in cell.text
    )
    assert len(text.splitlines()) > 1 or text.strip() == first.strip()
    assert "\n\n\n" not in text and text.strip() in "".join(cell.text for cell in READ[0].lesson.cells)


@pytest.mark.parametrize("path", EACH_LESSON)
def test_every_figure_has_its_frame(opened, path):
    page = opened(path)
    assert bool(page.locator("figcaption > b").count()) == (path in WITH_FIGURES)
    assert page.locator("article > .simulator, article > p > img").count() == 0


def test_text_and_formulas_have_fonts_of_their_own(opened):
    page = opened(next(path for path in LESSONS if "c_roofline" in path))
    state = page.evaluate(
        "async () => { await document.fonts.ready; return [...document.fonts].map(f => [f.family, f.status]); }"
    )
    loaded = [family.strip('"') for family, status in state if status == "loaded"]
    assert {"Shipped Math", "Shipped Text"} <= {*loaded}


CUT = """() => [...document.querySelectorAll('main pre')].filter(one => one.checkVisibility()
  && (one.scrollWidth > one.clientWidth + 1 || one.getBoundingClientRect().right > innerWidth)).map(one => one.textContent.slice(0, 60))"""


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_no_code_is_cut(opened, base, step):
    page = opened(LESSONS[0])
    for path in LESSONS[::step]:  # one after the other: a page of its own would cost each a second and a half
        page.goto(f"{base}/{path}")
        page.evaluate("document.querySelectorAll('main details').forEach(one => { one.open = true; })")
        for width in (390, 1280):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate(CUT) == [], (path, width)


PRINTED = """dropped, error         no limit          f = 1.5         f = 1.25            f = 1
         top 1       0.0%, 0.31       0.7%, 0.32       1.9%, 0.33       6.3%, 0.37
         top 8       0.0%, 0.30       0.1%, 0.30       0.6%, 0.31       3.2%, 0.34
"""
AS_WRITTEN = """([printed, sentence]) => {
  const rows = pre => [...pre.querySelectorAll('.line')].map(line => Math.round(line.getBoundingClientRect().height / parseFloat(getComputedStyle(pre).lineHeight)));
  const [columns, words] = [printed, sentence].map(html => { document.querySelector('article').insertAdjacentHTML('afterbegin', html); return document.querySelector('article > pre'); });
  return [rows(columns), columns.scrollWidth - columns.clientWidth, rows(words), words.scrollWidth - words.clientWidth, document.documentElement.scrollWidth];
}"""


def test_printed_columns_scroll_in_their_own_box_on_a_phone(opened):
    """A wrapped row would stand under another column's head; a sentence wraps."""
    page = opened(DRAWN, viewport=PHONE)
    long = "at batch   16 a step reads every weight once, so it takes 3.4 ms and most of the tensor cores wait for bytes"
    blocks = [printed(PRINTED, "Printed"), printed(long, "Printed")]
    columns, over, words, cut, wide = page.evaluate(AS_WRITTEN, blocks)
    assert columns == [1, 1, 1] and over > 20
    assert words[0] > 1 and cut <= 0 and wide <= PHONE["width"]
    box = page.locator("article > pre.columns")
    box.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("() => document.querySelector('article > pre.columns').scrollLeft > 0")
    assert broken_rules(page, "article > pre.columns") == []
    page.emulate_media(media="print")
    assert page.evaluate(CUT) == []


@pytest.mark.parametrize("path", EACH_LESSON)
def test_print_is_whole(opened, path):
    page = opened(path, viewport={"width": 700, "height": 990})
    if path in WITH_SIMULATORS:
        page.wait_for_selector(".tbt[data-revision]", state="attached")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert page.evaluate(CUT) == []
    assert page.locator("input:visible, button:visible, select:visible").count() == 0
    assert page.locator("nav:visible, header:visible").count() == 0
    for one in page.locator("main .simulator").all():
        assert one.locator("svg.tbt-scene").last.is_visible()
    answers = page.locator(".prose > details:not(.setup) > *:not(summary)")
    assert all(one.is_visible() for one in answers.all())
    page.emulate_media(media="screen")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator(".prose > details[open]").count() == 0


def test_the_reader_meets_the_text_before_imports_and_after_few_stops(opened):
    page = opened(LESSONS[0], viewport=LAPTOP)
    code = page.locator("main pre.code:visible").all_inner_texts()
    assert code and not any(text.lstrip().startswith(("import ", "from ")) for text in code[:1])
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    inside = "document.querySelector('main').contains(document.activeElement)"
    stops = 0
    while not page.evaluate(inside):
        page.keyboard.press("Tab")
        stops += 1
    assert stops < 6
    page.reload()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate(inside)


LONGEST = """() => Math.max(...[...document.querySelectorAll('article > p, article li, .lead, .aside')].filter(p => p.checkVisibility()).map(p => {
  const walk = document.createTreeWalker(p, NodeFilter.SHOW_TEXT), range = document.createRange();
  const lines = new Map();
  while (walk.nextNode()) for (let i = 0; i < walk.currentNode.length; i++) {
    range.setStart(walk.currentNode, i); range.setEnd(walk.currentNode, i + 1);
    const top = Math.round(range.getBoundingClientRect().bottom / 12);
    lines.set(top, (lines.get(top) ?? 0) + 1);
  }
  const counts = [...lines.values()].sort((a, b) => b - a);
  return counts[Math.floor(counts.length / 10)] ?? 0;
}))"""


@pytest.mark.parametrize("path", ["index.html", *EACH_LESSON])
def test_lines_are_about_75_characters_on_a_wide_screen(opened, path):
    page = opened(path, viewport=WALL)
    assert 0 < page.evaluate(LONGEST) <= 80


@pytest.mark.parametrize("path", PAGES)
def test_pages_fit_every_width(opened, path):
    page = opened(path)
    for width in (360, 390, 800, 1179, 1180, 1280, 1600, 1920):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width, width


LOOKS = ({"color_scheme": "light"}, {"color_scheme": "dark"}, {"forced_colors": "active"})
ON_A_PHONE = [
    pytest.param(path, 390, LOOKS[:1], marks=pytest.mark.slow if path != PAGES[0] else (), id=f"phone-{path}")
    for path in PAGES
]
ON_A_DESK = [pytest.param(path, 1280, LOOKS, id=f"desk-{path}") for path in PAGES if path != DRAWN]
A_LESSON = [
    pytest.param(DRAWN, 1280, LOOKS[:2], id=f"desk-{DRAWN}"),
    pytest.param(DRAWN, 1280, LOOKS[::2], marks=pytest.mark.slow, id=f"forced-{DRAWN}"),
]


@pytest.mark.parametrize(("path", "width", "looks"), [*ON_A_PHONE, *ON_A_DESK, *A_LESSON])
def test_pages_are_accessible(opened, path, width, looks):
    """A phone lays a page out anew and colours nothing anew."""
    page = opened(path, viewport={"width": width, "height": 800})
    for media in looks:
        page.emulate_media(**media)
        assert broken_rules(page, colour_alone=media != looks[0]) == [], media


def test_the_open_contents_and_search_are_accessible(opened):
    """They alone: the page below them is looked at above."""
    page = opened(DRAWN, viewport=PHONE)
    page.get_by_role("button", name="Contents").click()
    expect(contents(page)).to_be_visible()
    assert broken_rules(page, "#site-contents") == []
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Search").click()
    page.get_by_role("searchbox").fill("tile")
    expect(page.locator("#site-search .found a").first).to_be_visible()
    assert broken_rules(page, "#site-search") == []
