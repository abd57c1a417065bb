"""Judge answers that have no record yet, once each: in this process, in several on this machine, or on many machines."""


def main(argv: list[str]) -> int:
    from grader.classroom.jobs.command import main

    return main(argv)
