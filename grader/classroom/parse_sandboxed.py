"""Parse a stranger's notebook into JSON: the sources of its cells, each under the name of its cell in the lab.

    python -I -S -B parse_sandboxed.py < FILE     with one line of JSON, {"cells": [...], "marks": {...}}, before the notebook

Standard library only. It takes most rights from itself before it reads a byte, and nothing in a notebook is run.
"""

import ast
import json
import re
import sys

MOST_SOURCE = 200_000  # characters of one cell
MOST_COPIES = 20
MOST_OWN, MOST_OWN_SOURCE = (
    100,
    20_000,
)  # cells outside the answers, and characters of one, that a grader is shown
MOST_PRINTED = 4_000
DEFINED = re.compile(r"^def (\w+)\(", re.M)  # where the cell is no Python
CPU_S, MEMORY_BYTES = 5, 1 << 30


class Unreadable(Exception):
    """Why this is not a notebook, in words that its writer understands."""


def fewer_rights() -> None:
    import resource

    for limit, value in (
        (resource.RLIMIT_CPU, CPU_S),
        (resource.RLIMIT_AS, MEMORY_BYTES),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 16),
    ):
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
    """Return the names that may identify a cell, which are nbgrader's name and the cell's own id. The build makes both
    the same."""
    return [name for name in (mark_of(cell).get("grade_id"), cell.get("id")) if isinstance(name, str)]


def odd(cells: list, lab: list[dict], marks: dict[str, dict]) -> dict:
    """Return the cells whose metadata differs from the lab's."""
    declared, changed = {}, []
    fixed = {one["name"]: one["source"] for one in lab if one["role"] in ("check", "fixed")}
    known = {one["name"] for one in lab}
    for cell in cells:
        mark, own = mark_of(cell), names(cell) if isinstance(cell, dict) else []
        name = next((n for n in own if n in known), None)
        if name is None:
            continue
        for key in (key for key, value in marks.get(name, {}).items() if key in mark and mark[key] != value):
            declared.setdefault(name, [])
            declared[name] += [] if key in declared[name] else [key]
        words = text(cell.get("source"))
        if name in fixed and name not in changed and words is not None and plain(words) != plain(fixed[name]):
            changed.append(name)
    return {"declared": declared, "changed": changed}


def plain(words: str) -> str:
    return "\n".join(line.rstrip() for line in words.splitlines()).strip()


def language(metadata) -> str:
    """The language that a notebook says it is in, where that is not Python."""
    places = (("language_info", "name"), ("kernelspec", "language")) if isinstance(metadata, dict) else ()
    found = [metadata[where].get(key) for where, key in places if isinstance(metadata.get(where), dict)]
    named = next((name for name in found if isinstance(name, str) and name), "python")
    return "" if "python" in named.lower() else named[:40]


def read(data: bytes, lab: list[dict], marks: dict) -> dict:
    """Return all cells under the names of the lab's, the student's own cells at their positions, and any oddities."""
    whole = notebook(data)
    cells = cells_of(whole["cells"], lab)
    more = {"claims": cells.pop("claims"), "language": language(whole.get("metadata"))}
    return cells | {"odd": odd(whole["cells"], lab, marks) | more}


def cells_of(cells: list, lab: list[dict]) -> dict:
    mine = [one for one in map(mine_of, cells) if one]
    found_by = given_names(mine, lab)
    roles = {one["name"]: one for one in lab}
    found, edited, after, below, own = {}, {}, {}, "", 0
    for one in mine:
        name = one["name"]
        if name is None:
            if one["source"].strip():
                own += 1
                after.setdefault(below, [])
                after[below] += [shown(one)] if own <= MOST_OWN else []
            continue
        below, role = name, roles[name]["role"]
        if role == "answer":
            cut = len(one["source"]) > MOST_SOURCE
            found.setdefault(name, []).append([one["kind"], one["source"][:MOST_SOURCE], cut, ""])
        elif role == "plain" and (one["printed"] or plain(one["source"]) != plain(roles[name]["source"])):
            edited[name] = shown(one)
    return {
        "found": {name: rows[-MOST_COPIES:] for name, rows in found.items()},
        "copies": {name: len(rows) for name, rows in found.items()},
        "after": {name: rows for name, rows in after.items() if rows},
        "edited": edited,
        "found_by": found_by,
        "more": max(0, own - MOST_OWN),
        "claims": sum(one["claims"] for one in mine if one["name"] is None),
    }


