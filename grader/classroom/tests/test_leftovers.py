"""Nothing that was handed in is lost without a word: archives, wrong names, wrong folders."""

import json
import stat
import zipfile

import pytest

from grader.classroom import command, grading_round, leftovers, unpack
from grader.classroom.tests.conftest import LAB, RIGHT

NOTEBOOK = "concepts.ipynb"


def zipped(course, members, name="concepts.ipynb.zip", **more):
    """An archive in eve's folder; members: (path in it, what it holds)."""
    path = course.place("eve").with_name(name)
    with zipfile.ZipFile(path, "w", **more) as archive:
        for member, data in members:
            archive.writestr(member, data)
    return path


def test_a_lone_archive_is_unpacked_and_graded(course):
    mine = json.dumps(course.notebook(RIGHT))
    zipped(
        course,
        [("hand in/concepts.ipynb", mine), ("__MACOSX/hand in/._concepts.ipynb", "x"), ("notes.txt", "mine")],
    )
    row = course.grade()["eve"]
    assert row.points == 5 and row.said == ["concepts.ipynb.zip was unpacked: concepts.ipynb."]
    assert sorted(path.name for path in course.place("eve").parent.iterdir()) == [
        NOTEBOOK,
        "concepts.ipynb.zip",
    ]
    again = course.grade()["eve"]
    assert again.unchanged and again.said == row.said


def link():
    info = zipfile.ZipInfo(NOTEBOOK)
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


BOMB = b" " * 50_000_000
HOSTILE = {
    "a bomb": (lambda c: zipped(c, [(NOTEBOOK, BOMB)], compression=zipfile.ZIP_DEFLATED), "holds concepts.ipynb of more than 2 MB"),
    "a way out": (lambda c: zipped(c, [(f"../../{NOTEBOOK}", "{}")]), "under a path that leads out of the archive"),
    "a way to the root": (lambda c: zipped(c, [(f"/etc/{NOTEBOOK}", "{}")]), "under a path that leads out of the archive"),
    "a link": (lambda c: zipped(c, [(link(), "/etc/passwd")]), "holds concepts.ipynb as a link"),
    "two of a name": (lambda c: zipped(c, [(NOTEBOOK, "{}"), (f"old/{NOTEBOOK}", "{}")]), "holds concepts.ipynb more than once"),
    "ten thousand files": (lambda c: zipped(c, [(f"{n}.txt", "") for n in range(1001)]), "holds more than 1000 files"),
    "packed otherwise": (lambda c: zipped(c, [(NOTEBOOK, "{}")], compression=zipfile.ZIP_LZMA), "packed in an unusual way"),
    "no archive": (lambda c: c.place("eve").with_name("a.zip").write_bytes(b"PK\x05\x06" + b"\0" * 4), "is not a readable zip archive"),
    "a link to one": (lambda c: c.place("eve").with_name("a.zip").symlink_to("/etc/passwd"), "is a link, and links are not read"),
    "an archive in it": (lambda c: zipped(c, [("work/inner.zip", b"PK"), ("__MACOSX/._a.zip", "")]), "but work/inner.zip: unpack it by hand"),
    "another name": (lambda c: zipped(c, [("My Lab.ipynb", "{}"), ("b.txt", "")]), "but My Lab.ipynb: unpack it by hand, name the notebooks so"),
    "nothing of the lab": (lambda c: zipped(c, [("kernel.py", "")]), "holds none of this lab's notebooks (concepts.ipynb), so the archive is not read"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_archive_is_left_packed_and_named(course, name):
    make, words = HOSTILE[name]
    make(course)
    folder = course.place("eve").parent
    before = sorted(path.name for path in folder.iterdir())
    (said,) = unpack.lone(folder, [NOTEBOOK])
    assert words in said
    assert (
        sorted(path.name for path in folder.iterdir()) == before
        and len(list(folder.parent.parent.iterdir())) == 1
    )


def test_an_archive_never_takes_the_place_of_what_is_there(course):
    path = course.hand_in("eve", RIGHT)
    before = path.read_bytes()
    zipped(course, [(NOTEBOOK, "{}")])
    assert unpack.lone(path.parent, [NOTEBOOK]) == [
        "concepts.ipynb.zip is not read: concepts.ipynb is already there."
    ]
    assert path.read_bytes() == before
    zipped(course, [(NOTEBOOK, "{}")], name="b.zip")
    assert all("there are 2 archives" in said for said in unpack.lone(path.parent, [NOTEBOOK]))


def test_every_file_and_folder_of_a_submission_is_named_with_what_to_do(course):
    folder = course.hand_in("eve", RIGHT).parent
    (folder / "concepts.py").write_text("def reuse(): 1")
    (folder / "all.tar.gz").write_text("x")
    (folder / "old/deep").mkdir(parents=True)
    (folder / "old/deep/concepts.ipynb").write_text("{}")
    (folder / "pictures").mkdir()
    (folder / ".ipynb_checkpoints").mkdir()
    (folder / "submission_secret.txt").write_text("of nbgrader's exchange")
    (folder / "link.ipynb").symlink_to("/etc/passwd")
    assert leftovers.in_lab(folder, [NOTEBOOK]) == [
        "all.tar.gz is an archive and was not read. Unpack it here and run this again.",
        "concepts.py is not a notebook and was not read (is it meant to be concepts.ipynb?). Ask for the notebook.",
        "link.ipynb is a link or no plain file, and was not read.",
        "The folder old was not looked into: old/deep holds concepts.ipynb. Move them up and run this again.",
        "The folder pictures was not searched, because it holds none of this lab's notebooks.",
    ]
    for number in range(9):
        (folder / f"note_{number}.txt").write_text("mine")
    row = course.grade()["eve"]
    assert row.said[-1] == "The same of 9 files more, each in the log." and row.points == 5
    log = (course.root / grading_round.PLACE / f"{LAB}.log").read_text()
    assert all(f"eve: note_{number}.txt was not read" in log for number in range(9))


def test_what_lies_beside_the_labs_folders_is_named(course, capsys, monkeypatch):
    course.hand_in("ada", RIGHT)
    submitted = course.root / "submitted"
    (submitted / "loose.ipynb").write_text("{}")
    (submitted / "bob").mkdir()
    (submitted / "bob/concepts.ipynb").write_text("{}")
    (submitted / "cy/01_gemm").mkdir(parents=True)
    (submitted / "cy/01_gemm/concepts.ipynb").write_text("{}")
    monkeypatch.setattr(command, "ROOT", course.root)
    assert command.main([LAB]) == 0
    said = capsys.readouterr().out
    for words in (
        "not used: submitted/loose.ipynb is outside every student's folder. Move it to submitted/STUDENT/LAB/.",
        "not used: submitted/bob/concepts.ipynb is outside the labs' folders and was not read. Move it into the folder of its lab.",
        "not used: submitted/cy/01_gemm is not a lab of this course and was not read (is it meant to be 01_gemm_tiling?): rename it and run this again.",
    ):
        assert words in said
