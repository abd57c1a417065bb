"""The matrix as it is shown: what runs breaks no rule, and nothing valid stands before it."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.next_bottleneck import cost
from widgets.next_bottleneck import backend_dispatcher
from widgets.registry import find
from widgets.scene import NARROW, WIDE

DISPATCHER = find("backend_dispatcher")
FEATURES = cost.FEATURES["attention"]


def matrix(**inputs):
    return DISPATCHER.run(**DISPATCHER.inputs(inputs))


@given(*(st.sampled_from(FEATURES[name]) for name in ("gpu_sm", "head_dim", "kv_dtype", "page_size", "attention", "mask")))  # fmt: skip
def test_what_runs_is_the_first_that_breaks_no_rule(gpu_sm, head_dim, kv_dtype, page_size, kind, mask):
    r = matrix(
        gpu_sm=gpu_sm,
        head_dim=head_dim,
        kv_dtype=kv_dtype,
        page_size=page_size,
        attention_kind=kind,
        mask=mask,
    )
    valid = [row.backend for row in r.rows if not row.broken]
    assert [row.backend for row in r.rows if row.valid] == valid and r.valid == len(valid)
    assert r.chosen == (valid[0] if valid else "")
    before = list(itertools.takewhile(lambda row: not row.valid, r.rows))
    assert len(before) == r.ahead_but_invalid == (r.place - 1 if r.chosen else len(r.rows))
    assert all(row.why and set(row.broken) <= set(row.checked) for row in before)


def test_an_int8_cache_leaves_one_of_eleven_and_16_bits_bring_the_fast_ones_back():
    narrow, wide = matrix(), matrix(kv_dtype="16-bit")
    assert (narrow.valid, narrow.chosen, narrow.ahead_but_invalid) == (1, "Triton attention", 5)
    assert wide.chosen == "FlashAttention 3" and wide.valid == 5


def test_the_quantized_formats_meet_the_kernels_that_the_source_names():
    """Layout and kernel must agree: group 128 has a tuned int4 kernel, 256 only what unpacks first."""
    chosen = {group: matrix(operation="gemm", group=group).chosen for group in (32, 128, 256)}
    assert chosen == {32: "Marlin", 128: "Machete", 256: "Triton GEMM"}
    assert matrix(operation="gemm", weights="fp8", group=0).chosen == "CUTLASS fp8"
    assert matrix(operation="gemm", weights="int8 W8A8", group=0).chosen == "CUTLASS int8"
    assert matrix(operation="gemm", weights="bf16").chosen == "cuBLAS"


def test_large_messages_and_several_nodes_go_to_nccl():
    assert matrix(operation="all-reduce").chosen == "one-shot over NVLink, 8 GPUs"
    assert matrix(operation="all-reduce", message_bytes=2**20).chosen == "NCCL"
    assert matrix(operation="all-reduce", nvlink=False).chosen == "NCCL"


def test_where_nothing_may_run_it_says_so():
    r = matrix(gpu_sm=75, kv_dtype="int8")
    assert r.chosen == "" and r.valid == r.place == 0 and r.ahead_but_invalid == r.backends
    scene = DISPATCHER.scenes(r)[-1]
    assert scene.warning and "refuse" in scene.takeaway


def test_impossible_requests_are_sentences():
    with pytest.raises(ValueError, match="Weights of experts must be .* got int8 W8A8; no grouped kernel"):
        matrix(operation="moe", weights="int8 W8A8")
    with pytest.raises(ValueError, match="GPUs must be at least one a node, got 2 on 8 nodes; take more"):
        matrix(operation="all-reduce", gpus=2, nodes=8)


def test_the_request_goes_gate_by_gate_and_stops_at_the_first_that_is_shut():
    r = matrix()
    frames = DISPATCHER.scenes(r)
    assert DISPATCHER.stepper.start(r) == len(frames) - 1
    balls = [next(m for m in f.marks if m["id"] == "request") for f in frames]
    assert [b["y"] for b in balls] == sorted(b["y"] for b in balls), "from the fastest down"
    for row in r.rows[: r.place]:
        marks = [
            {m["id"]: m for m in f.marks}
            for f, b in zip(frames, balls, strict=True)
            if f"at {row.backend}" in b["tip"]
        ]
        xs = [one["request"]["x"] for one in marks]
        assert xs == sorted(xs), "within a lane it only goes on"
        gates = [name for name in r.features if name in row.checked]
        open_ = list(itertools.takewhile(lambda name, row=row: name not in row.broken, gates))
        assert len(marks) == len(open_) + 1 and all(
            marks[-1][f"row{row.preference}-{n}"]["role"] == "useful" for n in open_
        )
        if row.broken:
            shut = marks[-1][f"row{row.preference}-{row.broken[0]}"]
            assert (
                shut["role"] == "hot"
                and xs[-1] < shut["x"]
                and "refuses" in frames[len(open_)].caption
                or row.preference
            )
            why = marks[-1][f"row{row.preference}-why"]["s"]
            assert why.startswith(row.why.split("; ")[0].split(": ")[1]), (
                "the words are those of the gate it stops at"
            )
    assert "takes the request. Slower" in frames[-1].caption
    refused = DISPATCHER.scenes(matrix(gpu_sm=75))
    assert "There is no next one" in refused[-1].caption, "where nothing may run, all are asked"


@pytest.mark.parametrize("preset", DISPATCHER.presets)
def test_gates_of_lanes_not_asked_have_no_colour(preset):
    r = DISPATCHER.run(**DISPATCHER.inputs(DISPATCHER.presets[preset]))
    marks = DISPATCHER.scenes(r)[-1].marks
    later = [
        m for m in marks if m["t"] == "rect" and int(m["id"][3:].split("-")[0]) >= (r.place or len(r.rows))
    ]
    assert {m["role"] for m in later} <= {"idle"}
    asked = [m for m in marks if m["t"] == "rect" and m not in later]
    assert {"useful", "hot"} & {m["role"] for m in asked} or not asked


REQUESTS = [
    {}, {"kv_dtype": "16-bit"}, {"operation": "gemm"}, {"operation": "gemm", "weights": "fp8"},
    {"operation": "moe"}, {"operation": "moe", "group": 256}, {"operation": "all-reduce"},
    {"operation": "all-reduce", "gpus": 4},
]  # fmt: skip


@pytest.mark.parametrize("inputs", REQUESTS, ids=str)
@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_every_operation_has_a_knob_that_says_who_runs_at_each_of_its_values(inputs, width):
    r = matrix(**inputs)
    scene = DISPATCHER.scenes(r, width=width)[-1]
    marks = {mark["id"]: mark for mark in scene.marks}
    (knob,) = marks["pull-dial"]["drag"]
    word = "kernel" if width == WIDE else "no."
    for i, value in enumerate(knob["to"]):
        then = matrix(**{**inputs, knob["input"]: value})
        assert marks[f"dial{i}-place"]["s"] == (f"{word} {then.place}" if then.place else "nobody")
    assert any(r.features[feature] in knob["to"] for feature in r.features)


def test_a_gate_is_shut_open_or_not_there():
    r = matrix()
    marks = {mark["id"]: mark for mark in DISPATCHER.scenes(r)[-1].marks}
    for row in r.rows:
        for feature in r.features:
            id, asked = f"row{row.preference}-{feature}", row.preference < r.place
            assert (id in marks) == (feature in row.checked and asked), "whoever isn't asked has no gates"
            assert (f"{id}-low" in marks) == (feature in row.checked and asked and feature not in row.broken)
        if row.preference >= r.place:
            assert marks[f"row{row.preference}-why"]["s"].startswith("slower, ")
    assert "row5-kv_dtype" not in marks, "Triton reads an int8 cache as it reads any"


def test_each_operation_has_its_own_conclusion_and_names_the_controls_that_it_does_not_ask():
    said = {name: DISPATCHER.scenes(matrix(operation=name, group=32))[-1] for name in cost.FEATURES}
    assert len({scene.takeaway for scene in said.values()}) == 4
    nccl = DISPATCHER.scenes(matrix(operation="all-reduce", message_bytes=2**20))[-1]
    assert "NCCL" in nccl.takeaway and "format" not in nccl.takeaway
    unused = {n: next(m["s"] for m in s.marks if m["id"] == "unused") for n, s in said.items()}
    assert unused["attention"].endswith("Weights") and unused["gemm"].endswith("Cache holds")
    assert unused["all-reduce"].endswith("GPU, Cache holds, Weights")


@pytest.mark.parametrize("preset", DISPATCHER.presets)
def test_a_phone_names_each_column_over_it(preset):
    r = DISPATCHER.run(**DISPATCHER.inputs(DISPATCHER.presets[preset]))
    for scene in DISPATCHER.scenes(r, width=NARROW)[:2]:
        marks = {m["id"]: m for m in scene.marks}
        for name in r.features:
            head = marks[f"head-{name}-value"]
            gates = [m for id, m in marks.items() if id.endswith(f"-{name}") and m["t"] == "rect"]
            assert head["s"] == backend_dispatcher.LABELS[name] and gates
            assert all(abs(g["x"] + g["w"] / 2 - head["x"]) < 0.1 for g in gates)


def test_where_nothing_runs_none_has_a_place():
    r = DISPATCHER.run(**DISPATCHER.inputs({"gpu_sm": 75}))
    scene = DISPATCHER.scenes(r)[-1]
    place = scene.figures[0]
    assert not r.chosen and place.text == "none" and "ranked 0" not in scene.summary
    assert DISPATCHER.scenes(matrix())[-1].figures[0].text == "Triton attention", "who runs comes first"


def test_what_cannot_do_the_job_is_not_called_faster():
    for state in DISPATCHER.presets.values():
        scene = DISPATCHER.scenes(DISPATCHER.run(**DISPATCHER.inputs(state)))[0]
        assert not any("faster" in one.label for one in scene.figures) and "faster" not in scene.summary
