"""How a ring's programs share the work: the kernel's own arithmetic, run on whole numbers; its numbers need a GPU."""

from types import SimpleNamespace

import pytest
import torch

from kernels.quantization_layouts import cases, ring
from kernels.quantization_layouts.packed import pack
from kernels.quantization_layouts.ring_launch import OF_KIND, PICKS, Ring, pick, shares, takes
from kernels.quantization_layouts.ring_launch import ring as launch
from kernels.quantization_layouts.stream import shared_limit
from kernels.tests.figures import REFUSAL
from kernels.tests.properties import given, st

SIZES = {"tiles": st.integers(1, 60), "steps": st.integers(1, 40), "multiprocessors": st.integers(1, 140)}


def as_program(monkeypatch, program: int, programs: int):
    grid = SimpleNamespace(program_id=lambda axis: program, num_programs=lambda axis: programs)
    monkeypatch.setattr(ring, "gl", grid)


@given(**SIZES, even=st.booleans())
def test_every_step_is_somebodys_and_nobody_has_two_tiles_that_end_elsewhere(
    tiles, steps, multiprocessors, even
):
    programs, cut = shares(Ring(even=even), tiles, steps, multiprocessors)
    assert programs <= max(multiprocessors, 1)
    sizes, held = (tiles, steps), {}
    with pytest.MonkeyPatch.context() as patch:
        end = 0
        for program in range(programs):
            as_program(patch, program, programs)
            first, last = ring._share.fn(sizes, cut)
            assert first == end <= last
            end, slots = last, set()
            while first < last:
                to = min(last, (first // steps + 1) * steps)
                if to - first < steps:
                    assert cut and (first % steps == 0) not in slots, (
                        "each part of a tile has a slot of its own"
                    )
                    slots.add(first % steps == 0)
                    held[first] = program
                first = to
        assert end == tiles * steps
        for step, program in held.items():
            assert ring._owner.fn(step, sizes) == program
            tile = step // steps
            head, tail = (ring._owner.fn(at, sizes) for at in (tile * steps, tile * steps + steps - 1))
            parts = [p for at, p in held.items() if at // steps == tile]
            assert sorted(parts) == list(range(head, tail + 1)), "who comes last adds just these"


def test_whole_parts_of_tiles_where_there_are_few():
    assert shares(Ring(even=False), 112, 64, 132) == (112, False)
    assert shares(Ring(even=False), 32, 32, 132) == (128, True)
    assert shares(Ring(even=False), 32, 2, 132) == (64, True), "no program without a step"
    assert shares(Ring(), 2**20, 64, 132) == (132, False), "shares that 32 bits cannot count"
    assert shares(Ring(), 2**20, 2**11, 1) == (1, False) and shares(Ring(), 2**20 - 1, 2**11, 1) == (1, True)


@given(experts=st.integers(1, 5), tiles_n=st.integers(1, 9), tiles_m=st.integers(1, 5))
def test_tiles_have_places_of_their_own(experts, tiles_n, tiles_m):
    sizes = (0, 0, tiles_n, tiles_m)
    places = [ring._place.fn(tile, sizes) for tile in range(experts * tiles_n * tiles_m)]
    assert places == [(e, n, m) for e in range(experts) for n in range(tiles_n) for m in range(tiles_m)]


def test_what_is_picked_holds_its_rows_and_fits():
    for rows in (1, 8, 9, 16, 33, 64, 65, 4000):
        config = pick(rows)
        assert config.cols >= min(rows, 128)
    assert [pick(most) for most in PICKS] == list(PICKS.values()), "each up to its own number of rows"
    for config in (*PICKS.values(), pick(128)):
        # words, X, and scales and zero points of groups of 32
        step = config.rows * 64 + config.cols * 256 + config.rows * 4 * 3
        assert config.stages * step + 1024 <= shared_limit(torch.device("cpu")), config
    for kind, sizes in OF_KIND.items():
        for most, config in ((most, config) for picks in sizes for most, config in picks.items()):
            scales = config.rows * 16 if kind == "fp4" else 0  # of groups of 16
            step = config.rows * 64 + most * (256 if kind == "fp4" else 128) + scales
            assert most == config.cols and config.stages * step + 1024 <= shared_limit(torch.device("cpu")), (
                config
            )


def test_other_bits_are_refused_and_other_gpus_are_known():
    (q,) = cases.quantized(cases.book(2, 48, 128, 3))
    w = pack(q)
    assert not takes(w)
    with pytest.raises(ValueError, match=REFUSAL) as error:
        launch(torch.zeros(2, 128, dtype=w.dtype), w)
    assert error.match("^w must be of four bits, or int8, got 3; run it with stream or tile")
