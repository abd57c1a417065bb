"""Show all that a class holds of one student, and delete it when it must be."""


def main(argv: list[str]) -> int:
    from grader.classroom.student.command import main

    return main(argv)
