"""Where an access may go, what masked lanes hold, and how it is told when one goes astray."""

import numpy as np
import pytest
import triton
import triton.language as tl

from .machine_for_tests import line_of, on_machine


@triton.jit
def copy_rows(x, o, rows, stride, B: tl.constexpr, R: tl.constexpr):
    i = tl.program_id(0) * R + tl.arange(0, R)[:, None]
    j = tl.arange(0, B)[None, :]
    v = tl.load(x + i * stride + j, mask=i < rows, other=0.0)
    tl.store(o + i * B + j, v, mask=i < rows)


def padded(shape, gap):
    """A tensor with a gap after every row: its storage and how it lies."""
    strides = (shape[1] + gap, 1)
    storage = np.full((shape[0] - 1) * strides[0] + shape[1], np.nan, np.float32)
    view = np.lib.stride_tricks.as_strided(storage, shape, (4 * strides[0], 4))
    view[...] = np.arange(shape[0] * shape[1]).reshape(shape)
    return storage, view, (shape, strides, "km")


def test_a_row_that_is_not_there_is_told_by_its_axis():
    storage, _, placed = padded((50, 8), 0)
    tensors = {"x": storage, "o": np.zeros((64, 8), np.float32)}
    options = {"scalars": {"rows": 64, "stride": 8}, "shapes": {"x": placed}}
    error = on_machine(copy_rows, (4,), tensors, {"B": 8, "R": 16}, **options).error
    assert error["kind"] == "OutOfBounds" and "row k = 50 of x, which has 50" in error["message"]
    assert (error["axis"], error["index"], error["size"], error["program"]) == ("k", 50, 50, [3, 0, 0])
    assert error["line"] == line_of(copy_rows, "tl.load")


def test_rows_with_gaps_are_read_and_written_as_they_lie():
    storage, view, placed = padded((6, 8), 5)
    o = np.zeros((6, 8), np.float32)
    ran = on_machine(
        copy_rows,
        (2,),
        {"x": storage, "o": o},
        {"B": 8, "R": 4},
        scalars={"rows": 6, "stride": 13},
        shapes={"x": placed},
    )
    assert ran.report.error is None and (o == view).all()


@triton.jit
def spill(x, o, stride, B: tl.constexpr):
    j = tl.arange(0, B)
    tl.store(o + tl.program_id(0) * stride + j, tl.load(x + j))


def test_a_store_into_the_gap_between_rows_is_told_by_the_column():
    storage, _, placed = padded((4, 12), 4)
    tensors = {"x": np.ones(16, np.float32), "o": storage}
    error = on_machine(spill, (3,), tensors, {"B": 16}, scalars={"stride": 16}, shapes={"o": placed}).error
    assert "column m = 12 of o, which has 12" in error["message"] and error["program"] == [0, 0, 0]


@triton.jit
def two_at_once(x, o, stride):
    wide = (o + tl.program_id(0) * stride + 2).to(tl.pointer_type(tl.int64), bitcast=True)
    tl.store(wide, tl.load(x).to(tl.int64))


def test_a_store_of_two_elements_of_which_one_is_a_gap_is_told_by_that_one():
    storage, _, placed = padded((4, 3), 1)
    tensors = {"x": np.ones(1, np.float32), "o": storage}
    error = on_machine(two_at_once, (3,), tensors, scalars={"stride": 4}, shapes={"o": placed}).error
    assert "column m = 3 of o, which has 3" in error["message"], error
    assert error["line"] == line_of(two_at_once, "tl.store")


@triton.jit
def at(x, o, n):
    tl.store(o + tl.program_id(0), tl.load(x + n))


@pytest.mark.parametrize(
    "n, words",
    [
        (-1, "element -1 of x, which has 10"),
        (10, "element 10 of x, which has 10"),
        (1 << 30, "element 1073741824 of x"),
    ],
)
def test_before_and_after_a_vector(n, words):
    error = on_machine(
        at, (1,), {"x": np.zeros(10, np.float32), "o": np.zeros(1, np.float32)}, scalars={"n": n}
    ).error
    assert words in error["message"] and error["element"] == n


@triton.jit
def gathered(x, at, o, N, R: tl.constexpr, B: tl.constexpr):
    row, j = tl.load(at + tl.arange(0, R))[:, None], tl.arange(0, B)[None, :]
    tl.store(o + tl.arange(0, R), tl.sum(tl.load(x + row * N + j, mask=j < N), 1))


