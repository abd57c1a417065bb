"""Report how a class answered a lab, on one page, for the instructor, never for a grade."""


def main(argv: list[str]) -> int:
    from grader.classroom.report.command import main

    return main(argv)
