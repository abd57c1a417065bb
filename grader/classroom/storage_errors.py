"""Explain trouble of the gradebook's storage in one message each: the failure, the data that is safe, the next
step."""

import errno
import re
import sys

from grader.verdicts import EXIT, INCONCLUSIVE, WRONG_USAGE

SAFE = "Everything judged so far is kept"
AGAIN = "run this again, which does only the missing work"

SENTENCES = (
    (
        r"No space left on device|database or disk is full|Disk quota exceeded|Errno (28|122)\b",
        f"the disk is full. {SAFE}. Free some space, then {AGAIN}",
    ),
    (
        r"database is locked|database table is locked",
        f"the gradebook is locked by another program, such as nbgrader's pages with a change not yet saved. {SAFE}. "
        f"Close it, then {AGAIN}",
    ),
    (
        r"disk image is malformed|file is not a database|database corruption",
        f"the gradebook is damaged. {SAFE} in work/class/records. Put work/class/gradebook_copy.db, the last copy that "
        f"was whole, where the gradebook was, then {AGAIN}",
    ),
    (
        r"readonly database|unable to open database|Read-only file system|Errno 30\b",
        f"the gradebook's folder can't be written to. {SAFE}. Make it writable, then {AGAIN}",
    ),
    (
        r"could not connect to server|connection (to server|refused)|server closed the connection",
        f"the gradebook's server does not answer. {SAFE}. Start it again, then {AGAIN}",
    ),
)
FULL = (errno.ENOSPC, errno.EDQUOT)


class CannotKeep(Exception):
    """Nothing more can be written. Going on would only judge what can't be kept."""


def plain(trouble: object) -> str:
    """The sentence for it, or nothing where this table has none."""
    words = f"Errno {trouble.errno} {trouble}" if isinstance(trouble, OSError) else str(trouble)
    return next((sentence for pattern, sentence in SENTENCES if re.search(pattern, words)), "")


def refused(command: str, trouble: Exception) -> int:
    """Say why a command did nothing. Return its exit code, which tells wrong usage from a full disk."""
    full = isinstance(trouble, OSError) and trouble.errno in FULL
    print(f"python -m grader {command}: {plain(trouble) if full else trouble}", file=sys.stderr)
    return EXIT[INCONCLUSIVE] if full else WRONG_USAGE


def said(trouble: Exception) -> str:
    """Return one line about any trouble: our own sentence, or its kind and first line, without a statement of SQL."""
    return plain(trouble) or f"{type(trouble).__name__}: {(str(trouble).splitlines() or [''])[0][:300]}"


def ends_the_run(trouble: str) -> bool:
    """Return whether every other student would meet the same trouble."""
    return any(trouble == sentence for _, sentence in SENTENCES)
