"""Every simulator has its place in Lab, and what is stored of it is what it draws today."""

import json
import re
import shutil
from html import escape, unescape

import pytest

from widgets import lab_pages
from widgets.registry import every
from widgets.site.lessons import Shown
from widgets.site.topics import topics

ROOT = lab_pages.ROOT
TOPICS = topics(ROOT)


def test_what_is_stored_is_what_the_simulators_say_today():
    assert lab_pages.differing() == []


def test_the_start_page_shows_every_simulator_lesson_and_lab_in_the_courses_order():
    text = (ROOT / lab_pages.START).read_text(encoding="utf-8")
    linked = re.findall(r"\((simulators/\w+)\.ipynb\)", text)
    ours = [f"simulators/{topic.number}_{one.name}" for topic in TOPICS for one in topic.simulators]
    assert linked == ours and len(ours) == len(every()) >= 24
    assert all((ROOT / "course" / f"{name}.ipynb").is_file() for name in linked)
    for topic in TOPICS:
        for page in topic.lesson.pages if topic.lesson else ():
            assert f"({page.name}.ipynb)" in text
        assert all(f"(../work/{lab.path}.ipynb)" in text for lab in topic.labs)
    assert "MoE routing" in text and text.index("simulators/00_roofline") < text.index("simulators/00_fusion")


def stored() -> list[tuple]:
    """(notebook, cell, its stored output as HTML) of every cell that shows a simulator."""
    found = []
    for path in sorted((ROOT / "course").rglob("*.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            outputs = cell.get("outputs", [])
            if outputs or re.search(r"^(show|recorded)\(.*\)\Z", "".join(cell["source"]), re.M):
                assert len(outputs) == 1, (path.name, cell["source"])
                found.append((path, cell, "".join(outputs[0]["data"]["text/html"])))
    return found


def test_every_simulator_cell_of_a_lesson_opens_with_its_picture():
    for path, cell, html in stored():
        source = re.search(r'<img src="([^"]+)"', html)[1]
        assert ("-asked" in source) == ("predict=True" in "".join(cell["source"])), (path.name, html)
        assert (path.parent / source).is_file(), f"{path.name} shows {source}: run make build"
        assert "not kept" in html and len(html) < 400
    assert len(stored()) >= len(every())


def test_a_picture_stands_alone():
    for one in every():
        drawn = lab_pages._shown(Shown(one.name, {}))[1]
        assert (
            escape(one.question) in re.sub(r"</text><text[^>]*>", " ", drawn) and escape(one.title) in drawn
        )
        assert drawn.count("<svg") == drawn.count("</svg>") == 2
        assert not re.search(r"https?://(?!www\.w3\.org)|@import", drawn)
        used = set(re.findall(r"var\((--tbt-[\w-]+)\)", drawn))  # what falls back to something is no need
        assert used <= set(re.findall(r"(--tbt-[\w-]+)\s*:", drawn)) | {"--tbt-role"}
        left, top, width, height = map(float, re.search(r'viewBox="([^"]+)"', drawn)[1].split())
        assert width > 700 and top < 0 and height > 100


def test_an_opening_of_its_own_has_a_picture_of_its_own():
    name, drawn = lab_pages._shown(Shown("tile_walk", {"m": 1}))
    assert name == "tile_walk-m-1.svg" and drawn != lab_pages._shown(Shown("tile_walk", {}))[1]


def test_before_a_prediction_nothing_is_given_away():
    for one in every():
        if one.prediction:
            name, drawn = lab_pages._shown(Shown(one.name, {}, predict=True))
            asks = " ".join(re.findall(r">([^<]+)</text>", drawn))
            assert name == f"{one.name}-asked.svg" and one.prediction.question in unescape(asks)
            assert drawn.count("<rect") == 2 and "<path" not in drawn


@pytest.fixture
def copy(tmp_path):
    for name in ("course", "labs"):
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copy(ROOT / "README.md", tmp_path)
    return tmp_path


def test_files_are_mended_and_what_is_gone_is_removed(copy):
    assert lab_pages.differing(copy) == []
    picture, gone = (
        copy / lab_pages.PICTURES / "simulators/tile_walk.svg",
        copy / lab_pages.TEXTS / "09_gone.md",
    )
    picture.write_text("<svg/>")
    gone.write_text("# Gone")
    start = copy / lab_pages.START
    start.write_text(start.read_text().replace("[Tile walk and reuse]", "[Another]"))
    wrong = [picture, gone, start]
    assert lab_pages.differing(copy) == sorted(path.relative_to(copy).as_posix() for path in wrong)
    lab_pages.write_pages(copy)
    assert lab_pages.differing(copy) == [] and not gone.exists() and "Tile walk" in picture.read_text()
