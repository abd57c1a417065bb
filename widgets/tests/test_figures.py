"""Every figure that the sources state is what our simulators say. figures.psv lists them, one row each.

A row's function stands in figures/<topic>.py under the row's id: `FIGURES = {"reuse_square": reuse_square}`.
It asserts what the row expects, and where a source rounds, it says so. A row may wait only as long as its
simulator is not there.
"""

import csv
from importlib import import_module
from pathlib import Path

import pytest

from widgets.registry import places

HERE = Path(__file__).parent


def rows() -> list[dict]:
    with (HERE / "figures.psv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="|", quoting=csv.QUOTE_NONE))


def bound(topic: str) -> dict:
    if not (HERE / "figures" / f"{topic}.py").exists():
        return {}
    return import_module(f"widgets.tests.figures.{topic}").FIGURES


@pytest.mark.parametrize("row", rows(), ids=lambda row: row["id"])
def test_figure(row):
    check = bound(row["topic"]).get(row["id"])
    if check is None and row["simulator"] not in places():
        pytest.skip(f"{row['topic']}.{row['simulator']} is not written yet")
    assert check, (
        f"no function for {row['id']!r} in figures/{row['topic']}.py: {row['given']} -> {row['expect']}"
    )
    check()


def test_rows_and_functions_belong_together():
    listed = {row["id"]: row["topic"] for row in rows()}
    assert len(listed) == len(rows()), "ids are unique"
    for topic in sorted({row["topic"] for row in rows()}):
        strangers = [id for id in bound(topic) if listed.get(id) != topic]
        assert not strangers, f"figures/{topic}.py: no row for {strangers}"
