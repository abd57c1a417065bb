"""A stranger's notebook -> the sources of the cells that are asked for, as JSON.

    python -I -S -B read_notebook.py '{"wanted": ["tiled_gemm"], "tasks": [], "known": [], "marks": {}, "checks": {}}' < kernel.ipynb

Standard library only. It takes most rights from itself before it reads a byte, and nothing in a notebook is run.
"""

import json
import sys

MOST_SOURCE = 200_000  # characters of one cell
MOST_COPIES = 20
CPU_S, MEMORY_BYTES = 5, 1 << 30


class Unreadable(Exception):
    """Why this is not a notebook, in words that its writer understands."""


def fewer_rights() -> None:
    import resource

    for limit, value in (
        (resource.RLIMIT_CPU, CPU_S), (resource.RLIMIT_AS, MEMORY_BYTES), (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0), (resource.RLIMIT_NOFILE, 16),
    ):  # fmt: skip
        resource.setrlimit(limit, (value, value))


def notebook(data: bytes) -> dict:
    try:
        found = json.loads(data.decode("utf-8"))
    except UnicodeDecodeError:
        raise Unreadable("is not text in UTF-8") from None
    except RecursionError:
        raise Unreadable("is nested too deeply") from None
    except ValueError as error:
        place = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
        raise Unreadable(f"is not a notebook: no JSON{place}") from None
    if not isinstance(found, dict) or not isinstance(found.get("cells"), list):
        raise Unreadable("is not a notebook of format 4: no list of cells")
    return found


def text(source) -> str | None:
    """A cell's source, which Jupyter writes as one string or as a list of lines."""
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    return source.encode("utf-8", "replace").decode() if isinstance(source, str) else None


def mark_of(cell) -> dict:
    metadata = cell.get("metadata") if isinstance(cell, dict) else None
    mark = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    return mark if isinstance(mark, dict) else {}


def names(cell: dict) -> list[str]:
    """What a cell may be known by: nbgrader's name for it, and its own id, which the build makes the same."""
    return [name for name in (mark_of(cell).get("grade_id"), cell.get("id")) if isinstance(name, str)]


def odd(cells: list, known: list[str], marks: dict[str, dict], checks: dict[str, str]) -> dict:
    """Which cells say other things of themselves than the lab does, or ask for points that the lab knows nothing of."""
    declared, changed, claims = {}, [], 0
    for cell in cells:
        mark, own = mark_of(cell), names(cell) if isinstance(cell, dict) else []
        name = next((n for n in own if n in known), None)
        if name is None:
            claims += any(mark.get(key) for key in ("grade", "solution", "task", "points"))
            continue
        for key in (key for key, value in marks.get(name, {}).items() if key in mark and mark[key] != value):
            declared.setdefault(name, [])
            declared[name] += [] if key in declared[name] else [key]
        words = text(cell.get("source"))
        if (
            name in checks
            and name not in changed
            and words is not None
            and plain(words) != plain(checks[name])
        ):
            changed.append(name)
    return {"declared": declared, "changed": changed, "claims": claims}


def plain(words: str) -> str:
    return "\n".join(line.rstrip() for line in words.splitlines()).strip()


def language(metadata) -> str:
    """The language that a notebook says it is in, where that is not Python."""
    places = (("language_info", "name"), ("kernelspec", "language")) if isinstance(metadata, dict) else ()
    found = [metadata[where].get(key) for where, key in places if isinstance(metadata.get(where), dict)]
    named = next((name for name in found if isinstance(name, str) and name), "python")
    return "" if "python" in named.lower() else named[:40]


def read(
    data: bytes, wanted: list[str], tasks: list[str], known: list[str], marks: dict, checks: dict
) -> dict:
    """Wanted cells by name, with all their copies; a student's own cells right below a task; what is odd."""
    whole = notebook(data)
    return cells_of(whole["cells"], wanted, tasks, known) | {
        "odd": odd(whole["cells"], known, marks, checks) | {"language": language(whole.get("metadata"))}
    }


def cells_of(cells: list, wanted: list[str], tasks: list[str], known: list[str]) -> dict:
    found, after, others, below = {}, {}, 0, None
    for cell in cells:
        source = text(cell.get("source")) if isinstance(cell, dict) else None
        if source is None:
            others += 1
            continue
        kind = "code" if cell.get("cell_type") == "code" else "markdown"
        row = [kind, source[:MOST_SOURCE], len(source) > MOST_SOURCE]
        name = next((n for n in names(cell) if n in known), None)
        if name is None and below and source.strip():
            after.setdefault(below, []).append(row)
            continue
        below = name if name in tasks else below if name is None else None
        if name in wanted:
            found.setdefault(name, []).append(row)
        else:
            others += name is None
    return {
        "found": {name: rows[-MOST_COPIES:] for name, rows in found.items()},
        "copies": {name: len(rows) for name, rows in found.items()},
        "after": {name: rows[:MOST_COPIES] for name, rows in after.items()},
        "others": others,
    }


def main() -> None:
    fewer_rights()
    asked = json.loads(sys.argv[1])
    try:
        said = read(sys.stdin.buffer.read(), **asked)
    except Unreadable as why:
        said = {"unreadable": str(why)}
    except (MemoryError, RecursionError):
        said = {"unreadable": "takes more memory than a notebook may"}
    sys.stdout.write(json.dumps(said))


if __name__ == "__main__":
    main()
