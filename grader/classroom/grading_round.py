"""Keep a class's files next to its gradebook. They hold each lab's mode and secret seeds, and every record once."""

import hashlib
import hmac
import json
import re
import secrets
from dataclasses import dataclass, field, replace
from pathlib import Path

from grader import questions
from grader.classroom import regrades
from grader.classroom.atomic_file import PLACE, write
from grader.judge import record
from grader.judge.record import PartResult, Record

NAME = re.compile(r"\w[\w.-]*")


class OtherMode(ValueError):
    """Reports a lab that was judged in one mode and is now requested in the other mode."""


@dataclass(frozen=True)
class GradingRound:
    """One round of judging of one lab. Equal answers meet the same hidden cases, which can't be foreseen."""

    root: Path
    lab: str
    mode: str
    epoch: str
    secret: str
    machine: str = ""  # the kind of GPU that judges this round, where that is another machine's
    salts: dict = field(default_factory=dict, compare=False)  # of students who were judged again on their own

    def of(self, student: str) -> "GradingRound":
        """Return the round with this student's own seeds, if a regrade gave any."""
        if not (salt := self.salts.get(student)):
            return self
        secret = hmac.digest(bytes.fromhex(self.secret), salt.encode(), "sha256").hex()
        return replace(self, epoch=f"{self.epoch} {salt}", secret=secret, salts={})

    def seed(self, question_id: str) -> int:
        drawn = hmac.digest(bytes.fromhex(self.secret), question_id.encode(), "sha256")
        return int.from_bytes(drawn[:16], "big")

    def records(self) -> Path:
        return self.root / PLACE / "records"


def open_round(root: Path, lab: str, mode: str | None = None, anew: bool = False) -> GradingRound:
    """Return the lab's round. Begin a round if there is none, or if `anew` is set."""
    if not NAME.fullmatch(lab):
        raise ValueError(
            f"lab must be the name of a folder in labs/, got {lab!r}. An example is 01_gemm_tiling"
        )
    path = root / PLACE / f"{lab}.json"
    if anew or not path.exists():
        _begin(path, lab, mode or default_mode(), anew)
    kept = json.loads(path.read_text(encoding="utf-8"))
    if mode and mode != kept["mode"]:
        raise OtherMode(
            f"mode must be {kept['mode']} as in this lab's first round, got {mode}. --anew judges all again"
        )
    return GradingRound(root, lab, **kept, salts=regrades.salts(root, lab, kept["epoch"]))


def on_machine(round_: GradingRound, machine: str) -> GradingRound:
    """The round with the kind of GPU that its answers are judged on, which it then keeps."""
    if round_.machine and round_.machine != machine:
        raise ValueError(
            f"workers must have {round_.machine} as in this lab's first round, got {machine}. --anew judges all again"
        )
    if not round_.machine:
        path = round_.root / PLACE / f"{round_.lab}.json"
        kept = json.loads(path.read_text(encoding="utf-8")) | {"machine": machine}
        write(path, json.dumps(kept, indent=1) + "\n", replace=True)
    return replace(round_, machine=machine)


def default_mode() -> str:
    from grader.judge import referee

    return referee.default_mode()


def _begin(path: Path, lab: str, mode: str, anew: bool) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    secret = secrets.token_hex(32)
    epoch = f"{lab} {hashlib.sha256(secret.encode()).hexdigest()[:16]}"
    text = json.dumps({"mode": mode, "epoch": epoch, "secret": secret}, indent=1) + "\n"
    write(path, text, replace=anew)


open_verdicts: dict[
    str, Record
] = {}  # what one run of the class could not settle, so that it is tried once a run


def find(round_: GradingRound, key: str) -> Record | None:
    if key in open_verdicts:
        return open_verdicts[key]
    return read(round_.records() / f"{key}.json")


def read(path: Path) -> Record | None:
    """Return a stored record, or None if there is none, or none that is whole."""
    try:
        return repointed(Record.from_json(json.loads(path.read_text(encoding="utf-8"))))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def repointed(verdict: Record) -> Record:
    """Return the verdict with the points that its question gives now. It was judged once, whatever a part was worth
    then."""
    question = questions.load().get(verdict.question)
    if question is None:
        return verdict
    now = {part.name: part.points for part in question.parts}
    if any(part.name not in now for part in verdict.parts):
        return verdict  # of another version, whose key is never looked up
    parts = [replace(p, points=_worth(p, now[p.name]), of=now[p.name]) for p in verdict.parts]
    points = sum(part.points for part in parts)
    return replace(verdict, parts=parts, points=points, of=question.points)


def _worth(part: PartResult, of: float) -> float:
    return part.points if part.of == of else round(part.points / part.of * of, 4) if part.of else 0.0


def keep(round_: GradingRound, verdict: Record) -> None:
    """Keep only settled verdicts. A case of our own trouble is judged again next time."""
    if verdict.key and not verdict.unsettled:
        round_.records().mkdir(parents=True, exist_ok=True)
        path = round_.records() / f"{verdict.key}.json"
        damaged = path.exists() and find(round_, verdict.key) is None
        write(path, json.dumps(verdict.as_json(), indent=1) + "\n", replace=damaged)


def key(round_: GradingRound, question, source: str) -> str | None:
    """Return the key of an answer's record, or None for a text that is refused before it has one."""
    from grader.judge import answer, referee

    try:
        text = answer.normalise(source)
    except answer.Refused:
        return None
    return record.key(
        answer.digest(text),
        referee.specification(question),
        round_.mode,
        round_.machine or referee.machine(round_.mode),
        round_.epoch,
    )
