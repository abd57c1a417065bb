"""Check the rules of the house (python -m grader gates)."""

from grader.paths import ROOT
from grader.tools.gates import complaints


def main(argv: list[str]) -> int:
    said = complaints(ROOT)
    print(*said, sep="\n", end="\n" if said else "")
    return 1 if said else 0
