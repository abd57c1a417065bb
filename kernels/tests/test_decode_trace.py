"""A trace's record holds each name once, both timelines from the host's first call, and stays below its limit."""

import json

import pytest

from kernels import decode_trace

SLOTS = ("norm", "qkv", "rotary", "attention", "out", "norm", "router", "experts", "combine")


def step_events(layers: int, graph: bool, start: float = 5e6, dropped=()) -> list[dict]:
    """Events as torch.profiler writes them: ranges and calls on the host, kernels on stream 7, one launch each."""
    events, host, gpu, number = [], start, start + 30, 0
    if graph:
        call = {
            "cat": "cuda_runtime",
            "name": "cudaGraphLaunch",
            "ts": host,
            "dur": 9,
            "args": {"correlation": 1},
        }
        events.append(call)
    for slot in ("embed", *SLOTS * layers, "norm", "head", "sample"):
        number += 1
        if not graph:
            events.append({"cat": "user_annotation", "name": f"slot {slot}", "ts": host, "dur": 8})
            args = {"correlation": number}
            events.append(
                {"cat": "cuda_driver", "name": "cuLaunchKernelEx", "ts": host + 2, "dur": 3, "args": args}
            )
            host += 10
        gpu = max(gpu + 3, host)
        name = f"void at::native::{slot}_kernel<float, 4>(float*)"
        args = {"correlation": 1 if graph else number, "stream": 7}
        if number not in dropped:
            events.append({"cat": "kernel", "name": name, "ts": gpu, "dur": 2, "args": args})
    events.append({"cat": "cuda_runtime", "name": "cudaDeviceSynchronize", "ts": host, "dur": 5, "args": {}})
    return events


def test_both_timelines_begin_with_the_hosts_first_call():
    found = decode_trace.record(step_events(1, False), step_events(1, True, start=9e6))
    assert found["differ"] == []
    eager, graph = found["eager"], found["graph"]
    assert eager["host"][0] == [found["slots"].index("embed"), 0, 8]
    assert eager["calls"][1] == [found["kernels"].index("cuLaunchKernelEx"), 12, 3]
    assert len(eager["calls"]) == len(eager["launches"]) == len(graph["launches"]) == 13
    assert [found["kernels"][name] for name, *_ in graph["calls"]] == ["cudaGraphLaunch"] and graph[
        "host"
    ] == []
    slot, kernel, start, us, stream = graph["launches"][2]
    assert (found["slots"][slot], found["kernels"][kernel], start, us, stream) == (
        "qkv",
        "at::native::qkv_kernel",
        39,
        2,
        7,
    )
    assert found["shares"]["norm"]["launches"] == 3


def test_a_launch_that_the_graph_drops_is_named():
    """94 launches eagerly and 93 in the graph, as it was on an H200."""
    found = decode_trace.record(step_events(10, False), step_events(10, True, dropped={30}))
    assert (len(found["eager"]["launches"]), len(found["graph"]["launches"])) == (94, 93)
    (said,) = found["differ"]
    assert said == "eager launch 29, qkv: the graph has no void at::native::qkv_kernel<float, 4>(float*)"
    shares = found["shares"]
    assert sum(one["launches"] for one in shares.values()) == 93


def test_a_trace_of_the_whole_model_stays_below_the_limit_and_is_read_as_it_was_written():
    found = decode_trace.record(step_events(48, False), step_events(48, True))
    text = decode_trace.dumps(found)
    assert json.loads(text) == json.loads(json.dumps(found))
    assert len(text) < decode_trace.MOST_BYTES and max(map(len, text.splitlines())) < 3000


def test_a_trace_without_a_gpus_rows_is_a_record_too():
    found = decode_trace.record([], [])
    assert found["shares"] == {} and found["eager"]["launches"] == []


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("void at::native::fill<float>(float*, int)", "at::native::fill"),
        ("residual_norm_kernel", "residual_norm_kernel"),
        ("<unnamed>", "<unnamed>"),
        ("Memset (Device)", "Memset "),
    ],
)
def test_names_lose_their_arguments(name, short):
    assert decode_trace.shortened(name) == short.strip()
