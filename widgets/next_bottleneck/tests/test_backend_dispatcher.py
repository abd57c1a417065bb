"""The lanes as they are shown: the kernel that runs breaks no rule, and no kernel that could run is asked before it."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.next_bottleneck import cost
from widgets import units
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
    assert not any("attention" in row.broken for row in r.rows), "a kernel for another job is not in the race"
    assert len(r.rows) + r.other_jobs == r.backends == 11


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
    assert r.chosen == "" and r.valid == r.place == 0 and r.ahead_but_invalid == len(r.rows) == 7
    scene = DISPATCHER.scenes(r)[-1]
    assert (
        "refuse" in scene.takeaway and "With another cache" in scene.warning and "would run" in scene.warning
    )


def test_each_gate_that_stops_a_faster_kernel_is_named():
    r = matrix(**DISPATCHER.presets["Latent attention, B200"])
    stopping = {row.broken[0] for row in r.rows[: r.place - 1]}
    said = DISPATCHER.scenes(r)[-1].takeaway
    assert len(stopping) == 2 and "both faster kernels" in said
    assert all(name in said for name in ("GPU", "page"))


def test_impossible_requests_are_sentences():
    with pytest.raises(ValueError, match="Weights of experts must be .* got int8 W8A8; no grouped kernel"):
        matrix(operation="moe", weights="int8 W8A8")
    with pytest.raises(ValueError, match="GPUs must be at least one a node, got 2 on 8 nodes; take more"):
        matrix(operation="all-reduce", gpus=2, nodes=8)


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("preset", DISPATCHER.presets)
def test_the_request_stops_before_the_first_gate_that_is_shut_and_its_rule_is_in_words(preset, width):
    r = DISPATCHER.run(**DISPATCHER.inputs(DISPATCHER.presets[preset]))
    frames = DISPATCHER.scenes(r, width=width)
    assert DISPATCHER.stepper.start(r) == len(frames) - 1 == 2 * r.place - 1
    balls = [next(m for m in f.marks if m["id"] == "request") for f in frames]
    assert [b["y"] for b in balls] == sorted(b["y"] for b in balls), "from the fastest down"
    last = {m["id"]: m for m in frames[-1].marks}
    for lane, row in enumerate(r.rows[: r.place]):
        entered, stopped = balls[2 * lane], balls[2 * lane + 1]
        assert entered["x"] < stopped["x"] and f"at {row.backend}" in stopped["tip"]
        if row.broken:
            gate, why = last[f"row{lane}-gate"], last[f"row{lane}-why"]
            head = last[f"head-{row.broken[0]}-value"]
            assert gate["x"] + gate["w"] / 2 == pytest.approx(head["x"], abs=0.01), "under what it refuses"
            assert stopped["x"] < gate["x"] and gate["role"] == "hot"
            assert row.why.split("; ")[0].endswith(why["s"]), "the words are those of the gate"
            assert "refuses" in frames[2 * lane + 1].caption
    assert last[f"row{r.place - 1}-runs"]["s"] == "runs" and f"row{r.place - 1}-gate" not in last
    assert last["request"]["role"] == last[f"row{r.place - 1}-taken"]["role"] == "useful"


def test_where_nothing_runs_all_are_asked():
    refused = DISPATCHER.scenes(matrix(gpu_sm=75))
    assert "There is no next kernel" in refused[-1].caption
    assert not any(m["id"].endswith("-taken") for m in refused[-1].marks)


@pytest.mark.parametrize("preset", DISPATCHER.presets)
def test_kernels_not_asked_have_no_gate_and_say_what_they_would_do(preset):
    r = DISPATCHER.run(**DISPATCHER.inputs(DISPATCHER.presets[preset]))
    marks = {m["id"]: m for m in DISPATCHER.scenes(r)[-1].marks}
    for row in r.rows[r.place :]:
        assert f"row{row.preference}-gate" not in marks
        said = "would run too" if row.valid else "would refuse"
        assert marks[f"row{row.preference}-why"]["s"] == f"not asked, {said}"


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
    for i, value in enumerate(knob["to"]):
        then = matrix(**{**inputs, knob["input"]: value})
        assert r.chosen_at[i] == then.chosen
        if width == WIDE or value == r.features[knob["input"]]:
            shown = marks[f"dial{i}-runs"]["s"].split(": ")[-1].replace(" over NVLink", "")
            shown = shown.replace("unpack then", "dequantize, then")
            assert (
                then.chosen.replace(" over NVLink", "").startswith(shown)
                or shown == "none"
                and not then.chosen
            )


def test_each_operation_has_a_conclusion_of_its_own():
    said = {name: DISPATCHER.scenes(matrix(operation=name, group=32))[-1] for name in cost.FEATURES}
    assert len({scene.takeaway for scene in said.values()}) == 4
    nccl = DISPATCHER.scenes(matrix(operation="all-reduce", message_bytes=2**20))[-1]
    assert (
        nccl.takeaway
        == f"The message ({units.binary_bytes(2**20)}) stops the only faster kernel, so NCCL runs."
    )


@pytest.mark.parametrize("inputs", REQUESTS, ids=str)
def test_the_takeaway_counts_the_gates_of_the_picture(inputs):
    r = matrix(**inputs)
    scene = DISPATCHER.scenes(r)[-1]
    gates = [m for m in scene.marks if m["id"].endswith("-gate")]
    assert len(gates) == r.ahead_but_invalid == scene.figures[1].value
    if " of the " in scene.takeaway:
        some, every = (int(word) for word in scene.takeaway.split("stops ")[1].split() if word.isdigit())
        assert every == len(gates) and 1 <= some < every


def test_where_nothing_runs_none_has_a_place():
    r = DISPATCHER.run(**DISPATCHER.inputs({"gpu_sm": 75}))
    scene = DISPATCHER.scenes(r)[-1]
    place = scene.figures[0]
    assert not r.chosen and place.text == "none" and "ranked" not in scene.summary
    assert DISPATCHER.scenes(matrix())[-1].figures[0].text == "Triton attention", "who runs comes first"


def test_only_kernels_of_this_job_are_called_faster():
    latent = DISPATCHER.run(**DISPATCHER.inputs(DISPATCHER.presets["Latent attention, B200"]))
    assert [row.backend for row in latent.rows] == [
        "CUTLASS MLA",
        "FlashAttention MLA",
        "FlashMLA",
        "Triton MLA",
    ]
    assert (latent.place, latent.ahead_but_invalid, latent.other_jobs) == (3, 2, 7)
    words = {m["id"]: m.get("s") for m in DISPATCHER.scenes(latent)[-1].marks}
    assert words["others"] == "7 more kernels are built for another kind of attention."


@pytest.mark.parametrize("inputs", REQUESTS, ids=str)
def test_a_click_on_a_shut_gate_opens_it_and_changes_nothing_else(inputs):
    r = matrix(**inputs)
    marks = {m["id"]: m for m in DISPATCHER.scenes(r)[-1].marks}
    for row in r.rows[: max(0, r.place - 1)]:
        opened = marks[f"row{row.preference}-gate"]["set"]
        assert opened == row.opens == marks[f"row{row.preference}-why"]["set"] and len(opened) == 1
        then = next(one for one in matrix(**{**inputs, **opened}).rows if one.backend == row.backend)
        assert row.broken[0] not in then.broken and set(then.broken) == set(row.broken) - {row.broken[0]}


@pytest.mark.parametrize("preset", DISPATCHER.presets)
def test_a_column_has_a_gate_that_stops_someone_or_is_the_one_that_is_pulled(preset):
    r = DISPATCHER.run(**DISPATCHER.inputs(DISPATCHER.presets[preset]))
    heads = {m["id"][5:-6] for m in DISPATCHER.scenes(r)[-1].marks if m["id"].endswith("-gates")}
    stops = {feature for row in r.rows for feature in row.broken}
    assert stops <= heads and len(heads - stops) <= 1
