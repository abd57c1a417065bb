"""Hold the house's rules, each a function from a root folder to a list of complaints.

`python -m grader gates` prints them all. The tests in this folder plant each fault once and see it named.
"""

GATES = (
    "rooms",
    "arrows",
    "circles",
    "references",
    "dependencies",
    "words",
    "changes",
    "links",
    "sources",
    "graded",
    "bounded",
    "collected",
)


def complaints(root, names: tuple[str, ...] = GATES) -> list[str]:
    """Return all complaints of the named gates about the tree at `root`."""
    from importlib import import_module

    return [said for name in names for said in import_module(f"{__name__}.{name}").check(root)]
