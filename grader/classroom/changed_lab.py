"""Explain a lab that differs from the one in the gradebook: the differences, and what an instructor can do."""

Cells = dict[str, dict[str, float]]  # notebook -> graded cell -> points

TODO = """\
1. To finish this round as it was handed out, bring back that version's labs/{lab} and solutions/{lab}, and run this again.
2. To go over to the lab as it is now, run
       python -m grader class {lab} --new-lab
   It enters all submissions as the new lab asks. Due date, extensions, points by hand and comments are carried over{but}"""


def sentence(lab: str, held: Cells, wanted: Cells, said: str = "", lost: list[str] = ()) -> str:
    """Return the sentence. `held` is what the gradebook knows, `wanted` what labs/ has, `said` nbgrader's own words
    if the two agree.

    `lost` names what can't be carried over to the new lab.
    """
    found = "; ".join(differences(held, wanted)) or said or "its cells differ"
    but = "".join([", but not:", *(f"\n   - {one}" for one in lost)]) if lost else "."
    todo = TODO.format(lab=lab, but=but)
    return f"{lab} was changed after work on it was graded: {found}. Nothing was done. You can do one of two things.\n{todo}"


def differences(held: Cells, wanted: Cells) -> list[str]:
    before, after = _flat(held), _flat(wanted)
    new, gone = sorted(set(after) - set(before)), sorted(set(before) - set(after))
    points = [
        f"{name} has {after[name]:g} points, and had {before[name]:g}"
        for name in sorted(set(before) & set(after))
        if before[name] != after[name]
    ]
    rows = (f"new: {', '.join(new)}" * bool(new), f"gone: {', '.join(gone)}" * bool(gone), *points)
    return [row for row in rows if row]


def _flat(cells: Cells) -> dict[str, float]:
    return {
        f"{notebook}: {cell}": points for notebook, inside in cells.items() for cell, points in inside.items()
    }
