"""Make the student edition: all that a learner needs to run, play and check, and nothing that answers a question."""


def main(argv: list[str]) -> int:
    from grader.release.command import main

    return main(argv)
