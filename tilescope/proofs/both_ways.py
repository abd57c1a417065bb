"""Lowers the kernels that a library launches both ways, with Triton's compiled library and with the builder in Python.

    python -m tilescope.proofs.libraries liger_kernel fla --site FOLDER --front-end FILE

Each way lowers in a process of its own, and runs nothing. Of a kernel whose texts differ a third process runs both
on the same inputs, which must give the same bits."""

import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path

from tilescope.lowering import text_of  # isort: skip: before Triton, whose library our builder may replace

from tilescope import launcher
from tilescope.call import Call
from tilescope.front_end.stand_in import WISH
from tilescope.machine.read import read

from .imported import imported
from .rows import difference

ADDRESS = re.compile(r" at 0x[0-9a-f]+")
MOST_RUNS = 2  # of one kernel's two texts
SAME, SAME_BITS, NOT_RUN = "same text", "same bits", "texts differ, not run"


def key_of(made_of: tuple) -> str:
    """Name a kernel as it is specialised. Two processes give it the same name."""
    kernel, signature, constants, attributes, options = made_of
    named = [kernel.fn.__module__, kernel.__name__, signature, constants, attributes, options.num_warps]
    return ADDRESS.sub("", repr(named))


@contextmanager
def lowering_alone(found: dict, others: dict | None = None):
    """Lower every launch inside and note its text. Run only those whose text differs in `others`."""
    original = launcher.JITFunction.run, launcher.text_of
    last = []

    def noted(kernel, *made_of, **wanted):
        last[:] = [text_of(kernel, *made_of, **wanted)]
        return last[0]

    def run(kernel, *args, grid, warmup, **kwargs):
        kwargs["debug"] = False
        launcher.LOWERED.clear()
        name = kernel.__name__
        try:
            bound, made_of, module = launcher.compiled(kernel, args, kwargs)
        except Exception as error:
            found.setdefault(name, {"error": " ".join(f"{type(error).__name__}: {error}".split())[:200]})
            return None
        key, file = key_of(made_of), kernel.fn.__code__.co_filename
        row = found.setdefault(key, {"kernel": name, "file": file, "text": last[0], "runs": []})
        if others and key in others and len(row["runs"]) < MOST_RUNS and not warmup:
            grid = grid(bound) if callable(grid) else grid
            row["runs"].append(runs_apart(name, file, module, others[key], bound, made_of, grid))
        return None

    launcher.JITFunction.run, launcher.text_of = run, noted
    try:
        yield
    finally:
        launcher.JITFunction.run, launcher.text_of = original


def runs_apart(name: str, file: str, module, other: str, bound, made_of, grid) -> str:
    """Run a launch with each of two texts on the same inputs. Return the tensor whose bits differ."""
    given = [(n, v, made_of[1][n]) for n, v in bound.items() if made_of[1][n] != "constexpr"]
    call = Call(name, file, module, tuple((*grid, 1, 1)[:3]), given, "", made_of)
    tensors, ends = call.tensors(whole=True), []
    before = [t.elements.copy() for t in tensors.stored]
    for one in (module, read(other, cell=file)):
        report = call.run(tensors, one, counting="values")
        after = {t.name: t.elements.tobytes() for t in tensors.stored}
        for tensor, content in zip(tensors.stored, before, strict=True):
            tensor.elements[...] = content  # a launch writes into the tensors themselves
        if report.error is not None:
            return f"not run: {report.error['message']}"[:200]
        ends.append(after)
    return ", ".join(n for n in ends[0] if ends[0][n] != ends[1][n])


def pass_over(package: str, only: str, others: dict | None = None) -> dict:
    """Call every case of a library, and lower each launch without running the kernel. Return {key: row}."""
    import torch

    torch.set_num_threads(1)
    imported(package)
    launcher.install()
    with_zeros(torch)
    cases = importlib.import_module(f"tilescope.proofs.cases_{package}").cases(only)
    found = {}
    with lowering_alone(found, others):
        for name, case in cases:
            torch.manual_seed(0)
            with suppress(Exception):  # nothing was computed, so a case may well stumble over its own results
                case()
            print(f"{name:44} {len(found):4} kernels lowered", file=sys.stderr, flush=True)
    return found


def with_zeros(torch) -> None:
    """Give fresh tensors zeros, so that unwritten elements can't make the two ways differ."""
    torch.empty, torch.empty_like = torch.zeros, torch.zeros_like
    torch.Tensor.new_empty = torch.Tensor.new_zeros
    torch.empty_strided = lambda size, stride, **more: torch.zeros(
        1 + sum((n - 1) * step for n, step in zip(size, stride, strict=True)), **more
    ).as_strided(size, stride)


def compared(package: str, only: str, site: Path | None) -> dict:
    """Rows of a library's kernels by name, for the record."""
    with tempfile.TemporaryDirectory() as folder:
        ways = [
            elsewhere(package, only, site, Path(folder, f"{way}.json"), **wish)
            for way, wish in (("compiled", {}), ("python", {WISH: "python"}))
        ]
        theirs, ours = ways
        apart = {key: what for key in theirs if (what := texts_apart(theirs[key], ours.get(key)))}
        ran = {}
        if others := {key: ours[key]["text"] for key in apart if "text" in ours.get(key, {})}:
            asked = Path(folder, "others.json")
            asked.write_text(json.dumps(others), encoding="utf-8")
            ran = elsewhere(package, only, site, Path(folder, "ran.json"), OTHERS=str(asked))
    return summed(theirs, ours, apart, ran)


def texts_apart(one: dict, other: dict | None) -> str:
    if other is None:
        return "lowered one way alone"
    if "error" in one or "error" in other:
        return "" if one == other else f"{one.get('error')} or {other.get('error')}"
    return difference(one["text"], other["text"], one["file"])


def summed(theirs: dict, ours: dict, apart: dict, ran: dict) -> dict:
    rows, kinds = {}, {SAME: 0, SAME_BITS: 0, NOT_RUN: 0}
    for key, row in theirs.items():
        runs = ran.get(key, {}).get("runs", [])
        if key not in apart:
            kinds[SAME] += 1
        elif runs and not any(runs):
            kinds[SAME_BITS] += 1
        else:
            kinds[NOT_RUN] += 1
        if key in apart:
            name = row.get("kernel", key)
            rows.setdefault(name, {"differs": apart[key][:300], "bits": []})["bits"] += runs
    alone = sorted(set(ours) - set(theirs))
    names = {row.get("kernel", key) for key, row in theirs.items()}
    return {"kernels": len(names), "specialised": len(theirs), **kinds, "others": rows, "python alone": alone}


def elsewhere(package: str, only: str, site: Path | None, out: Path, **environment) -> dict:
    """A pass in a process of its own."""
    command = [sys.executable, "-m", "tilescope.proofs.both_ways", package, only, str(site or ""), str(out)]
    subprocess.run(command, env={**os.environ, **environment}, check=True)
    return json.loads(out.read_text(encoding="utf-8"))


if __name__ == "__main__":
    package, only, site, out = sys.argv[1:]
    if site:
        sys.path.insert(0, site)
    others = os.environ.get("OTHERS")
    others = json.loads(Path(others).read_text(encoding="utf-8")) if others else None
    Path(out).write_text(json.dumps(pass_over(package, only, others)), encoding="utf-8")
