"""Turn text notebooks into notebooks and labs. README.md in this folder says how authors write them."""


def main(argv: list[str]) -> int:
    from .command import main

    return main(argv)
