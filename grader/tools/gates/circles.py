"""Check that no two modules need each other, on import or later."""

from pathlib import Path

from .tree import PACKAGES, file_of_bare_name, files_of, imports, modules


def check(root: Path) -> list[str]:
    found = {path: _needs(path, root) for path in modules(root, *PACKAGES)}
    return [
        f"{' -> '.join(p.relative_to(root).as_posix() for p in circle)}: imports in a circle. Shared code "
        "belongs in a module of its own"
        for circle in circles(found)
    ]


def _needs(path: Path, root: Path) -> list[Path]:
    """Return our modules that this one imports, at its top or inside a function, including a box's import by bare
    names."""
    needed = []
    for one in imports(path, root):
        if one.top in PACKAGES:
            *packages, last = files_of(one.name, root) or [path]
            needed += [package for package in packages if package.parent not in path.parents] + [last]
        elif beside := file_of_bare_name(path, one.top, root):
            needed.append(beside)
    return [other for other in dict.fromkeys(needed) if other != path]


def circles(needs: dict) -> list[list]:
    """Return one cycle for each knot. Each module in it is entered once, depth first."""
    found, done = [], set()

    def visit(one, way: list) -> None:
        if one in way:
            found.append([*way[way.index(one) :], one])
        elif one not in done:
            for other in needs.get(one, ()):
                visit(other, [*way, one])
            done.add(one)

    for one in needs:
        visit(one, [])
    return found
