"""What messages lead to, as a reader judged who did not know the code: at least nine in ten to the mend.

Another reader had written these wrong answers from the labs' text alone. Of the first reading 95 of 118 led there; what
the others lacked, mostly a name for a common mistake, was added, and those were read again by a third.
"""

import csv
from pathlib import Path

from grader import questions

ROWS = list(csv.DictReader(Path(__file__).with_name("messages.psv").open(encoding="utf-8"), delimiter="|"))


def test_each_row_says_what_the_message_led_to():
    assert len(ROWS) > 100 and {row["question"] for row in ROWS} <= set(questions.load())
    assert all(row["leads"] in ("yes", "partly", "no") and row["what the message led to"] for row in ROWS)


def test_nine_in_ten_lead_to_the_mend():
    assert sum(row["leads"] == "yes" for row in ROWS) >= 0.9 * len(ROWS)
