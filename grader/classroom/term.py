"""What a class keeps beside its gradebook: each lab's mode and secret seeds, and every record, written once."""

import hashlib
import hmac
import json
import os
import re
import secrets
from dataclasses import dataclass
from pathlib import Path

from grader.judge import record
from grader.judge.record import Record

PLACE = Path("work/class")  # below the course's root; git does not see it
NAME = re.compile(r"\w[\w.-]*")


class OtherMode(ValueError):
    """A lab was judged in one mode and is asked for in the other."""


@dataclass(frozen=True)
class Term:
    """One round of judging of one lab: all its answers meet the same hidden cases, which nobody can foresee."""

    root: Path
    lab: str
    mode: str
    epoch: str
    secret: str

    def seed(self, question_id: str) -> int:
        drawn = hmac.digest(bytes.fromhex(self.secret), question_id.encode(), "sha256")
        return int.from_bytes(drawn[:16], "big")

    def records(self) -> Path:
        return self.root / PLACE / "records"


def open_term(root: Path, lab: str, mode: str | None = None, anew: bool = False) -> Term:
    """The lab's round, begun now if there is none, or if `anew` is wanted."""
    if not NAME.fullmatch(lab):
        raise ValueError(f"lab must be the name of a folder in labs/, got {lab!r}; such as 01_gemm_tiling")
    path = root / PLACE / f"{lab}.json"
    if anew or not path.exists():
        _begin(path, lab, mode or default_mode(), anew)
    kept = json.loads(path.read_text(encoding="utf-8"))
    if mode and mode != kept["mode"]:
        raise OtherMode(
            f"mode must be {kept['mode']} as in this lab's first round, got {mode}; --anew judges all again"
        )
    return Term(root, lab, **kept)


def default_mode() -> str:
    from grader.judge import referee

    return referee.default_mode()


def _begin(path: Path, lab: str, mode: str, anew: bool) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    secret = secrets.token_hex(32)
    epoch = f"{lab} {hashlib.sha256(secret.encode()).hexdigest()[:16]}"
    text = json.dumps({"mode": mode, "epoch": epoch, "secret": secret}, indent=1) + "\n"
    write(path, text, replace=anew)


def write(path: Path, text: str, replace: bool = False) -> None:
    """Whole or not at all; the first to write wins unless `replace`."""
    new = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    if replace:
        os.replace(new, path)
        return
    try:
        os.link(new, path)
    except FileExistsError:
        pass
    os.unlink(new)


open_verdicts: dict[
    str, Record
] = {}  # what one run of the class could not settle, so that it is tried once a run


def find(term: Term, key: str) -> Record | None:
    if key in open_verdicts:
        return open_verdicts[key]
    try:
        return Record.from_json(json.loads((term.records() / f"{key}.json").read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def keep(term: Term, verdict: Record) -> None:
    """Settled verdicts only: what was our own trouble is judged again next time."""
    if verdict.key and not verdict.unsettled:
        term.records().mkdir(parents=True, exist_ok=True)
        write(term.records() / f"{verdict.key}.json", json.dumps(verdict.as_json(), indent=1) + "\n")


def key(term: Term, question, source: str) -> str | None:
    """Under which key the record of an answer lies; None for a text that is refused before it has one."""
    from grader.judge import answer, referee

    try:
        text = answer.normalise(source)
    except answer.Refused:
        return None
    return record.key(
        answer.digest(text),
        referee.specification(question),
        term.mode,
        referee.machine(term.mode),
        term.epoch,
    )
