"""Send grades to a learning platform by LTI 1.3 (python -m grader lti keys | scores LAB).

keys          makes this course's key if there is none, and prints its public half for the platform
scores LAB    sends each student's points to the column that work/class/lti.json names for the lab
"""

import argparse
import json
import sys
from pathlib import Path

from grader.classroom import marks, people
from grader.classroom.exports import command as exports
from grader.classroom.lti import keys, service
from grader.judge.report import visible
from grader.paths import ROOT
from grader.verdicts import EXIT, FAIL, WRONG_USAGE


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m grader lti", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("keys")
    scores = commands.add_parser("scores")
    scores.add_argument("lab", metavar="LAB")
    scores.add_argument("--names", type=Path, required=True, help="a CSV with the columns student and lti")
    scores.add_argument("--except", dest="without", nargs="+", default=[], metavar="NAME")
    scores.add_argument("--unfinished", action="store_true", help="send points that are not final, marked so")
    wants = parser.parse_args(argv)
    try:
        if wants.command == "keys":
            print(json.dumps(keys.public(keys.make(ROOT)), indent=1))
            return 0
        return send(ROOT, wants)
    except (ValueError, OSError, service.NotTaken) as error:
        print(f"python -m grader lti: {error}", file=sys.stderr)
        return WRONG_USAGE if isinstance(error, ValueError) else EXIT[FAIL]


def send(root: Path, wants) -> int:
    platform, known = service.read(root), people.read(wants.names)
    if not (lineitem := platform.lineitems.get(wants.lab)):
        raise ValueError(f"lineitems must name the column of {wants.lab}, got {sorted(platform.lineitems)}")
    found = [one for one in marks.standings(root, wants.lab) if one.student not in wants.without]
    handed_in = marks.not_judged(root, wants.lab, found)
    handed_in = {name: why for name, why in handed_in.items() if name not in wants.without}
    open_ = exports.unfinished(root, wants.lab, found, handed_in)
    if open_ and not wants.unfinished:
        print(exports.refusal(wants.lab, open_, wants.without), file=sys.stderr)
        return EXIT[FAIL]
    entered = [one for one in found if one.entered]
    strangers = [one.student for one in entered if not (one.student in known and known[one.student].lti)]
    access, failed = service.token(platform), {}
    sent = [one for one in entered if one.student not in strangers]
    for one in sent:
        try:
            service.post(lineitem, access, service.score(one, known[one.student].lti))
        except service.NotTaken as why:
            failed[one.student] = str(why)
    print(f"{wants.lab}: {len(sent) - len(failed)} scores sent")
    for name, why in failed.items():
        print(f"  not sent: {visible(name)}: {visible(why)}")
    if strangers:
        print(f"  not sent, without a number in the column lti: {', '.join(map(visible, strangers))}")
    return EXIT[FAIL] if failed or strangers else 0
