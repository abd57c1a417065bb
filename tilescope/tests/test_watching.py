"""Kernels with one mistake each, and what a watch says of them: kind, names, lines and programs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

KERNELS = """
import json, sys
import numpy as np
import torch, triton, triton.language as tl
import tilescope

@triton.jit
def sums(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n, other=0.0)
    total = tl.load(out)  # read
    tl.store(out, total + tl.sum(v, 0))  # written

@triton.jit
def added(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.atomic_add(out, tl.sum(tl.load(x + i, mask=i < n, other=0.0), 0))

@triton.jit
def doubled(source, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(source + i)  # loaded
    tl.store(out + i, v * 2, mask=i < n)  # stored

@triton.jit
def highest(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i, mask=i < n)  # undefined
    tl.store(out, tl.max(v, 0))
    tl.store(out + 1, tl.load(out + 1) + 1)

@triton.jit
def hidden(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)
    tl.store(out + B, tl.load(out + B) + 1)

@triton.jit
def hinted(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + B, tl.load(out + B) + 1)
    at = tl.max_contiguous(i % n, B)  # promised
    tl.store(out + i, tl.load(x + at))

@triton.jit
def locked(lock, out):
    while tl.atomic_cas(lock, 0, 1) == 1:  # waiting
        pass
    tl.store(out, 1.0)

@triton.jit
def gappy(x, out, wide, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + tl.program_id(0) * wide + i, tl.load(x + i))

@triton.jit
def messy(x, out, n, B: tl.constexpr):
    me = tl.program_id(0)
    i = me * B + tl.arange(0, B)
    v = tl.load(x + i)  # outside
    w = tl.load(x + i, mask=i < n, other=0.0)
    tl.device_assert(me < 2, "two programs are enough")  # asserted
    tl.store(out, me + 1.0)  # raced
    tl.store(out + 1 + i, w + v)  # outside too
    tl.store(out + 1 + i, w + v + 1, mask=1 + i < n)

@triton.autotune([triton.Config({"B": 8}), triton.Config({"B": 32}), triton.Config({"B": 64})], key=["n"])
@triton.jit
def tuned(x, out, n, B: tl.constexpr):
    tl.static_assert(B > 16)
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(out + i, mask=i < 32, other=0.0) + tl.load(x + i))  # tuned

@triton.jit
def assembled(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i)
    v = tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [v], dtype=tl.float32, is_pure=True, pack=1)  # assembly
    tl.store(out + i, v)

