"""The labs' files without a browser: whole pages, nothing that gives an answer away, links that lead on."""

import gzip
import hashlib
import io
import json
import re
import shutil
import zipfile

import pytest

from grader.paths import ROOT
from grader.release import leaks
from grader.site import __main__ as command
from grader.site import build, bundle, codemirror, page, ranged
from grader.site.tab import served
from widgets.site import npm

LABS = build.labs()
IMPORTED = re.compile(r"^(?:import|export) .*\bfrom ['\"]([^'\"]+)['\"]", re.M)
needs_answers = pytest.mark.skipif(
    not (ROOT / "solutions").exists(), reason="solutions/, which is not handed out"
)


def held(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        return {name: file.read(name) for name in file.namelist()}


def lab_page(lab: str) -> str:
    links = build.Links(lab, ROOT)
    return page.LabPage(
        ROOT / "labs" / f"{lab}.ipynb", links.address, links.picture, f"labs/{lab}.html"
    ).html("")


@pytest.mark.parametrize("lab", LABS)
def test_a_page_has_a_place_for_every_cell(lab):
    html = lab_page(lab)
    cells = json.loads((ROOT / "labs" / f"{lab}.ipynb").read_text(encoding="utf-8"))["cells"]
    shown = re.findall(r'data-cell="(\w+)" data-kind="(\w+)"', html)
    written = [cell["id"] for cell in cells if page.is_answer(cell)]
    assert [name for name, kind in shown if kind in ("answer", "text")] == written
    assert sum(kind == "answer" for _, kind in shown) == len(bundle.questions_of(lab)) > 0
    code = [cell for cell in cells if cell["cell_type"] == "code" and not page.is_check(cell)]
    assert len(code) == sum(kind != "text" for _, kind in shown) + html.count('class="simulator"')
    assert html.count("worker-src blob:") == 1 and 'class="solution"' not in html
    assert not re.search(r'(?:src|href)="(?:https?:)?//(?!localhost)', html)


@needs_answers
@pytest.mark.parametrize("lab", [*LABS, "judge"])
def test_no_answer_is_in_a_bundle(lab):
    files = held(bundle.shared() if lab == "judge" else bundle.of_lab(lab))
    ours = {name: text for name, text in files.items() if not name.startswith(("triton/", "kernels/"))}
    names = " ".join(name for name in files if not name.startswith("triton/"))
    assert not [name for name, text in files.items() if name.startswith("kernels/") and b"triton.jit" in text]
    assert "/answers/" not in names and "/tests/" not in names and "solutions" not in names
    lines = {
        line.strip() for text in ours.values() if text[:2] != b"PK" for line in text.decode().splitlines()
    }
    given = [
        answer for answer in leaks.solutions(ROOT) if len(answer) >= leaks.WHOLE and set(answer) <= lines
    ]
    assert given == []


@needs_answers
def test_an_instructors_bundle_draws_its_hidden_cases():
    files = held(bundle.of_lab("00_roofline/concepts", instructor=True))
    assert "grader/topics/roofline/roof/cases.py" in files
    assert "recorded/" not in " ".join(files)
    assert "def roof" in build.solved("00_roofline/concepts", ROOT)["roof"]
    assert "SOLUTION" not in "".join(build.solved("00_roofline/concepts", ROOT).values())


def test_the_same_texts_make_the_same_bundle():
    assert bundle.of_lab("05_flash_attention/kernel") == bundle.of_lab("05_flash_attention/kernel")


def test_lessons_lead_to_the_labs_pages(tmp_path):
    (tmp_path / "lessons").mkdir()
    (tmp_path / "lessons/a.html").write_text('<a href="../labs.html#01_gemm_tiling-kernel">Kernel</a>')
    (tmp_path / "labs.html").write_text('<li id="01_gemm_tiling-kernel">Lab<br>more</li>')
    build.put(tmp_path, {})
    assert '<a href="../labs/01_gemm_tiling/kernel.html">' in (tmp_path / "lessons/a.html").read_text()
    assert (
        '<a href="labs/01_gemm_tiling/kernel.html">Open in this browser</a>'
        in (tmp_path / "labs.html").read_text()
    )


def test_what_shrinks_is_packed_next_to_itself(tmp_path):
    (tmp_path / "a.html").write_text("tile " * 1000)
    (tmp_path / "b.zip").write_bytes(b"PK" * 1000)
    assert build.pack(tmp_path) < 2100
    assert gzip.decompress((tmp_path / "a.html.gz").read_bytes()) == (tmp_path / "a.html").read_bytes()
    assert not (tmp_path / "b.zip.gz").exists()
    build.pack(tmp_path)
    assert not (tmp_path / "a.html.gz.gz").exists()


def test_the_editors_modules_import_each_other_alone():
    try:
        made = codemirror.made()
    except npm.NotFetched as problem:
        pytest.skip(f"needs CodeMirror: {problem}")
    names = {name.rpartition("/")[2] for name in made}
    found = {one for text in made.values() for one in IMPORTED.findall(text.decode())}
    assert found and all(one.removeprefix("./") in names for one in found)
    assert made[f"{codemirror.FOLDER}/LICENSE"].count(b"Permission is hereby granted") == len(
        codemirror.packages()
    )


def test_numpy_comes_from_the_place_that_is_named_if_it_is_the_pinned_one(tmp_path, capsys):
    try:
        name, known = build.numpy()
    except (npm.NotFetched, ranged.NotFetched) as problem:
        pytest.skip(f"needs Pyodide and its numpy: {problem}")
    place, site = tmp_path / "place", tmp_path / "site"
    place.mkdir()
    (site / command.MARK).parent.mkdir(parents=True)
    (site / command.MARK).touch()
    shutil.copy(known, place / name)
    content, sha256 = known.read_bytes(), hashlib.sha256(known.read_bytes()).hexdigest()
    with served(place) as (address, _):
        for i, source in enumerate((str(place), address)):
            assert ranged.given(source, name, sha256, tmp_path / f"cache{i}").read_bytes() == content
    (place / name).write_bytes(content[:-1])
    for source, said in ((place, "must have the sha256"), (tmp_path / "none", f"must hold {name}")):
        assert command.main(["--out", str(site), "--numpy", str(source)]) == 1
        assert said in capsys.readouterr().err
    assert build.numpy()[1].read_bytes() == content