@pytest.mark.parametrize("rows, last", [((2, 0, 1, 4), 4), ((0, 1, 3, 9), 9), ((1, 1, 0, 7), 7)])
def test_a_row_that_was_looked_up_is_a_row(rows, last):
    """Its tile's rows are not one stride apart, so no step tells the axis."""
    tensors = {
        "x": np.zeros((4, 16), np.float32),
        "at": np.array(rows, np.int32),
        "o": np.zeros(4, np.float32),
    }
    shapes = {"x": ((4, 16), None, "mk")}
    error = on_machine(gathered, (1,), tensors, {"R": 4, "B": 16}, scalars={"N": 16}, shapes=shapes).error
    assert f"row m = {last} of x, which has 4" in error["message"], error
    assert "by the same address" not in error["message"], error


@triton.jit
def heads(x, o, N, D: tl.constexpr, R: tl.constexpr):
    i, j = tl.arange(0, R)[:, None], tl.arange(0, D)[None, :]
    v = tl.load(x + tl.program_id(0) * N * D + i * D + j)
    tl.store(o + tl.program_id(0), tl.sum(tl.sum(v, 1), 0))


def test_of_three_axes_the_one_along_which_the_tile_moves_is_named():
    """Rows that run past the last head are rows, not one more head."""
    tensors = {"x": np.zeros((2, 12, 8), np.float32), "o": np.zeros(2, np.float32)}
    shapes = {"x": ((2, 12, 8), None, "hnd")}
    error = on_machine(heads, (2,), tensors, {"D": 8, "R": 16}, scalars={"N": 12}, shapes=shapes).error
    assert "n = 12 of x, which has 12" in error["message"] and error["program"] == [1, 0, 0]


@triton.jit
def tile(x, o, M, N, R: tl.constexpr, B: tl.constexpr):
    i, j = tl.program_id(0) * R + tl.arange(0, R)[:, None], tl.program_id(1) * B + tl.arange(0, B)[None, :]
    v = tl.load(x + i * N + j, mask=(i < M) & (j < N + 8), other=0.0)
    tl.store(o + tl.program_id(0), tl.sum(tl.sum(v, 1), 0))


def test_a_column_that_runs_into_the_next_row_is_a_column():
    """Its address would be that of one more row: the tile's corner and the lane's place in it tell."""
    tensors = {"x": np.zeros((20, 50), np.float32), "o": np.zeros(3, np.float32)}
    error = on_machine(
        tile,
        (3, 4),
        tensors,
        {"R": 8, "B": 16},
        scalars={"M": 20, "N": 50},
        shapes={"x": ((20, 50), None, "mn")},
    ).error
    assert "column n = 50 of x, which has 50" in error["message"]


def test_where_one_number_fits_two_axes_both_are_said():
    tensors = {"x": np.zeros((4, 2), np.float32), "o": np.zeros(3, np.float32)}
    error = on_machine(at, (1,), tensors, scalars={"n": 8}, shapes={"x": ((4, 2), None, "mk")}).error
    assert (
        "row m = 4 of x, which has 4; by the same address column k = 2 of its last row, which has 2"
        in error["message"]
    )


@triton.jit
def whole_head(x, o, N, D: tl.constexpr):
    v = tl.load(x + tl.program_id(0) * N * D + tl.program_id(1) * D)
    tl.store(o + tl.program_id(0), v)


def test_a_head_too_many_is_a_head():
    tensors = {"x": np.zeros((2, 12, 8), np.float32), "o": np.zeros(3, np.float32)}
    error = on_machine(
        whole_head, (3,), tensors, {"D": 8}, scalars={"N": 12}, shapes={"x": ((2, 12, 8), None, "hnd")}
    ).error
    assert "h = 2 of x, which has 2" in error["message"]


@triton.jit
def into_input(x, o):
    tl.store(x + tl.program_id(0), 1.0)
    tl.store(o + tl.program_id(0), 1.0)


def test_an_input_that_is_written_is_told():
    error = on_machine(into_input, (2,), {"x": np.zeros(2, np.float32), "o": np.zeros(2, np.float32)}).error
    assert error["kind"] == "WrittenInput" and error["message"] == "store to x, which is an input: program 0"
    assert error["line"] == line_of(into_input, "store(x")


@triton.jit
def half(x, o, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + i * 2, tl.load(x + i) + tl.load(o + i * 2))


def test_what_is_read_or_left_before_it_is_written():
    ran = on_machine(half, (1,), {"x": np.zeros(4, np.float32), "o": np.zeros((2, 4), np.float32)}, {"B": 4})
    assert ran.report.unwritten == {"o": {"count": 4, "first": [0, 1]}}
    assert ran.report.read_unwritten == [{"tensor": "o", "element": 0, "line": line_of(half, "tl.load(o")}]
    again = on_machine(
        half,
        (1,),
        {"x": np.zeros(4, np.float32), "o": np.zeros(8, np.float32)},
        {"B": 4},
        roles={"o": "inout"},
    )
    assert not again.report.unwritten and not again.report.read_unwritten


