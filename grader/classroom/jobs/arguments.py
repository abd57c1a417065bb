"""Choose how many processes judge a class, and where: the class command's options and their effects."""

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from grader.classroom.grading_round import GradingRound
from grader.classroom.jobs import job
from grader.judge import referee


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--jobs", type=int, default=1, metavar="N", help="answers judged in parallel on this machine"
    )
    parser.add_argument(
        "--scheduler", default="", metavar="ADDRESS", help="judge on the workers of `python -m grader farm`"
    )
    parser.add_argument(
        "--keys",
        default="",
        metavar="DIR",
        help="the keys from `python -m grader farm keys`, by default work/class/keys",
    )


@contextmanager
def judges(
    wants: argparse.Namespace, round_: GradingRound, say: Callable
) -> Iterator[tuple[GradingRound, Callable]]:
    """(the round as these judges see it, jobs -> records)."""
    if wants.jobs < 1:
        raise ValueError(f"jobs must be at least 1, got {wants.jobs}. 1 judges in this process")
    if wants.scheduler and wants.jobs != 1:
        raise ValueError(
            "--jobs starts workers here and --scheduler uses those elsewhere. Give one of the two"
        )
    if wants.jobs == 1 and not wants.scheduler:
        mine = referee.machine(round_.mode)
        if round_.machine and round_.machine != mine:
            raise ValueError(
                f"this lab is judged on {round_.machine}, and this machine has {mine}. Give the --scheduler of such "
                "workers, or --anew to judge all again here"
            )
        yield round_, job.one_by_one
        return
    from grader.classroom.jobs import farm

    with farm.opened(wants, round_, say) as found:
        yield found
