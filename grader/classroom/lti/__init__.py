"""Send grades to a learning platform by its own service, LTI 1.3, instead of a file."""


def main(argv: list[str]) -> int:
    from grader.classroom.lti.command import main

    return main(argv)
