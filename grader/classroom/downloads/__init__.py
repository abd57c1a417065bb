"""Turn a learning platform's one zip file into nbgrader's folders below submitted/."""


def main(argv: list[str]) -> int:
    from grader.classroom.downloads.command import main

    return main(argv)
