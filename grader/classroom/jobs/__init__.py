"""Answers that have no record yet, judged once each: by this process, by several of this machine, or by many machines."""


def main(argv: list[str]) -> int:
    from grader.classroom.jobs.command import main

    return main(argv)
