"""Make the student edition, with all that a learner needs to run, play and check, and without any answers."""


def main(argv: list[str]) -> int:
    from grader.release.command import main

    return main(argv)
