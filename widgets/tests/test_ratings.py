"""Every simulator was looked at by readers who did not draw it, and what each rated it is kept with the reason.

1 misleads; 2: the words have to be read for the answer, or something wrong or covered spoils it; 3: the picture answers
the question, what matters is largest, words and picture agree, what the question is about can be touched; 4: as good as
the best explainers. Halves are between. The first and the second reader each rated all simulators, without each other's
ratings. A third rates what was redrawn since. "new" is one that waits for its first reader.
"""

import csv
from pathlib import Path

from widgets.registry import every

ROWS = list(csv.DictReader(Path(__file__).with_name("ratings.psv").open(encoding="utf-8"), delimiter="|"))


def test_each_simulator_has_its_readers_ratings_and_reasons():
    assert {row["simulator"] for row in ROWS} == {declared.id for declared in every()}
    assert len({(row["simulator"], row["reader"]) for row in ROWS}) == len(ROWS)
    assert all(len(row["reason"]) > 60 for row in ROWS)


def test_none_is_rated_below_three():
    rated = [(row["simulator"], float(row["rating"])) for row in ROWS if row["rating"] != "new"]
    assert all(1 <= rating <= 4 and rating * 2 == int(rating * 2) for _, rating in rated)
    assert not [name for name, rating in rated if rating < 3]


def test_four_at_least_are_a_four_for_both_and_the_average_holds():
    rated = [row for row in ROWS if row["rating"] != "new"]
    best = [row["simulator"] for row in rated if row["rating"] == "4"]
    assert sum(best.count(name) > 1 for name in set(best)) >= 4
    assert sum(float(row["rating"]) for row in rated) / len(rated) >= 3.15
