"""Twenty students of lab 00: what each wrote, how it came in, what is said of that, who mends it, and the points due."""

import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from grader.proofs.class_of import honest, on_cells, on_files, on_the_host
from grader.proofs.class_of.attack import Attack, Hand
from grader.proofs.class_of.course import Course
from grader.proofs.class_of.sheet import Sheet
from grader.proofs.right import right

LAB = "00_roofline"
CONCEPTS, KERNELS = "concepts.ipynb", "first_kernels.ipynb"
POINTS = {
    "product_intensity": 2,
    "roof": 2,
    "time_terms": 3,
    "tile_sectors": 3,
    "plan_bytes": 2,
    "doubled": 3,
}
RIGHT = {name: right(f"roofline.{name}") for name in POINTS}
NO_SAVING = "def plan_bytes(groups, rows, width, elem_bytes):\n    return len(groups) * 2 * rows * width * elem_bytes, 0\n"
UPSIDE_DOWN = "def roof(intensity, peak, bandwidth):\n    return max(peak, bandwidth * intensity), 'memory'\n"
NO_PYTHON = "def roof(intensity, peak, bandwidth):\n    return min(peak,\n"
ALL_THE_SAME_BLOCK = RIGHT["doubled"].replace("tl.program_id(0) * BLOCK + ", "")
DUE, IN_TIME, TOO_LATE = (f"2026-11-20 {hour}:00:00 UTC" for hour in (13, 12, 15))


def changed(**answers: str) -> dict[str, str]:
    return {**RIGHT, **answers}


def as_it_is(sheets: list[Sheet], hand: Hand) -> None:
    """Nothing but the answers is touched."""


def by(*habits: Callable) -> Callable:
    """Habits of honest students, in every notebook."""

    def change(sheets: list[Sheet], hand: Hand) -> None:
        for sheet in sheets:
            for habit in habits:
                habit(sheet, Random(sheet.name))

    return change


def nameless(sheet: Sheet, rng: Random) -> None:
    """As an editor saves it that knows neither ids nor marks."""
    honest.old_format(sheet, rng)
    for cell in sheet.cells:
        cell["metadata"] = {}


def attacks(**on: Attack) -> Callable:
    """Answer -> what is done to it or with it, all in the first notebook."""

    def change(sheets: list[Sheet], hand: Hand) -> None:
        for hand.target, one in on.items():
            one.do(hand)

    return change


def attack(table: tuple[Attack, ...], what: str) -> Attack:
    return next(one for one in table if one.what == what)


# How files come in. Each is given the student's folder of the lab and what to put there: name -> bytes.
Files = dict[str, bytes]
CANVAS = "in the one zip that Canvas gives of all hand-ins"