@triton.jit
def added(x, o, n, B: tl.constexpr):
    i = tl.arange(0, B)
    if n > 0:
        tl.atomic_xchg(o + i, 0.0)
    tl.atomic_add(o + i, tl.load(x + i))


@pytest.mark.parametrize("cleared", [0, 7])
def test_what_is_added_to_nothing_is_read_before_it_is_written(cleared):
    tensors = {"x": np.ones(4, np.float32), "o": np.zeros(4, np.float32)}
    ran = on_machine(added, (1,), tensors, {"B": 4}, scalars={"n": cleared})
    lines = {row["line"] for row in ran.report.read_unwritten}
    assert lines == (set() if cleared else {line_of(added, "atomic_add")})


@triton.jit
def masked(x, o, n, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i, mask=i < n)
    w = tl.load(x + i, mask=i < n, other=0.0)
    tl.store(o, tl.sum(v, 0))
    tl.store(o + 1, tl.sum(w, 0))
    tl.store(o + 2, tl.sum(tl.where(i < n, v, 0.0), 0))


def masked_run(n, **more):
    o = np.zeros(3, np.float32)
    ran = on_machine(
        masked, (1,), {"x": np.ones(16, np.float32), "o": o}, {"B": 16}, scalars={"n": n}, **more
    )
    return o.tolist(), ran.report


def test_masked_lanes_without_other_hold_nothing_of_use():
    (free, given, chosen), report = masked_run(11)
    assert np.isnan(free) and given == chosen == 11
    assert report.masked_lines == [line_of(masked, "v = tl.load")]
    assert masked_run(16)[0] == [16, 16, 16] and not masked_run(16)[1].masked_lines


def test_another_poison_line_by_line():
    line = line_of(masked, "v = tl.load")
    assert masked_run(11, poisoned_lines=(line,))[0] == [11, 11, 11]
    assert np.isnan(masked_run(11, poisoned_lines=(line + 1,))[0][0])
    assert masked_run(11, poison=1)[0] == [11, 11, 11]


@triton.jit
def count_of(x, o, N, which, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i, mask=i < N)
    tl.store(o, tl.sum((v == which).to(tl.int32), 0))


@pytest.mark.parametrize("which", [-1, 0, 0x77777777])
def test_no_number_is_what_no_masked_lane_holds(which):
    """Whatever an answer takes for nobody's number, -1 or 0, some lane holds somebody's."""
    x, o = np.full(20, 7, np.int32), np.zeros(1, np.int32)
    on_machine(count_of, (1,), {"x": x, "o": o}, {"N": 20, "which": which, "B": 32})
    assert o[0] == 4


def test_a_mask_hides_what_is_outside():
    assert masked_run(0)[1].error is None


@triton.jit
def either_tensor(x, y, o, B: tl.constexpr):
    i = tl.arange(0, B)
    p = tl.where(i % 2 == 0, x, y) if False else x
    if tl.program_id(0) == 1:
        p = y
    tl.store(o + tl.program_id(0) * B + i, tl.load(p + i))


def test_one_load_that_reaches_two_tensors():
    x, y, o = np.zeros(8, np.float32), np.ones(8, np.float32), np.full(16, -1, np.float32)
    ran = on_machine(either_tensor, (2,), {"x": x, "y": y, "o": o}, {"B": 8})
    assert ran.report.error is None and o.tolist() == [0.0] * 8 + [1.0] * 8
    assert ran.counts("x", "load")["requested"] == ran.counts("y", "load")["requested"] == 32


@triton.jit
def through_nothing(x, o):
    tl.store(o, tl.load(x + (1 << 60)))


def test_a_pointer_to_nowhere():
    error = on_machine(
        through_nothing, (1,), {"x": np.zeros(2, np.float32), "o": np.zeros(1, np.float32)}
    ).error
    assert error["kind"] == "OutOfBounds" and "outside" in error["message"]


@triton.jit
def wide(x, o):
    p = o.to(tl.pointer_type(tl.int32), bitcast=True)
    tl.store(p + tl.program_id(0), tl.load(x.to(tl.pointer_type(tl.int32), bitcast=True) + tl.program_id(0)))


def test_an_access_wider_than_the_elements_covers_them_all():
    x, o = np.arange(8, dtype=np.int16), np.zeros(8, np.int16)
    ran = on_machine(wide, (4,), {"x": x, "o": o})
    assert ran.report.error is None and (o == x).all() and not ran.report.unwritten
    assert ran.tensors["o"].stores.tolist() == [1] * 8
