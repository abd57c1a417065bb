"""Put what Canvas or Moodle collected where the class is judged from (python -m grader collect LAB DOWNLOAD.zip)."""

import argparse
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from grader.classroom import grading_round, people, storage_errors
from grader.classroom.downloads import names, times
from grader.classroom.downloads.names import Found
from grader.classroom.downloads.store_upload import keeps_time, place
from grader.classroom.open_safely import STUDENT, TIME
from grader.judge.report import visible
from grader.paths import ROOT

MOST_BYTES = 50_000_000  # of one file. Judging reports a file above the lower limit for notebooks
MOST_FILES = 100  # of one student


@dataclass
class Taken:
    """One student's part of the zip."""

    student: str
    files: dict[str, Found] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m grader collect", description=__doc__)
    parser.add_argument("lab", metavar="LAB", help="a folder of labs/, such as 01_gemm_tiling")
    parser.add_argument("zip", type=Path, metavar="DOWNLOAD.zip", help="all submissions, as downloaded")
    parser.add_argument(
        "--names", type=Path, help="a CSV that says who is who, which Moodle's downloads need"
    )
    parser.add_argument(
        "--times",
        default="",
        metavar="FILE",
        help="when each student handed in, from Moodle's grading worksheet, Canvas's list of submissions as JSON, or a CSV with "
        "the columns student and time. The word zip takes the times of the files in the zip",
    )
    parser.add_argument("--zone", default="UTC", help="of times that name none, such as Europe/Berlin")
    wants = parser.parse_args(argv)
    try:
        if not wants.zip.is_file():
            raise ValueError(
                f"DOWNLOAD.zip must be a file, got {str(wants.zip)!r}, and there is no such file here"
            )
        known = people.read(wants.names) if wants.names else {}
        return collect(ROOT, wants.lab, wants.zip, known, wants.times, wants.zone)
    except (ValueError, OSError, zipfile.BadZipFile) as error:
        return storage_errors.refused("collect", error)


def collect(
    root: Path,
    lab: str,
    download: Path,
    known: dict[str, people.Person],
    times_from: str = "",
    zone: str = "UTC",
) -> int:
    wanted = [path.name for path in sorted((root / "labs" / lab).glob("*.ipynb"))]
    if not grading_round.NAME.fullmatch(lab) or not wanted:
        raise ValueError(
            f"lab must be a folder of labs/ with notebooks, got {lab!r}. `ls labs` shows the labs"
        )
    with zipfile.ZipFile(download) as archive:
        members = [one.filename for one in archive.infolist() if not one.is_dir()]
        platform = names.platform(members)
        read = {member: names.PLATFORMS[platform](member) for member in members}
        whose, unknown = _whose(platform, [one for one in read.values() if one], known)
        handed_in = _times(archive, times_from, zone, known, whose)
        users = len({one.user for one in read.values() if one})
        print(
            f"{download.name}: {_count(len(members), 'file')} of {_count(users, 'student')}, from {platform.capitalize()}"
        )
        for taken in whose.values():
            _choose(taken, wanted)
            files, said = _contents(archive, taken)
            time = handed_in.get(taken.student, "")
            if time and keeps_time(root, lab, taken.student, files):
                time = ""
                said.append(
                    "has none of the lab's notebooks, so the earlier hand-in counts, with its own time"
                )
            state = place(root, lab, taken.student, files, time) if files else "nothing taken"
            print(
                f"  {visible(taken.student)}  {_count(len(files), 'file')}  {state}{f', handed in {time}' if time not in state else ''}"
            )
            print(
                *(f"    {visible(words)}" for words in taken.said + said),
                sep="\n",
                end="\n" * bool(taken.said + said),
            )
    rest = [member for member, one in read.items() if one is None]
    for words in (*unknown, *(f"{member}: not named as {platform.capitalize()} does" for member in rest)):
        print(f"  not taken: {visible(words)}")
    timeless = [taken.student for taken in whose.values() if taken.files and taken.student not in handed_in]
    if times_from and timeless:
        print(f"  no time found for: {', '.join(map(visible, timeless))}")
    if not times_from and any(one.late for one in read.values() if one):
        print("Canvas marked files as late. A penalty needs their times. Run this again with --times FILE.")
    return 1 if unknown or rest else 0


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + "s" * (number != 1)


def _times(
    archive: zipfile.ZipFile, source: str, zone: str, known: dict, whose: dict[str, Taken]
) -> dict[str, str]:
    """Return student -> when the newest of their files was handed in, in timestamp.txt's form."""
    if not source:
        return {}
    if source != "zip":
        return times.read(Path(source), zone, known)
    members = {student: list(taken.files) for student, taken in whose.items()}
    return times.in_zip(archive, zone, members)


def _whose(platform: str, found: list[Found], known: dict) -> tuple[dict[str, Taken], list[str]]:
    """Return files by student, and a sentence for each file without a student."""
    if platform == "moodle" and not known:
        raise ValueError(
            "--names must say who is who for a download of Moodle, which holds full names. Give "
            "a CSV with the columns student and name (or identifier)"
        )
    numbers = people.by("id" if platform == "canvas" else "identifier", known)
    full = (
        people.by("name", known, "identifier")
        if platform == "moodle" and not all(numbers.get(f.user) for f in found)
        else {}
    )
    whose, unknown = {}, {}
    for one in found:
        student = numbers.get(one.user) or full.get(one.name) or (one.user if not known else "")
        if not student:
            unknown[one.user] = f"{one.name} ({one.user}), whom the names file does not have"
        elif not STUDENT.fullmatch(student):
            unknown[one.user] = (
                f"{student}: a student's name begins with a letter or digit and holds none of / * ? [ ]"
            )
        else:
            taken = whose.setdefault(student, Taken(student))
            taken.files[one.member] = one
    return whose, list(unknown.values())


def _choose(taken: Taken, wanted: list[str]) -> None:
    """Choose the last of several uploads of one notebook."""
    chosen = {}
    for one in sorted(taken.files.values(), key=lambda f: (f.order, f.member)):
        name = names.meant(one.called, wanted)
        if name in chosen:
            taken.said.append(f"{name} is there more than once: {one.called} counts, uploaded last")
        if one.late:
            taken.said.append(f"{one.called} was late, says Canvas")
        chosen[name] = one
    taken.files = chosen


def _contents(archive: zipfile.ZipFile, taken: Taken) -> tuple[dict[str, bytes], list[str]]:
    files, said = {}, []
    for name, one in _plain(taken.files):
        if len(files) == MOST_FILES:
            said.append(f"more than {MOST_FILES} files: the rest were not taken")
            break
        with archive.open(one.member) as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            said.append(f"{name} is larger than {MOST_BYTES // 10**6} MB and was not taken")
            continue
        files[name] = data
    return files, said


def _plain(files: dict[str, Found]) -> Iterator[tuple[str, Found]]:
    """Return names that cannot lead out of the student's folder and are not hidden files."""
    for name, one in files.items():
        if name not in (".", "..", TIME) and name.isprintable() and not set(name) & set("/\\\0"):
            yield name, one
