"""The honest corpus: unusual right answers get full points, or lose exactly what they honestly cost."""

import importlib
from pathlib import Path

from grader import referee
from grader.record import PASS, Record
from grader.suites.right import edited, kernel_questions, right

SEED = 2026
LEAST = 6  # forms a kernel question
CELLS = Path(__file__).parent / "cells"
SAMPLE = (
    ("roofline.layernorm_gelu", "four rows a program"), ("gemm_tiling.tiled_gemm", "persistent programs"),
    ("gemm_tiling.tiled_gemm", "split K with a second kernel"), ("flash_attention.forward", "diagonal apart"),
    ("sampling_fusion.draw", "two launches"),
)  # fmt: skip


def forms(question) -> dict:
    """name -> (parts lost, edits or cell), the right answer as it stands first."""
    try:
        table = importlib.import_module(f"grader.suites.honest.{question.slug}").FORMS
    except ModuleNotFoundError:
        table = {}
    return {"as it stands": ((), ()), **table.get(question.id, {})}


def source(question, name: str) -> str:
    change = forms(question)[name][1]
    if isinstance(change, str):
        return (CELLS / f"{change}.py").read_text(encoding="utf-8")
    return edited(right(question.id), change)


def judged(question, name: str) -> tuple[Record, str]:
    """(the verdict, what of the promise it breaks)."""
    verdict = referee.grade_one(source(question, name), question, seed=SEED, eager=False)
    lost, wanted = {p.name for p in verdict.parts if p.state != PASS}, set(forms(question)[name][0])
    if verdict.parts and lost == wanted:
        return verdict, ""
    return verdict, f"must lose {', '.join(sorted(wanted)) or 'nothing'}"


def run(everything: bool, say, question: str | None = None) -> tuple[list[dict], list[str]]:
    rows, broken = [], []
    for one in kernel_questions():
        names = list(forms(one))
        if question not in (None, one.id):
            continue
        if len(names) <= LEAST:
            broken.append(f"{one.id} must have {LEAST} honest forms or more, got {len(names) - 1}")
        for name in names:
            if not everything and (one.id, name) not in SAMPLE:
                continue
            verdict, why = judged(one, name)
            rows.append({"question": one.id, "form": name, "verdict": verdict.verdict, "points": f"{verdict.points:g}/{verdict.of:g}"})
            if why:
                broken.append(f"{one.id}, {name}: {why}, got\n{verdict}")
            say(rows[-1])
    return rows, broken
