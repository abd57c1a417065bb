"""Steps through a program: what is recorded, where a step leads, and what a scene tells of it."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from tilescope import saved
from tilescope.launcher import LaunchError
from tilescope.page import answer, page, still
from tilescope.scenes import Look, lane_said, opening, scene
from tilescope.stepping import Stepping, Wanted
from tilescope.steps import Steps
from tilescope.terminal import said, show
from tilescope.watching import watch

ROOT = Path(__file__).parents[2]


@triton.jit
def product(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        inner = k + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * K + inner[None, :], mask=rows[:, None] < M, other=0.0)
        b = tl.load(b_ptr + inner[:, None] * N + columns[None, :])
        acc += tl.dot(a, b)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], acc, mask=rows[:, None] < M)


@triton.jit
def total(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    values = tl.load(x + i, mask=i < n, other=0.0)
    so_far = tl.load(out)
    tl.store(out, so_far + tl.sum(values, 0))


@triton.jit
def beyond(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i), mask=i < n)


@triton.jit
def halved(x, out, steps):
    left = tl.load(x + tl.program_id(0))
    turns = 0
    while left > 1:
        left = left // 2
        turns += 1
    if turns > 2:
        turns = turns * 10
    tl.store(out + tl.program_id(0), turns)


def line_of(kernel, text: str) -> int:
    lines = Path(kernel.fn.__code__.co_filename).read_text().splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith(f"def {kernel.__name__}("))
    return 1 + next(i for i, line in enumerate(lines) if i > first and text in line)


def recorded(launch, program=None):
    with watch(Stepping(Wanted(program))) as seen:
        launch()
    return seen


@pytest.fixture(scope="module")
def multiplied():
    torch.manual_seed(3)
    a, b, c = torch.randn(40, 64), torch.randn(64, 16), torch.zeros(40, 16)
    seen = recorded(lambda: product[(3,)](a, b, c, 40, 16, 64, 16, 16, 32), program=2)
    return seen, Steps(seen.recording), a.numpy(), b.numpy(), c.numpy()


def test_a_loop_is_stepped_through_turn_by_turn(multiplied):
    _, steps, *_ = multiplied
    loop, a = line_of(product, "for k in"), line_of(product, "a = tl.load")
    assert [step.turns for step in steps.all if step.line == a] == [((loop, 0),), ((loop, 1),)]
    first = steps.next_of(a, 0)
    again = steps.next_of(a, first)
    assert steps.next_of(a, again) is None and steps.next_of(a, again, way=-1) == first
    assert steps.back(steps.forward(first)) == first and steps.back(0) == 0
    assert steps[steps.over(first)].line == line_of(product, "tl.store(c_ptr")
    assert steps.over(len(steps) - 1) == len(steps) - 1


def test_values_and_addresses_are_those_of_the_program(multiplied):
    _, steps, a, b, c = multiplied
    at = steps.next_of(line_of(product, "a = tl.load"), steps.next_of(line_of(product, "a = tl.load"), 0))
    number, access = steps.main(steps[at])
    value = steps.recording.values[number]
    assert (value.name, value.type, value.shape) == ("a", "fp32", (16, 32))
    assert access.active.sum() == 8 * 32 and not access.active[8:].any()
    np.testing.assert_array_equal(value.lanes[:8], a[32:40, 32:64])
    assert steps.element(access, int(access.address[3, 5]))[1:] == (4 * (35 * 64 + 37), "a_ptr[35, 37]")
    number, access = steps.main(steps[len(steps) - 1])
    assert access.kind == "store"
    np.testing.assert_array_equal(steps.recording.values[number].lanes[:8], c[32:40])


def test_a_lane_tells_the_lines_it_came_from(multiplied):
    _, steps, _, _, c = multiplied
    head = lane_said(steps, len(steps) - 1, (3, 5))[0][1]
    assert head == f"lane (3, 5) = {c[35, 5]:.5g}: c_ptr[35, 5] at byte 2,260, sector 70"
    lines = [int(line) for line, _ in lane_said(steps, len(steps) - 1, (3, 5)) if line]
    wanted = ("acc += tl.dot", "b = tl.load", "a = tl.load", "inner =", "for k in", "columns =", "rows =")
    assert lines == sorted({line_of(product, text) for text in wanted}, reverse=True)
    came_in = {
        words.split(" = ")[0] for line, words in lane_said(steps, len(steps) - 1, (3, 5))[1:] if not line
    }
    assert came_in == {"a_ptr", "b_ptr", "M", "N", "K"}  # what a loop carries is no argument
    loaded = dict(lane_said(steps, steps.next_of(line_of(product, "b = tl.load"), 0), (4, 7)))
    assert loaded[str(line_of(product, "b = tl.load"))].endswith(", from b_ptr[4, 7]")


def test_a_scene_is_plain_data_and_its_table_says_what_it_draws(multiplied):
    _, steps, a, *_ = multiplied
    at = steps.next_of(line_of(product, "a = tl.load"), 0)
    shown = scene(steps, at, Look(row=8, column=24))
    assert json.loads(json.dumps(shown)) == shown
    assert shown["figures"][:2] == [
        ["bytes that lanes ask for", "1,024", "ink"],
        ["bytes of whole sectors", "1,024", "memory"],
    ]
    rows = shown["table"]["rows"]
    assert len(rows) == 64 and rows[0] == [
        "(8, 24)",
        "0",
        "a_ptr[2584], outside its 2,560 elements",
        "10336",
        "323",
        "no",
    ]
    ids = [mark["id"] for mark in shown["marks"]]
    assert len(ids) == len(set(ids))
    for mark in shown["marks"]:
        if mark["t"] == "rect":
            assert (
                0 <= mark["x"] and mark["x"] + mark["w"] <= shown["w"] and mark["y"] + mark["h"] <= shown["h"]
            )
    lit = scene(steps, at)
    terms = {mark["k"] for mark in lit["marks"] if mark["id"].startswith("l")}
    assert terms == {
        mark["k"] for mark in lit["marks"] if mark["id"].startswith("ea_ptr")
    }  # a lane lights its sector
    assert len(terms) == 8


def test_a_race_is_two_arrows_at_the_line_that_the_finding_names():
    seen = recorded(lambda: total[(4,)](torch.ones(1000), torch.zeros(1), 1000, B=256))
    steps = Steps(seen.recording)
    assert seen.recording.ids == [0, 0, 0]
    at = opening(steps)
    shown = scene(steps, at)
    assert steps[at].line == line_of(total, "tl.store")
    arrows = [mark for mark in shown["marks"] if mark["t"] == "line"]
    assert [mark["tip"] for mark in arrows] == [
        f"program 0, line {line_of(total, 'tl.store')} reaches out",
        f"program 3, line {line_of(total, 'so_far = tl.load')} reaches out",
    ]
    assert "nothing orders the two" in shown["warning"]
    other = recorded(lambda: total[(4,)](torch.ones(1000), torch.zeros(1), 1000, B=256), program=3)
    read = Steps(other.recording)
    shown = scene(read, read.next_of(line_of(total, "so_far = tl.load"), 0))
    assert f"program 0, line {line_of(total, 'tl.store')} reaches out" in [
        m.get("tip") for m in shown["marks"]
    ]


def test_lanes_that_leave_a_tensor_are_marked():
    seen = recorded(lambda: beyond[(4,)](torch.ones(100), torch.zeros(100), 100, B=32))
    steps = Steps(seen.recording)
    assert seen.recording.ids == [3, 0, 0] and opening(steps) == len(steps) - 1
    shown = scene(steps, len(steps) - 1)
    assert shown["warning"] == "Load outside x: program 3 reached element 100 of x, which has 100."
    hot = [mark["id"] for mark in shown["marks"] if mark.get("pick") and mark["role"] == "hot"]
    assert hot[0] == "l0-4" and len(hot) == 28  # lanes 4 to 31
    assert [finding["lane"] for finding in seen.recording.findings] == [[4]]
    rows = [line for line in said(steps, len(steps) - 1).splitlines() if "outside its 100 elements" in line]
    assert len(rows) == 8 and rows[0].startswith(">") and rows[0].split()[1] == "4"


@triton.jit
def shifted(pointer, by):
    return tl.load(pointer + by)


@triton.jit
def through_a_helper(x, out, one, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, shifted(x + i, one))


def test_a_line_of_a_called_function_is_shown_where_it_is():
    x, out = torch.ones(64), torch.zeros(64)
    seen = recorded(lambda: through_a_helper[(2,)](x, out, 1, B=32))
    steps, line = Steps(seen.recording), line_of(shifted, "tl.load")
    at = opening(steps)
    assert seen.findings[0].line == steps[at].line == line
    assert f">{line:5}      return tl.load(pointer + by)" in said(steps, at)
    assert scene(steps, at)["caption"].endswith("return tl.load(pointer + by)")
    assert f'<li data-line="{line}" aria-current=step>' in still(steps)
    known = dict(scene(steps, at)["formula"])
    assert known["one · constant"] == "1" and known["B · constant"] == "32"  # as Triton compiled them


def test_while_loops_branches_and_programs_that_part():
    out = torch.zeros(3, dtype=torch.int32)
    seen = recorded(lambda: halved[(3,)](torch.tensor([1, 9, 100], dtype=torch.int32), out, 0), program=1)
    steps = Steps(seen.recording)
    turns = [step for step in steps.all if step.line == line_of(halved, "left = left // 2")]
    assert out.tolist() == [0, 30, 60] and len(turns) == 3
    told = dict(lane_said(steps, len(steps) - 1, ()))
    assert told[str(line_of(halved, "turns = turns * 10"))] == "turns = 30"
    assert told[str(line_of(halved, "turns += 1"))] == "turns = 3"


def test_recording_changes_nothing_and_a_program_must_be_in_the_grid():
    x, out = torch.ones(1000), torch.zeros(1)
    seen = recorded(lambda: total[(4,)](x, out, 1000, B=256), program=4)
    assert seen.recording is None and seen.looks[0].refusals == ["total with the grid (4, 1, 1)"]
    plain = torch.zeros(1)
    with watch() as alone:
        total[(4,)](x, plain, 1000, B=256)
    assert out.item() == plain.item() and list(map(str, seen.findings)) == list(map(str, alone.findings))
    assert Wanted((1, 2)).number((4, 3, 1)) == 9 and Wanted((4, 0)).number((4, 3, 1)) is None


def test_a_recording_is_saved_and_opened_as_it_was(multiplied, tmp_path):
    seen, steps, *_ = multiplied
    saved.save(tmp_path / "run", {"launches": 1}, seen.recording)
    run, again = saved.load(tmp_path / "run")
    assert run == {"launches": 1} and again.done[-1].operands == seen.recording.done[-1].operands
    assert answer(Steps(again), Look()) == answer(steps, Look())
    (tmp_path / "other").write_text("no zip")
    for name, wrong in (("other", "must be a file that tilescope saved"), ("none", "there is no file")):
        with pytest.raises(saved.BadFile, match=wrong):
            saved.load(tmp_path / name)


def test_keys_in_a_terminal(multiplied, capsys):
    seen, steps, *_ = multiplied
    store = line_of(product, "tl.store(c_ptr")
    keys = iter(
        ["f\n", f"{store}\n", "l 3,5\n", "l 99,0\n", "l x\n", "b\n", "v\n", f"{store + 9}\n", "?\n", ""]
    )
    show(seen.recording, None, False, given=type("Typed", (), {"readline": staticmethod(lambda: next(keys))}))
    said = capsys.readouterr().out
    for words in (
        "step 1 of",
        f"> {store:4}",
        "c_ptr[35, 5]",
        "must be inside 16 × 16",
        "must be numbers such as 3,5",
    ):
        assert words in said
    assert "acc · 16 × 16 fp32" in said and f"no step after this one is at line {store + 9}" in said


def test_a_page_and_a_still_picture_hold_the_step(multiplied):
    seen, steps, *_ = multiplied
    text = page(seen.recording)
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "What does program 2 of product do?" in text
    picture = still(steps)
    assert (
        "<table>" in picture
        and 'aria-current=step><span class="tbt-number">' in picture
        and "<script" not in picture
    )


def test_the_command_steps_saves_and_opens(tmp_path):
    source = Path(__file__).read_text().split("@triton.jit\ndef total")[1].split("@triton.jit")[0]
    head = "import torch, triton\nimport triton.language as tl\n\n@triton.jit\ndef total"
    launch = "total[(4,)](torch.ones(1000), torch.zeros(1), 1000, B=256)\n"
    (tmp_path / "script.py").write_text(head + source + launch)

    def ran(*arguments):
        command = [sys.executable, "-m", "tilescope", *arguments]
        env = {"PYTHONPATH": str(ROOT), "PATH": "", "HOME": str(tmp_path)}
        return subprocess.run(
            command, capture_output=True, text=True, cwd=tmp_path, env=env, stdin=subprocess.DEVNULL
        )

    done = ran("step", "--program", "3", "--save", "kept", "--html", "steps.html", "script.py")
    assert done.returncode == 1 and "total, program 3: step" in done.stdout, done.stderr
    assert "the steps of total, program 3 are in steps.html" in done.stdout
    assert (tmp_path / "steps.html").read_text().startswith("<!doctype html>")
    again = ran("open", "kept")
    assert again.returncode == 1 and "error: race in total" in again.stdout
    assert again.stdout.split("total, program 3: step")[1] == done.stdout.split("total, program 3: step")[1]
    assert ran("open", "script.py").returncode == 2
    assert "must be a number such as 5" in ran("step", "--program", "x", "script.py").stderr


def test_an_installed_launch_still_raises():
    """The recorder is not there where nobody watches."""
    with pytest.raises(LaunchError, match="program 0 writes out.0., program 3 reads it at line"):
        total[(4,)](torch.ones(1000), torch.zeros(1), 1000, B=256)


@triton.jit(noinline=True)
def twice(a, b):
    return a * 2 + b


@triton.jit
def early(x, out, n, B: tl.constexpr):
    p = tl.program_id(0)
    if p >= n:
        return
    tl.store(out + p * B + tl.arange(0, B), tl.load(x + tl.arange(0, B)) + twice(p, 1))


@triton.jit
def shaped(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    t = tl.load(x + i[:, None] * B + i[None, :])
    running = tl.cumsum(t, 0)
    best = tl.argmax(tl.trans(t), 1)
    pairs, _ = tl.split(tl.join(best, tl.histogram(best, B)))
    picked = tl.gather(t, best[:, None], 1)
    tl.atomic_add(out + i, tl.sum(running, 1) + pairs, mask=i < 3)
    tl.store(out + i[:, None], picked)


@triton.jit
def locked(lock, out):
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(out, tl.load(out) + 1)
    tl.atomic_xchg(lock, 0)


@triton.jit
def described(x, out, M, N, B: tl.constexpr):
    tile = tl.make_tensor_descriptor(x, [M, N], [N, 1], [B, B]).load([tl.program_id(0) * B, 0])
    tl.make_tensor_descriptor(out, [M, N], [N, 1], [B, B]).store([tl.program_id(0) * B, 0], tile)


LAUNCHES = {
    "an early return and a call": (
        lambda: early[(6,)](torch.ones(16), torch.zeros(96), 4, B=16),
        3,
        "out[48]",
    ),
    "a program that returned": (lambda: early[(6,)](torch.ones(16), torch.zeros(96), 4, B=16), 5, None),
    "reshaped lanes": (lambda: shaped[(1,)](torch.ones(8, 8), torch.zeros(8), B=8), 0, "out[0]"),
    "turns at a lock": (
        lambda: locked[(4,)](torch.zeros(1, dtype=torch.int32), torch.zeros(1)),
        2,
        "lock[0]",
    ),
    "descriptors": (
        lambda: described[(3,)](torch.ones(40, 20), torch.zeros(40, 20), 40, 20, B=16),
        1,
        "out[16, 0]",
    ),
}


@pytest.mark.parametrize("case", LAUNCHES)
def test_every_kind_of_kernel_has_steps_and_lanes(case):
    launch, program, last = LAUNCHES[case]
    steps = Steps(recorded(launch, program).recording)
    json.dumps(answer(steps, Look()), allow_nan=False)
    rows = scene(steps, len(steps) - 1)["table"]["rows"]
    assert (rows[0][2] if len(rows[0]) > 2 else None) == last
    for at in range(len(steps)):
        for block in range(4):
            scene(steps, at, Look(block=block, row=3, column=2))
