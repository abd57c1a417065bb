"""LTI 1.3: grades go to a learning platform by its own service instead of a file."""


def main(argv: list[str]) -> int:
    from grader.classroom.lti.command import main

    return main(argv)
