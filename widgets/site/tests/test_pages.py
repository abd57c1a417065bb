"""The built pages: every link leads somewhere, nothing comes from elsewhere, and nothing is lost."""

import itertools
import json
import posixpath
import re
from html import unescape
from html.parser import HTMLParser

import pytest

from widgets.answer import answer
from widgets.registry import every, find
from widgets.site import build, shared
from widgets.site.contents import page_address, relative
from widgets.site.lessons import lessons
from widgets.site.npm import packages
from widgets.site.stills import _outline, card
from widgets.site.topics import topics

GIVEN = {place for package in packages() for place in package.places.values()}  # by npm, when it is put
VOID = {"meta", "link", "img", "br", "hr", "input", "rect", "path", "circle", "line"}


class Page(HTMLParser):
    """The ids, the references and the balance of one page."""

    def __init__(self, html: str):
        super().__init__()
        self.ids, self.links, self.fetched, self.open, self.wrong = [], [], [], [], []
        self.ways = {"prev": [], "next": []}
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.ids += [given["id"]] if "id" in given else []
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
            self.ways.get(given.get("rel"), []).append(given["href"])
        self.fetched += [given[key] for key in ("src", "srcset", "data", "poster") if key in given]
        self.fetched += [given["href"]] if tag in ("link", "image", "use") and "href" in given else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag in VOID:
            return
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}> at {self.getpos()}")


@pytest.fixture(scope="module")
def pages(made):
    return {name: Page(content.decode()) for name, content in made.items() if name.endswith(".html")}


def test_everything_has_its_page(pages):
    assert {f"simulators/{d.name}.html" for d in every()} <= set(pages)
    read = {page_address(page) for lesson in lessons(build.ROOT / "course") for page in lesson.pages}
    assert len(read) >= 7 and read <= set(pages)
    assert {f"simulators/{d.name}.html" for d in every()} <= set(pages["index.html"].links)


def test_pages_are_well_formed(pages):
    for name, page in pages.items():
        assert not page.wrong and not page.open, (name, page.wrong[:3], page.open[-3:])
        assert len(set(page.ids)) == len(page.ids), (name, [i for i in page.ids if page.ids.count(i) > 1])


def test_every_link_leads_somewhere(pages, made):
    for name, page in pages.items():
        for link in page.links:
            if re.match("https?:|mailto:", link):
                continue
            if link.startswith("#set/"):  # a story step: its simulator stands on the same page
                simulator = find(link.removeprefix("#set/").partition("?")[0])
                assert f'"name":"{simulator.id}"'.encode() in made[name], f"{name} links {link}"
                continue
            path, _, part = link.partition("#")
            there = posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) if path else name
            assert there in made or there in GIVEN, f"{name} links {link}"
            assert not part or part in pages[there].ids, f"{name} links {link}"


def test_a_shared_link_says_its_title_and_shows_its_own_picture(made):
    """As whole addresses where it is known where the pages will be served."""
    told = shared.addressed(made, "https://tiles.example/course/")
    for name, html in told.items():
        if not name.endswith(".html"):
            continue
        page = html.decode()
        if "moved.js" in page:  # an old address only leads on
            continue
        title = re.search("<title>(.+?)</title>", page)[1]
        assert f'<meta property="og:title" content="{title}">' in page
        own = (
            name.removeprefix("simulators/").removesuffix(".html")
            if name.startswith("simulators/")
            else "course"
        )
        assert f'content="https://tiles.example/course/assets/shared/{own}.png"' in page
    assert shared.addressed(made, "") is made


def test_previous_and_next_lead_through_all_lessons_and_all_simulators_from_both_ends(pages):
    read = topics(build.ROOT)
    lesson_pages = [page_address(page) for topic in read if topic.lesson for page in topic.lesson.pages]
    simulator_pages = [f"simulators/{d.name}.html" for topic in read for d in topic.simulators]
    for row in (lesson_pages, simulator_pages):
        for here, there in itertools.pairwise(row):
            assert pages[here].ways["next"] == [relative(there, here)] * 2, here
            assert pages[there].ways["prev"] == [relative(here, there)] * 2, there


def test_a_lesson_in_pages_leads_on_from_its_old_address(made, pages):
    folders = [topic for topic in topics(build.ROOT) if topic.lesson and topic.lesson.in_pages]
    assert folders
    for topic in folders:
        old, first = f"lessons/{topic.lesson.name}.html", page_address(topic.lesson.pages[0])
        html = made[old].decode()
        assert f'content="0; url={relative(first, old)}"' in html
        places = json.loads(unescape(re.search(r'data-places="([^"]+)"', html)[1]))
        heads = [(page, head) for page in topic.lesson.pages for head in pages[page_address(page)].ids]
        assert len(places) > 10 and set(places) <= {head for _, head in heads}
        for name, there in places.items():
            path, _, part = there.partition("#")
            assert part == name and name in pages[posixpath.normpath(f"lessons/{path}")].ids
        where = contents_of(made[first].decode())
        assert [title for _, title in where] == [page.title for page in topic.lesson.pages]
        assert f"page 1 of {len(topic.lesson.pages)} · about " in made[first].decode()