@triton.jit
def scaled(a, s, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tile = tl.load(a + i[:, None] * B + i[None, :])
    by = tl.load(s + i[:, None] * (B // 32) + tl.arange(0, B // 32)[None, :])
    c = tl.dot_scaled(tile, by, "e4m3", tile, by, "e4m3")  # scaled dot
    tl.store(out + i[:, None] * B + i[None, :], c)

ones = torch.ones

def in_odd_memory():  # that begins 4 bytes after a multiple of 16
    raw = np.zeros(1024, np.uint8)
    odd = -raw.ctypes.data % 16 + 4
    raw[odd:] = 1
    return torch.frombuffer(raw.data, dtype=torch.float32, offset=odd, count=160)
"""
SCENES = {
    "race": "out = torch.zeros(1); sums[(4,)](ones(1000), out, 1000, B=256)",
    "no race": "out = torch.zeros(1); added[(4,)](ones(1000), out, 1000, B=256)",
    "bounds": "out = torch.zeros(1000); doubled[(4,)](ones(1000), out, 1000, B=256)",
    "mask": "out = torch.zeros(2); highest[(1,)](-ones(100), out, 100, B=128)",
    "mask that reaches nothing": "out = torch.zeros(129); hidden[(1,)](ones(100), out, 100, B=128)",
    "hint": "out = torch.zeros(65); hinted[(1,)](ones(48), out, 48, B=64)",
    "deadlock": "out = torch.zeros(1); locked[(3,)](torch.zeros(1, dtype=torch.int32), out)",
    "neighbour": "out = torch.zeros(64); doubled[(1,)](torch.arange(100.)[:50], out, 64, B=64)",
    "past the memory of a view": "out = torch.zeros(64); doubled[(1,)](torch.arange(60.)[:50], out, 64, B=64)",
    "store into a gap": "out = torch.zeros(4, 16); gappy[(4,)](ones(16), out[:, :12], 16, B=16)",
    "a repeated mistake": "out = torch.zeros(1); [sums[(4,)](ones(1000), out, 1000, B=256) for _ in range(3)]",
    "an empty grid": "out = torch.zeros(1); sums[(0,)](ones(1000), out, 1000, B=256)",
    "several mistakes": "x = ones(60); out = torch.zeros(61); messy[(4,)](x, out, 60, B=16, debug=True)",
    "tuned": "out = torch.zeros(32); tuned[(1,)](ones(32), out, 32)",
    "inline assembly": "out = torch.zeros(64); assembled[(1,)](ones(64), out, B=64)",
    "dot_scaled": "a = torch.zeros(64, 64, dtype=torch.uint8); out = torch.zeros(64, 64); scaled[(1,)](a, a, out, B=64)",
    "an odd memory": "odd = in_odd_memory(); out = odd[:64]; doubled[(1,)](odd[67:131], out, 64, B=64)",
    "going on": "out = torch.zeros(1000); doubled[(4,)](ones(1000), out, 1000, B=256); doubled[(2,)](ones(512), out, 512, B=256)",
}
ASKED = """
found = {{}}
for name, code in {scenes!r}.items():
    with tilescope.watch() as seen:
        exec(code)
    found[name] = {{
        "findings": [f.as_dict() for f in seen.findings],
        "out": out.flatten().tolist(),
        "launches": seen.launches,
        "lines": {{f"{{row.line}} {{row.kind}}": [row.requested, row.fetched, row.useful, row.masked_off] for row in seen.lines}},
        "bytes": {{name: [b.load.requested, b.load.fetched, b.store.requested] for name, b in seen.bytes.items()}},
    }}
with tilescope.watch(all_configs=True) as seen:
    exec({scenes!r}["tuned"])
found["all configs"] = [out.tolist(), [f.as_dict() for f in seen.findings], seen.launches]
try:
    sums[(4,)](ones(1000), out, 1000, B=256)
except tilescope.LaunchError as error:
    found["after the watch"] = str(error)
exec({scenes!r}["mask"])
found["mask without a watch"] = out.tolist()
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> dict:
    """What a watch around every scene saw, all in one process of their own."""
    script = tmp_path_factory.mktemp("watched") / "watched.py"
    script.write_text(KERNELS + ASKED.format(scenes=SCENES))
    root = str(Path(__file__).parents[2])
    env = {**os.environ, "PYTHONPATH": root}
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, cwd=root, env=env)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def line(words: str) -> int:
    return next(n for n, row in enumerate(KERNELS.splitlines(), 1) if f"# {words}" in row)


def only(found, name: str) -> dict:
    (finding,) = found[name]["findings"]
    assert finding["file"].endswith("watched.py")
    return finding


def test_a_race_names_both_programs_and_both_lines(found):
    races = found["race"]["findings"]
    assert {f["kind"] for f in races} == {"race"} and all(f["severity"] == "error" for f in races)
    assert all(f["kernel"] == "sums" and f["tensor"] == "out" and f["element"] == 0 for f in races)
    assert {(f["line"], f["other_line"]) for f in races} == {
        (line("written"), line("read")),
        (line("written"), line("written")),
    }
    for race in races:
        one, other = race["programs"]
        assert one != other and {one[0], other[0]} <= {0, 1, 2, 3}
        verb = "reads" if race["other_line"] == line("read") else "writes"
        words = f"writes out[0], program {other[0]} {verb} it at line {race['other_line']}"
        assert words in race["message"]


def test_a_look_at_a_finding_leaves_memory_as_one_launch_does(found):
    assert 0 < found["race"]["out"][0] <= 256
    assert found["mask"]["out"] == found["mask without a watch"] and found["mask"]["out"][1] == 1.0


def test_an_empty_grid_does_nothing(found):
    assert (found["an empty grid"]["findings"], found["an empty grid"]["out"]) == ([], [0.0])


@pytest.mark.parametrize("name", ["no race", "mask that reaches nothing"])
def test_a_right_kernel_has_no_finding(found, name):
    assert found[name]["findings"] == [] and any(found[name]["out"])


def test_what_triton_knows_of_an_address_is_true_of_the_machine_s(found):
    assert found["an odd memory"]["findings"] == [] and found["an odd memory"]["launches"] == 1


def test_bounds_name_the_parameter_the_element_and_the_program(found):
    finding = only(found, "bounds")
    assert (finding["kind"], finding["severity"], finding["line"]) == ("bounds", "error", line("loaded"))
    assert (finding["tensor"], finding["element"], finding["programs"]) == ("source", 1000, [[3, 0, 0]])
    assert "element 1000 of source, which has 1000" in finding["message"]


def test_an_undefined_lane_names_its_load_and_the_output(found):
    finding = only(found, "mask")
    assert (finding["kind"], finding["severity"], finding["line"]) == ("mask", "warning", line("undefined"))
    assert (finding["tensor"], finding["outputs"]) == ("x", ["out"])


def test_a_false_hint_is_a_warning_and_the_launch_runs_to_its_end(found):
    finding = only(found, "hint")
    assert (finding["kind"], finding["severity"], finding["line"]) == ("hint", "warning", line("promised"))
    assert found["hint"]["out"] == [1.0] * 65


def test_a_deadlock_says_who_waits_for_what(found):
    finding = only(found, "deadlock")
    assert (finding["kind"], finding["severity"], finding["line"]) == ("deadlock", "error", line("waiting"))
    assert "tl.atomic_cas of lock[0], which holds 1" in finding["message"]


def test_a_views_neighbours_are_a_warning_and_are_read(found):
    finding = only(found, "neighbour")
    assert (finding["kind"], finding["severity"], finding["tensor"]) == ("neighbour", "warning", "source")
    assert found["neighbour"]["out"] == [2.0 * n for n in range(64)]


def test_a_gap_between_rows_is_a_warning_and_is_written(found):
    finding = only(found, "store into a gap")
    assert (finding["kind"], finding["tensor"]) == ("neighbour", "out")
    assert found["store into a gap"]["out"] == [1.0] * 64


def test_past_a_views_memory_is_one_error(found):
    finding = only(found, "past the memory of a view")
    assert (finding["kind"], finding["element"]) == ("bounds", 60)


def test_a_launch_goes_on_after_its_mistakes(found):
    findings = found["several mistakes"]["findings"]
    by_line = {(f["kind"], f["line"]): f for f in findings}
    assert by_line["bounds", line("outside")]["programs"] == [[3, 0, 0]]
    assert by_line["failed", line("asserted")]["programs"] == [[2, 0, 0]]
    assert ("race", line("raced")) in by_line
    assert by_line["bounds", line("outside")]["element"] == 60
    assert by_line["bounds", line("outside too")]["element"] == 61
    assert len(findings) == 4 and found["several mistakes"]["out"][1:] == [3.0] * 59 + [2.0]


def test_the_first_configuration_that_compiles_runs(found):
    assert (found["tuned"]["out"], found["tuned"]["launches"]) == ([1.0] * 32, 1)


def test_all_configurations_run_from_the_same_memory(found):
    out, findings, launches = found["all configs"]
    assert (out, launches) == (
        [1.0] * 32,
        3,
    )  # that of 32 is the first and comes last; it also ran as another
    assert {f["line"] for f in findings} == {line("tuned")} and {f["kind"] for f in findings} == {"bounds"}
    assert all("B: 64" in f["message"] for f in findings)


@pytest.mark.parametrize("name, words", [("inline assembly", "assembly"), ("dot_scaled", "scaled dot")])
def test_what_is_not_supported_is_refused_in_one_line(found, name, words):
    finding = only(found, name)
    assert (finding["kind"], finding["line"]) == ("not run", line(words))
    assert name in finding["message"] and "\n" not in finding["message"]


def test_a_mistake_is_kept_once_and_counted(found):
    assert found["a repeated mistake"]["launches"] == 3
    assert {f["times"] for f in found["a repeated mistake"]["findings"]} == {3}


def test_later_launches_run_after_an_error(found):
    assert found["going on"]["launches"] == 2
    assert found["going on"]["out"][:512] == [2.0] * 512
    assert len(found["going on"]["findings"]) == 1


def test_lines_and_tensors_have_their_bytes(found):
    lines = found["neighbour"]["lines"]
    assert lines[f"{line('loaded')} load"] == [256, 256, 1.0, 0.0]
    assert lines[f"{line('stored')} store"] == [256, 256, 1.0, 0.0]
    assert found["mask"]["lines"][f"{line('undefined')} load"] == [400, 416, 400 / 416, 28 / 128]
    assert found["race"]["lines"][f"{line('read')} load"] == [16, 4 * 32, 4 / 32, 0.0]
    assert found["race"]["bytes"] == {"x": [4000, 4000, 0], "out": [16, 128, 16]}


def test_a_launch_after_the_watch_raises_again(found):
    assert "race in sums: program 0 writes out[0], program 3 reads it" in found["after the watch"]