def mine_of(cell) -> dict | None:
    source = text(cell.get("source")) if isinstance(cell, dict) else None
    if source is None:
        return None
    kind = "code" if cell.get("cell_type") == "code" else "markdown"
    printed = printed_by(cell.get("outputs")) if kind == "code" else ""
    claims = any(mark_of(cell).get(key) for key in ("grade", "solution", "task", "points"))
    found = {"kind": kind, "source": source, "names": names(cell), "name": None}
    return found | {"printed": printed, "claims": claims}


def shown(one: dict) -> list:
    return [
        one["kind"],
        one["source"][:MOST_OWN_SOURCE],
        len(one["source"]) > MOST_OWN_SOURCE,
        one["printed"],
    ]


def printed_by(outputs) -> str:
    """Return the words that a cell printed in its last run."""
    found = []
    for output in outputs if isinstance(outputs, list) else ():
        data = output.get("data") if isinstance(output, dict) else None
        words = (
            text(data.get("text/plain") if isinstance(data, dict) else output.get("text"))
            if isinstance(output, dict)
            else None
        )
        found += [words] if words else []
    return "\n".join(found)[:MOST_PRINTED]


def given_names(mine: list[dict], lab: list[dict]) -> dict[str, str]:
    """Give each cell the name of the matching cell of the lab. Return the answers recognised by their function or
    their position."""
    known = {one["name"]: one for one in lab}
    for one in mine:
        one["name"] = next((name for name in one["names"] if name in known), None)
    by_their_text(mine, lab)
    there, found_by = {one["name"] for one in mine}, {}
    for one in (one for one in lab if one["name"] not in there and one["role"] in ("answer", "plain")):
        how = "function" if one["functions"] else "place"
        cells = by_its_functions(mine, one["functions"]) if one["functions"] else by_its_place(mine, lab, one)
        for cell in cells:
            cell["name"] = one["name"]
        if cells and one["role"] == "answer":
            found_by[one["name"]] = how
    return found_by


def by_their_text(mine: list[dict], lab: list[dict]) -> None:
    """Cells that lost their names and kept the lab's words."""
    left = {one["name"] for one in lab} - {one["name"] for one in mine}
    waiting: dict[tuple, list[str]] = {}
    for one in lab:
        if one["name"] in left and one["source"].strip():
            waiting.setdefault((one["kind"], plain(one["source"])), []).append(one["name"])
    for one in mine:
        same = waiting.get((one["kind"], plain(one["source"]))) if one["name"] is None and waiting else None
        if same:
            one["name"] = same.pop(0)


def by_its_functions(mine: list[dict], functions: list[str]) -> list[dict]:
    return [
        one
        for one in mine
        if functions
        and one["name"] is None
        and one["kind"] == "code"
        and not set(functions).isdisjoint(defines(one["source"]))
    ]


def by_its_place(mine: list[dict], lab: list[dict], wanted: dict) -> list[dict]:
    """Return the nameless cell right below the cell that precedes the answer in the lab."""
    names_ = [one["name"] for one in lab]
    place = names_.index(wanted["name"])
    above = names_[place - 1] if place else None
    at = next((i for i, one in enumerate(mine) if above and one["name"] == above), None)
    below = mine[at + 1 : at + 2] if at is not None else []
    same = [one for one in below if wanted["role"] == "answer" or one["kind"] == wanted["kind"]]
    return [one for one in same if one["name"] is None and one["source"].strip()]


def defines(source: str) -> list[str]:
    """The functions at the top of a cell."""
    try:
        body = ast.parse(source[:MOST_SOURCE]).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return DEFINED.findall(source[:MOST_SOURCE])
    return [node.name for node in body if isinstance(node, ast.FunctionDef)]


def main() -> None:
    fewer_rights()
    asked, _, data = sys.stdin.buffer.read().partition(b"\n")
    asked = json.loads(asked)
    try:
        said = read(data, asked["cells"], asked["marks"])
    except Unreadable as why:
        said = {"unreadable": str(why)}
    except (MemoryError, RecursionError):
        said = {"unreadable": "takes more memory than a notebook may"}
    sys.stdout.write(json.dumps(said))


if __name__ == "__main__":
    main()
