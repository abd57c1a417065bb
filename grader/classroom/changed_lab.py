"""A lab that is not the one in the gradebook: what differs, and what an instructor can do about it."""

Cells = dict[str, dict[str, float]]  # notebook -> graded cell -> points

TODO = """\
1. To finish this round as it was handed out, bring back that version's labs/{lab} and solutions/{lab}, and run this again.
2. To go over to the lab as it is now, keep a copy of gradebook.db, run
       nbgrader db assignment remove {lab} --force
   and run this again: all submissions are entered as the new lab asks. Points and comments that people gave for {lab} go;
   the copy has them."""


def sentence(lab: str, held: Cells, wanted: Cells, said: str = "") -> str:
    """`held` is what the gradebook knows, `wanted` what labs/ has; `said` nbgrader's own words, where the two agree."""
    found = "; ".join(differences(held, wanted)) or said or "its cells differ"
    return f"{lab} was changed after work on it was graded: {found}. nbgrader takes no such change, and nothing was done.\n{TODO.format(lab=lab)}"


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
