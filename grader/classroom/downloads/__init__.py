"""What a learning platform collected: its one zip file becomes nbgrader's folders below submitted/."""


def main(argv: list[str]) -> int:
    from grader.classroom.downloads.command import main

    return main(argv)