def collected(folder: Path, files: Files, time: str = IN_TIME) -> None:
    """As `nbgrader collect` lays it down."""
    folder.mkdir(parents=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    (folder / "timestamp.txt").write_text(time)


def late(folder: Path, files: Files) -> None:
    collected(folder, files, TOO_LATE)


def zipped(folder: Path, files: Files) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(f"my hand in/{name}", data)
    collected(folder, {"hand in.zip": packed.getvalue()})


def renamed(folder: Path, files: Files) -> None:
    collected(folder, {f"{name[:-6]} final.ipynb": data for name, data in files.items()})


def rename_back(folder: Path, files: Files) -> None:
    for name in files:
        (folder / f"{name[:-6]} final.ipynb").rename(folder / name)


def elsewhere(folder: Path, files: Files) -> None:
    collected(folder.with_name("lab 00 roofline"), files)


def move_there(folder: Path, files: Files) -> None:
    folder.with_name("lab 00 roofline").rename(folder)


def as_scripts(folder: Path, files: Files) -> None:
    """Python exported from the notebooks."""
    sources = {
        name: "\n".join("".join(cell["source"]) for cell in json.loads(data)["cells"])
        for name, data in files.items()
    }
    collected(folder, {f"{name[:-6]}.py": source.encode() for name, source in sources.items()})


def hand_in_again(folder: Path, files: Files) -> None:
    for name, data in files.items():
        (folder / name).write_bytes(data)


def whole(data: bytes) -> bytes:
    return data


def cut_off(data: bytes) -> bytes:
    """An upload that broke off half way."""
    return data[: len(data) // 2]


@dataclass(frozen=True)
class Student:
    """`points` are the grader's, before any that a person gives or lateness takes; `by_hand` a person's for the text."""

    name: str
    points: float
    answers: dict[str, str] = field(default_factory=dict)
    text: str = ""
    by_hand: float = 0.0
    notebooks: tuple[str, ...] = (CONCEPTS, KERNELS)
    change: Callable = as_it_is
    comes: Callable | str = collected
    spoilt: Callable = whole  # what becomes of the bytes on their way, the first time
    first: float | None = (
        None  # points of the first run, where something has to be mended before there are more
    )
    says: str = ""  # a pattern of what is said in the first run
    mends: Callable | str = ""  # what the instructor or the student then does
    taken_off: float = 0.0
    extension_h: int = 0

    def files(self, released: Path, course: Course) -> Files:
        """The hand-in, made from the student's own copy of the released notebooks."""
        sheets = [Sheet(LAB, released / name) for name in self.notebooks]
        for sheet in sheets:
            for name in sheet.questions():
                if name in self.answers:
                    sheet.cell(name)["source"] = self.answers[name]
            for cell in sheet.texts():
                cell["source"] = self.text or cell["source"]
        asked = sheets[0].questions()
        self.change(sheets, Hand(course, self.name, VICTIM, sheets[0], asked, [*asked][0]))
        return {sheet.name: json.dumps(sheet.data, indent=1).encode() for sheet in sheets}


VICTIM = "ada"  # who is honest, and whom the hostile are after
CLASS = (
    # honest
    Student("ada", 15, RIGHT, text="Prefill moves more bytes than it has FLOP.", by_hand=4, comes=CANVAS),
    Student("bob", 15, RIGHT, text="Launches, by $5 / 0.44$.", by_hand=2.5, change=by(honest.another_editor), comes=CANVAS),
    Student("dee", 15, RIGHT, change=by(honest.run_out_of_order, honest.own_cells)),
    # lazy
    Student("eve", 12, RIGHT, notebooks=(CONCEPTS,), comes=CANVAS, says="first_kernels.ipynb was not handed in"),
    Student("fay", 0, comes=CANVAS),
    Student("gus", 4, {name: RIGHT[name] for name in ("roof", "plan_bytes")}, comes=CANVAS),
    # wrong
    Student("hal", 11, changed(roof=UPSIDE_DOWN, plan_bytes=NO_SAVING), comes=CANVAS),
    Student("ivy", 12, changed(doubled=ALL_THE_SAME_BLOCK), comes=CANVAS),
    Student("joe", 13, changed(roof=NO_PYTHON), comes=CANVAS),
    # late
    Student("kit", 15, RIGHT, comes=late, taken_off=15),
    Student("lou", 15, RIGHT, comes=late, extension_h=24),
    # hostile
    Student(
        "mal", 10, RIGHT, comes=CANVAS, change=attacks(
            roof=attack(on_the_host.THIEVES, "runs the solution"),
            tile_sectors=attack(on_the_host.THIEVES, "writes over another's notebook"),
        ),
    ),
    Student(
        "ned", 13, changed(plan_bytes=NO_SAVING), says=f"{on_cells.MARKED}.*{on_cells.REPLACED}", change=attacks(
            plan_bytes=attack(on_cells.MARKS, "a check that says 1000, and grader.check replaced"),
            time_terms=attack(on_cells.MARKS, "a check worth 1e9 points"),
        ),
    ),
    Student("oz", 13, RIGHT, by_hand=0.5, comes=CANVAS, change=attacks(plan_bytes=on_cells.WORDS[0])),
    # careless with files
    Student("pia", 15, RIGHT, comes=zipped, says="hand in.zip was unpacked: concepts.ipynb, first_kernels.ipynb"),
    Student("quin", 15, RIGHT, comes=renamed, first=0, says=f"concepts final.ipynb {on_files.OTHER_NOTEBOOK}", mends=rename_back),
    Student("rae", 15, RIGHT, comes=elsewhere, first=0, says="submitted/rae/lab 00 roofline is not a lab of this course", mends=move_there),
    Student("sam", 15, RIGHT, comes=CANVAS, spoilt=cut_off, first=0, says="no JSON", mends=CANVAS),
    Student("tia", 15, RIGHT, comes=as_scripts, first=0, says="concepts.py is not a notebook", mends=hand_in_again),
    Student("una", 15, RIGHT, change=by(nameless), says="`roof` has lost its name and was found by its function's name"),
)  # fmt: skip
