"""A jail that lies about ranks: whatever a reply holds, it is an exchange of a known kind or it is refused."""

import copy

import numpy as np
import pytest

from grader.box.warm import clean_error
from grader.jail import exchange, protocol

DIGEST = "0" * 64
ROWS = {"call": "send_rows", "array": "r0", "send": [1, 2], "receive": [0, 4], "before": [DIGEST]}
COUNTS = {"call": "exchange_counts", "array": "r1", "send": [], "receive": [], "before": [DIGEST]}
ENDED = {"result": {"array": "r0"}, "before": []}
ARRAYS = {"r0": np.zeros((3, 4), np.float32), "r1": np.zeros((2, 5), np.int64)}


def read(row, arrays=ARRAYS, ranks=2):
    (turn,) = exchange.turns({"turns": [row]}, arrays, [ranks], clean_error)
    return turn


def test_turns_of_the_agreed_form_are_read():
    assert read(ROWS).ask.send == (1, 2) and read(ROWS).before == (DIGEST,)
    assert read(COUNTS).ask.array.shape == (2, 5)
    assert list(read(ENDED).of_result()) == ["r0"]
    error = read({"error": {"kind": 3, "message": "x" * 9999, "line": "one"}, "before": []}).error
    assert error["line"] is None and len(error["message"]) == 2000


BIG = np.lib.stride_tricks.as_strided(np.zeros(1, np.int8), (1 << 30,), (0,))
LIES = {
    "no turn": ({}, ROWS | {"before": None}),
    "a list": ({}, []),
    "another call": ({}, ROWS | {"call": "all"}),
    "a call that is no text": ({}, ROWS | {"call": ["send_rows"]}),
    "no array": ({}, ROWS | {"array": "r9"}),
    "an array that is no name": ({}, ROWS | {"array": ["r0"]}),
    "too few splits": ({}, ROWS | {"send": [3]}),
    "a split below nothing": ({}, ROWS | {"send": [4, -1]}),
    "a split that is no number": ({}, ROWS | {"send": [True, 2]}),
    "a half row": ({}, ROWS | {"send": [1.5, 1.5]}),
    "rows that are not sent": ({}, ROWS | {"send": [1, 1]}),
    "rows without an end": ({"r0": BIG}, ROWS | {"send": [1 << 30, 0]}),
    "a number for an array": ({"r0": np.float32(3).reshape(())}, ROWS),
    "many axes": ({"r0": np.zeros((3, 1, 1, 1, 1))}, ROWS),
    "counts of another type": ({"r1": np.zeros((2, 5))}, COUNTS),
    "counts for others": ({"r1": np.zeros((3, 5), np.int64)}, COUNTS),
    "counts without an end": ({"r1": np.zeros((2, 5000), np.int64)}, COUNTS),
    "no digest": ({}, ROWS | {"before": []}),
    "a long digest": ({}, ROWS | {"before": ["0" * 65]}),
    "many digests": ({}, ROWS | {"before": [DIGEST] * 18}),
    "a result that is not there": ({}, ENDED | {"result": {"array": "r7"}}),
    "a result of two kinds": ({}, ENDED | {"result": {"array": "r0", "list": []}}),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_refused(lie):
    arrays, row = LIES[lie]
    with pytest.raises(protocol.BadReply):
        read(copy.deepcopy(row), ARRAYS | arrays)


@pytest.mark.parametrize("turns", [None, [], [ROWS, ROWS], {"0": ROWS}])
def test_a_turn_for_each_case(turns):
    with pytest.raises(protocol.BadReply):
        exchange.turns({"turns": turns}, ARRAYS, [2], clean_error)


def test_a_request_holds_one_ranks_arrays_alone():
    request, arrays = exchange.request("cell", "f", 1, [(2, (np.ones(3), 7), [np.zeros(2)])])
    task = request.task()
    assert task["rank"] == 1 and task["cases"] == [
        {
            "ranks": 2,
            "arguments": [{"array": "a0"}, {"value": 7}],
            "replies": [{"array": "a1"}],
            "first": None,
        }
    ]
    assert [a.tolist() for a in arrays.values()] == [[1, 1, 1], [0, 0]]
