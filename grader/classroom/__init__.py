"""A class: from collected submissions to a gradebook. nbgrader keeps the books; the referee decides."""


def main(argv: list[str]) -> int:
    from grader.classroom.command import main

    return main(argv)
