"""Write grades for a learning platform: the files that Canvas and Moodle import, and a plain CSV."""


def main(argv: list[str]) -> int:
    from grader.classroom.exports.command import main

    return main(argv)
