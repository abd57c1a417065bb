"""Read from a file's name in a platform's zip who handed it in, and its own name.

Canvas (add_upload_submission of lib/content_zipper.rb in instructure/canvas-lms) writes
NAME[_LATE]_USER_FILE_called.ipynb. NAME is the sortable name in lower case, with only its letters, digits and
underscores. A second upload is called "called-1.ipynb".

Moodle (the assignment's "Download all submissions") writes a folder, or the beginning of the file's name,
"FULL NAME_PARTICIPANT_assignsubmission_file_". FULL NAME is "Participant" where submissions are anonymous."""

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

CANVAS = re.compile(r"(?P<name>\w*?)(?P<late>_LATE)?_(?P<user>\d+)_(?P<file>\d+)_(?P<called>[^/]+)")
MOODLE = re.compile(r"(?P<name>[^/]+?)_(?P<user>\d+)_assignsubmission_file(?:_?/|_)(?P<called>.+)")
AGAIN = re.compile(r"(?:-\d+| ?\(\d+\))$")  # what an upload or a browser adds to a name that is taken


@dataclass(frozen=True)
class Found:
    """Holds one file of the zip, with the platform's names for its student."""

    member: str  # its name in the zip
    name: str
    user: str  # Canvas: the user's number, Moodle: the participant's
    called: str  # the file's own name
    order: int = 0  # the higher of two uploads is the later one
    late: bool = False


def canvas(member: str) -> Found | None:
    read = CANVAS.fullmatch(PurePosixPath(member).name)
    if not read:
        return None
    return Found(member, read["name"], read["user"], read["called"], int(read["file"]), bool(read["late"]))


def moodle(member: str) -> Found | None:
    read = MOODLE.fullmatch(member)
    return Found(member, read["name"], read["user"], PurePosixPath(read["called"]).name) if read else None


PLATFORMS = {"canvas": canvas, "moodle": moodle}


def platform(members: list[str]) -> str:
    """Return the platform that uses such names. Raise ValueError if most fit neither."""
    fits = {name: sum(read(member) is not None for member in members) for name, read in PLATFORMS.items()}
    best = max(fits, key=fits.get)
    if not fits[best] or 2 * fits[best] < len(members):
        raise ValueError(
            "the zip must hold files named as Canvas or Moodle names them, got "
            f"{', '.join(members[:3]) or 'nothing'}. Take the platform's own download of all submissions"
        )
    return best


def meant(called: str, wanted: list[str]) -> str:
    """Return the lab's notebook that an uploaded file is, without the suffix that made its name unique, else its own
    name."""
    if called in wanted:
        return called
    stem, dot, kind = called.rpartition(".")
    plain = f"{AGAIN.sub('', stem)}{dot}{kind}"
    return plain if plain in wanted else called