def contents_of(html: str) -> list[tuple[str, str]]:
    """The pages of the open lesson in the list beside the text."""
    listed = re.search(r'<ol class="pages">(.*?)</ol><p class="kind">', html, re.S)[1]
    return re.findall(r'<a href="([^"#]+\.html)"[^>]*>(.*?)</a>', listed)


def test_figures_are_numbered_in_order(made):
    for topic in (topic for topic in topics(build.ROOT) if topic.lesson):
        html = "".join(made[page_address(page)].decode() for page in topic.lesson.pages)
        captions = re.findall(r"<figcaption><b>(Figure [\d.]+)</b>", html)
        wanted = [f"Figure {int(topic.number)}.{i + 1}" for i in range(html.count("<figcaption"))]
        assert captions == wanted and captions, topic.lesson.name


def test_nothing_is_fetched_from_elsewhere(pages, made):
    for name, page in pages.items():
        for reference in page.fetched:
            assert not re.match(r"[a-z]+:|//", reference), f"{name} fetches {reference}"
            there = posixpath.normpath(posixpath.join(posixpath.dirname(name), reference))
            assert there in made, f"{name} fetches {reference}"
    for name, content in made.items():
        if name.endswith((".css", ".js", ".svg")):
            rest = content.decode().replace("http://www.w3.org/2000/svg", "")
            for place in re.findall(r'url\("\.\./([^"]+)"\)', rest):
                assert place in GIVEN, f"{name} fetches {place}"
                rest = rest.replace(f'url("../{place}")', "")
            assert not re.search(r"https?://|@import|url\((?!#)(?!\$)", rest), name


def test_a_simulator_carries_its_opening_answer(made):
    for one in every():
        html = made[f"simulators/{one.name}.html"].decode()
        data = json.loads(re.search(r'<script type="application/json">(.*?)</script>', html, re.S)[1])
        assert data["answer"] == json.loads(json.dumps(answer(one, start=one.inputs())))
        first = answer(one)["frames"][0]
        assert "<table>" in html and html.count('<svg class="tbt-scene"') == 1
        if not one.stepper:
            assert all(text in html for _, text, *_ in first["figures"])


def test_a_lesson_keeps_its_words_its_simulators_and_its_details(made):
    for page in [page for topic in topics(build.ROOT) if topic.lesson for page in topic.lesson.pages]:
        html = made[page_address(page)].decode()
        written = "\n".join(cell.text for cell in page.cells)
        asked = [cell.shown for cell in page.cells if cell.shown]
        assert html.count('<div class="simulator"') == len(asked)
        assert 'class="unread"' not in html and "$$" not in html
        headings = re.findall(r"^## ", re.sub(r"```.*?```", "", written, flags=re.S), re.M)
        assert len(re.findall(r'<h2 id="', html)) == len(headings)
        for shown in asked:
            if shown.predict:
                assert find(shown.name).prediction.question.replace("'", "&#x27;") in html.replace(
                    "&#39;", "&#x27;"
                )


def test_labs_say_that_they_need_jupyterlab(made):
    html = made["labs.html"].decode()
    for topic in topics(build.ROOT):
        for lab in topic.labs:
            assert f"work/{lab.path}.ipynb" in html
    assert "JupyterLab" in html and "make lab" in re.sub("<[^>]+>", "", html)


@pytest.mark.parametrize("simulator", every(), ids=lambda d: d.id)
def test_a_card_shows_marks_without_words(simulator):
    html = card(simulator)
    assert "<text" not in html and "<title>" not in html.replace("<title></title>", "")
    box = [float(v) for v in re.search(r'viewBox="([^"]+)"', html)[1].split()]
    assert 60 < box[2] <= 740 and 30 < box[3] <= 700


def test_outlines():
    assert _outline({"t": "circle", "x": 5, "y": 6, "r": 2}) == (3, 4, 7, 8)
    assert _outline({"t": "line", "x": 9, "y": 1, "x2": 2, "y2": 4}) == (2, 1, 9, 4)
    assert _outline({"t": "rect", "x": 1, "y": 2, "w": 3, "h": 4}) == (1, 2, 4, 6)
    assert _outline({"t": "path", "p": [1, 9, 5, 2]}) == (1, 2, 5, 9)


def test_a_folder_that_is_not_a_site_is_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(ValueError, match="out must be .*, got "):
        build.put(tmp_path, {})
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_an_earlier_site_is_replaced(tmp_path, monkeypatch):
    monkeypatch.setattr(build.npm, "ready", lambda: None)
    monkeypatch.setattr(build.npm, "unpack", lambda out: 100)
    monkeypatch.setattr(build, "compile_ahead", lambda out: None)
    old, new = {build.MARK: b"1", "old.html": b"old"}, {build.MARK: b"22", "deep/new.html": b"new"}
    build.put(tmp_path / "site", old)
    assert build.put(tmp_path / "site", new) == 105
    assert (
        not (tmp_path / "site/old.html").exists() and (tmp_path / "site/deep/new.html").read_bytes() == b"new"
    )
