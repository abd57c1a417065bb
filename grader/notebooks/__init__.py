"""Text notebooks -> notebooks -> labs; how authors write them is in README.md beside this file."""


def main(argv: list[str]) -> int:
    from .command import main

    return main(argv)
