"""Take a class from collected submissions to a gradebook. nbgrader keeps the books, and the referee decides."""


def main(argv: list[str]) -> int:
    from grader.classroom.command import main

    return main(argv)
