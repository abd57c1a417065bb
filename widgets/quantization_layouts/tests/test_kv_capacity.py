"""Capacity counted request by request."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from widgets.registry import find
from widgets.scene import NARROW, WIDE

KV = find("kv_capacity")


def capacity(**inputs):
    return KV.run(**KV.inputs(inputs))


STATES = st.fixed_dictionaries(
    {
        "weight_bits": st.sampled_from([2, 4, 8, 16]),
        "kv_bits": st.sampled_from([4, 8, 16]),
        "tokens": st.sampled_from([4096, 32768]),
        "mean_tokens": st.sampled_from([100, 500, 4000]),
        "devices": st.sampled_from([1, 8, 16]),
    }
)


@given(STATES)
def test_one_request_more_would_not_fit(inputs):
    r = capacity(**inputs)
    for s in (r.before, r.narrow, r.paged):
        fits = s.requests * s.request_bytes / r.devices
        assert fits <= s.free_bytes * (1 + 1e-12)
        if s.weight_bytes < r.memory_bytes:
            assert fits + s.request_bytes / r.devices > s.free_bytes
            assert s.weight_bytes + s.free_bytes == pytest.approx(r.memory_bytes)
        else:
            assert s.requests == 0


@given(STATES)
def test_a_request_is_its_numbers(inputs):
    r = capacity(**inputs)
    numbers = 2 * 80 * 8 * 128 * inputs["tokens"]
    assert r.narrow.request_bytes == pytest.approx(numbers * inputs["kv_bits"] / 8)
    assert r.narrow.used_share == pytest.approx(inputs["mean_tokens"] / inputs["tokens"])
    held = (
        2 * 80 * 8 * 128 * (inputs["mean_tokens"] + 7.5) * inputs["kv_bits"] / 8
    )  # half a page of 16 is empty
    assert r.paged.request_bytes == pytest.approx(held)


def test_pages_of_one_token_waste_nothing():
    assert capacity(page_tokens=1).paged.used_share == 1


def test_weights_that_do_not_fit_are_said():
    small = capacity(devices=1)
    assert small.before.requests == 0 < small.narrow.requests
    assert KV.scenes(small)[-1].warning.startswith("Nothing fits in 16 bits")
    none = capacity(devices=1, memory_gb=24)
    assert none.narrow.requests == 0 and "fewer bits too" in KV.scenes(none)[-1].warning


def test_a_mean_above_the_maximum_is_refused():
    with pytest.raises(ValueError, match="mean_tokens must be at most 1024, got 4000; "):
        capacity(tokens=1024, mean_tokens=4000)


@pytest.mark.parametrize("width", [NARROW, WIDE])
def test_a_bar_longer_than_its_memory_is_broken_and_says_by_how_much(width):
    marks = {mark["id"]: mark for mark in KV.scenes(capacity(devices=1), width=width)[-1].marks}
    assert "60" in marks["m-before-weights"]["tip"] and "too many" in marks["m-before-weights"]["tip"]
    bar, torn = marks["m-before-weights"], marks["m-before-break"]["p"]
    assert bar["x"] < min(torn[::2]) and max(torn[::2]) < bar["x"] + bar["w"]
    assert "m-narrow-break" not in marks
    assert not any("break" in mark["id"] for mark in KV.scenes(capacity(), width=width)[-1].marks)


def test_a_phone_names_both_ends_of_its_axis():
    marks = {mark["id"]: mark for mark in KV.scenes(capacity(), width=NARROW)[-1].marks}
    ticks = [marks[f"memory-tick{i}"]["s"].replace("\u202f", " ") for i in range(3)]
    assert [tick.split()[0] for tick in ticks] == ["0", "40", "80"]


@pytest.mark.parametrize("width", [NARROW, WIDE])
def test_every_part_has_its_name_in_the_key(width):
    marks = {mark["id"]: mark for mark in KV.scenes(capacity(), width=width)[-1].marks}
    names = [marks[f"key-{role}-name"]["s"] for role in ("primary", "useful", "waste")]
    assert names == ["weights", "tokens", "reserved, empty"]


@pytest.mark.parametrize("tokens, mean", [(4096, 500), (4096, 2000), (32768, 1000)])
def test_paging_s_promise_is_said_with_what_fits_if_all_requests_grow(tokens, mean):
    """All pages of a request of the longest length are full, so it takes what a whole reservation takes."""
    r = capacity(tokens=tokens, mean_tokens=mean)
    longest = tokens * r.kv_bytes_per_token * r.paged.kv_bits / 16
    room = r.devices * (r.memory_bytes - r.paged.weight_bytes)
    assert r.grown * longest <= room < (r.grown + 1) * longest and r.grown < r.paged.requests
    scene = KV.scenes(r)[-1]
    grown = next(m["s"] for m in scene.marks if m["id"] == "grown")
    assert grown == f"{r.grown:,} if all grow"
    assert f"{r.grown:,} if all grow" in KV.scenes(capacity())[-1].takeaway or tokens != 4096 or mean != 500


def test_one_gpu_is_one_and_a_gain_from_nothing_is_said():
    scene = KV.scenes(capacity(devices=1))[-1]
    title = next(m["s"] for m in scene.marks if m["id"] == "memory-title")
    assert title == "Memory of the one GPU" and scene.summary.startswith("1 GPU holds 0 requests")
    assert "from none" in scene.summary


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("tokens", [4096, 32768])
def test_the_mean_s_knob_hides_nothing_of_what_it_measures(tokens, width):
    marks = {m["id"]: m for m in KV.scenes(capacity(tokens=tokens), width=width)[-1].marks}
    bar, knob = marks["r-before-held"], marks["pull-mean"]
    assert knob["y"] + 9 <= bar["y"] + 8 or knob["y"] - 9 >= bar["y"] + bar["h"] - 6
    assert marks["mean-end"]["x"] == knob["x"] == pytest.approx(bar["x"] + bar["w"], abs=0.02)


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("preset", KV.presets)
def test_requests_arrive_until_each_way_is_full(preset, width):
    r = KV.run(**KV.inputs(KV.presets[preset]))
    seen = []
    for scene in KV.scenes(r, width=width):
        marks = {m["id"]: m for m in scene.marks}
        seen.append(
            [int(marks[f"m-{id}-requests"]["s"].replace(",", "")) for id in ("before", "narrow", "paged")]
        )
    limits = [r.before.requests, r.narrow.requests, r.paged.requests]
    assert seen[-1] == limits and "every way is full" in scene.caption
    for before, after in zip(seen, seen[1:], strict=False):
        assert all(a <= b for a, b in zip(before, after, strict=True)) and before != after
    assert all(row == [min(max(row), limit) for limit in limits] for row in seen), (
        "all ways get the same requests"
    )
