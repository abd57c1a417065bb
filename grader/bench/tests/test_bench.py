"""The bench's own program over its real pipe, on stand-ins for GPU memory, events and graphs."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from grader.bench import host as bencher
from grader.bench import protocol
from grader.bench.host import Bench, Broken
from grader.bench.inside import build
from grader.bench.protocol import (
    Built,
    CompareRequest,
    Kernel,
    Ran,
    RunRequest,
    Step,
    Timed,
    TimeRequest,
    Trial,
)
from grader.box.warm import JailTrouble
from grader.judge.on_gpu import outputs
from grader.machine.host import numbers
from grader.questions import Case, find
from grader.questions.memory import place

QUESTION = find("gemm_tiling.tiled_gemm")
CASE = Case({"M": 40, "N": 24, "K": 16}, "fp32", layout={"a": "transposed", "b": "padded", "c": "padded"})


@pytest.fixture(scope="module")
def bench():
    """A bench whose program is the stand-in; started once."""
    program = bencher._Program
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bencher, "_Program", lambda module: program("grader.bench.tests.stand_in"))
        one = Bench()
        yield one
        one.stop()


def request(kind=RunRequest, stages=2, case=CASE, **more):
    rng = np.random.default_rng(0)
    m, n, k = (case.sizes[name] for name in "MNK")
    inputs = {
        "a": rng.standard_normal((m, k)).astype(np.float32),
        "b": rng.standard_normal((k, n)).astype(np.float32),
    }
    placed = place(QUESTION, case, inputs)
    tensors = [{**p.as_task(), "storage_bytes": int(p.storage.nbytes)} for p in placed]
    scratch = {"part": {"shape": [4, 8], "dtype": "fp32", "fill": "0.0"}}
    arguments = ("a_ptr", "b_ptr", "c_ptr", "M", "stride_am", "part_ptr", "stride_part0")
    step = Step(Kernel("module {}", num_warps=4, num_stages=stages), (1, 1, 1), arguments)
    known = numbers(case, SimpleNamespace(scratch=scratch), placed)
    asked = kind(
        steps=(step,),
        numbers={name: value for name, (_, value) in known.items()},
        tensors=tuple(tensors),
        scratch=scratch,
        **more,
    )
    return inputs, placed, (asked, {p.spec.name: p.storage for p in placed if p.spec.role != "out"})


def test_outputs_come_back_strided_and_inputs_stay(bench):
    inputs, placed, asked = request(repeat=2)
    ran, found = bench.ask(*asked)
    assert type(ran) is Ran and ran.changed == [] and ran.repeats is True and ran.sms == 132
    got = outputs(placed, found)
    assert np.allclose(got["c"], inputs["a"] @ inputs["b"], atol=1e-5)
    assert np.isnan(found["c"].view(np.float32)).any(), "what lies between the rows keeps its poison"


def test_an_axis_may_have_nothing_on_it(bench):
    _, placed, asked = request(case=Case({"M": 0, "N": 24, "K": 16}, "fp32"), repeat=2)
    ran, found = bench.ask(*asked)
    assert ran.changed == [] and outputs(placed, found)["c"].shape == (0, 24)


def test_a_write_beside_an_output_is_seen(bench):
    ran, _ = bench.ask(*request(stages=8)[2])
    assert ran.changed == ["memory beside c"] and ran.repeats is None


def test_a_bar_is_named_by_its_module_and_timed_beside_the_launch(bench):
    inputs, placed, asked = request(TimeRequest, bar="product", bars="grader.bench.tests.stand_in", quads=3)
    ((timed, found),) = bench.stream(*asked)
    assert type(timed) is Timed and timed.sets > 1 and not timed.differing
    assert len(timed.quads) == 3 and all(len(quad) == 4 and min(quad) > 0 for quad in timed.quads)
    assert np.allclose(outputs(placed, found)["c"], inputs["a"] @ inputs["b"], atol=1e-5)


def test_a_launch_beside_itself_gives_trial_after_trial(bench):
    *_, asked = request(CompareRequest, quads=3, trials=3)
    replies = [reply for reply, _ in bench.stream(*asked)]
    assert [type(reply) for reply in replies] == [Timed, Trial, Trial]
    assert all(len(reply.quads) == 3 and len(reply.quads[0]) == 4 for reply in replies)
    assert bench.ask(*request()[2])[0].changed == [], "it serves on"


def test_an_answer_that_does_not_fit_this_gpu_is_told_and_the_bench_serves_on(bench):
    with pytest.raises(Broken, match="does not run on this GPU: OutOfResources: .*shared memory"):
        bench.ask(*request(stages=7)[2])
    assert bench.ask(*request()[2])[0].changed == []


def test_a_bench_that_dies_is_our_trouble_and_an_illegal_access_the_answers(bench):
    _, _, (asked, arrays) = request()
    with pytest.raises(JailTrouble, match="broke off"):
        bench.ask(replace(asked, steps=()), {})
    bench.stop()
    bench.start()
    bench.program.said = lambda: "CUDA error: an illegal memory access was encountered"
    with pytest.raises(Broken, match="outside its tensors"):
        bench.ask(replace(asked, steps=()), {})
    bench.stop()


def test_late_by_the_clock_alone_fails_nobody_and_a_launch_that_does_not_end_fails(bench, monkeypatch):
    bench.ask(*request()[2])
    monkeypatch.setattr(bencher, "BENCH_S", 0.5)
    with pytest.raises(JailTrouble, match="not done after 0.5 s, of which it computed 0: "):
        bench.ask(*request(stages=6)[2])  # sleeps, as who has no processor
    bench.stop()
    monkeypatch.setattr(bencher, "BENCH_S", 240)
    bench.ask(*request()[2])
    monkeypatch.setattr(bencher, "BENCH_S", 1.0)
    monkeypatch.setattr(bencher, "COMPUTED", 0.1)  # whatever else this machine does
    with pytest.raises(Broken, match="still running on the GPU after 1.0 s"):
        bench.ask(*request(stages=5)[2])
    bench.stop()


def test_a_bench_that_is_never_ready_fails_nobody(bench, monkeypatch):
    bench.stop()
    monkeypatch.setattr(bencher, "START_S", 0.01)
    with pytest.raises(JailTrouble, match="not ready after 0.01 s"):
        bench.ask(*request()[2])
    bench.stop()


KINDS = {
    "run": (RunRequest, {"repeat": 2}),
    "time": (TimeRequest, {"bar": "matmul", "bars": "m", "quads": 5}),
    "compare": (CompareRequest, {"quads": 5, "trials": 2, "load": True}),
}


@pytest.mark.parametrize("operation", KINDS)
def test_a_request_is_read_as_it_was_asked(operation):
    kind, more = KINDS[operation]
    *_, (asked, _) = request(kind, **more)
    over = json.loads(json.dumps(asked.header()))
    assert over["operation"] == operation
    read = protocol.request_of({**over, "nonce": "x"})
    assert type(read) is kind and read.steps == asked.steps and list(read.tensors) == list(asked.tensors)
    assert json.loads(json.dumps(read.header())) == over


@pytest.mark.parametrize("operation", [None, "launch"])
def test_an_operation_that_is_not_named_is_no_request(operation):
    *_, (asked, _) = request()
    with pytest.raises(protocol.BadRequest, match="operation must be one of run, time, compare"):
        protocol.request_of({**asked.header(), "operation": operation})


RAN = Ran(gpu="a stand-in", sms=132, torch="2", triton="3", changed=[], repeats=None)
BYTES = {"c": np.zeros(4 * (39 * 49 + 24), np.uint8)}
REPLIES = {
    "nothing": ({}, BYTES, "no reply"),
    "a reply of its own": ({"reply": "Won"}, BYTES, "no reply: 'Won'"),
    "half a reply": ({"reply": "Ran", "gpu": "a stand-in"}, BYTES, "a Ran without changed, repeats, sms"),
    "another's turn": (protocol.reply_header(Trial([])), {}, "a Trial where a Ran was asked for"),
    "no output": (protocol.reply_header(RAN), {}, "other arrays"),
    "half an output": (protocol.reply_header(RAN), {"c": BYTES["c"][1:]}, "other arrays"),
}


@pytest.mark.parametrize("name", REPLIES)
def test_what_is_no_reply_to_the_request_is_refused(name):
    header, arrays, words = REPLIES[name]
    *_, (asked, _) = request()
    protocol.require_reply(asked, Ran, RAN, BYTES)
    with pytest.raises(protocol.BadReply, match=words):
        protocol.require_reply(asked, Ran, protocol.reply_of(header), arrays)


def test_all_kernels_together_have_so_much_processor_time_to_compile(monkeypatch, tmp_path):
    monkeypatch.setattr(build, "build", lambda *_: None)
    monkeypatch.setattr(build, "ALL_CPU_S", 0.0)
    asked = protocol.BuildRequest((Kernel("", 4, 1),) * 3, capability=90, jobs=1)
    first, *others = build.each(asked)
    assert first == Built(0) and [one.number for one in others] == [1, 2]
    assert all("together took longer than 0.0 s of processor time" in one.failed for one in others)
