"""Use tilescope in a notebook by `%load_ext tilescope`, then `%%tilescope` at the head of a cell.
Also shows the stepper as a widget."""

import argparse
import json
import shlex
from functools import partial
from pathlib import Path
from uuid import uuid4

import anywidget
import traitlets
from IPython.core.error import UsageError
from IPython.display import display

from . import command, page
from .asked import ON_REQUEST
from .recorder import Recording
from .saved import load, save
from .scenes import COLUMNS, NARROW, ROWS, WIDE, Look, matrix
from .stepping import Stepping, Wanted
from .steps import Steps
from .watching import watch

CONTROL = {"step": 1, "unit": "", "help": "", "stops": [], "texts": [], "more": False}


def as_text(value: dict, widget=None) -> str:
    """As one string, since ipywidgets walks through whatever else it sends, value by value."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


class Stepper(anywidget.AnyWidget):
    """Steps through a recording, drawn by the simulators' view. Its controls choose the block and the lanes in
    view."""

    _esm = page.view("js")
    _css = page.view("css")
    spec = traitlets.Dict().tag(sync=True)
    answer = traitlets.Dict().tag(sync=True, to_json=as_text)
    ahead = traitlets.Dict().tag(sync=True, to_json=as_text)
    request = traitlets.Dict().tag(sync=True, echo_update=False)

    def __init__(self, recording: Recording):
        self.recording, self.steps = recording, Steps(recording)
        controls, start = self.controls()
        spec = page.spec(recording, controls, start) | {"saved": f"tilescope-{uuid4().hex[:8]}"}
        super().__init__(spec=spec, answer=page.answer(self.steps, Look(), start))
        self.observe(self.reply, "request")

    def controls(self) -> tuple[list[dict], dict]:
        """Return the controls that have something to choose,
        such as a row and a column for blocks larger than the view."""
        down, across = 1, 1
        for value in self.recording.values:
            tall, wide = matrix(value.shape)
            down, across = max(down, tall), max(across, wide)
        sides = (
            ("row", "First row in view", down, ROWS),
            ("column", "First column in view", across, COLUMNS),
        )
        found = []
        for name, label, side, seen in sides:
            stops = [-1, *range(0, side, seen)]
            texts = ["chosen by the step", *map(str, stops[1:])]
            if len(stops) > 2:
                found.append(
                    {
                        **CONTROL,
                        "name": name,
                        "label": label,
                        "stops": stops,
                        "texts": texts,
                        "kind": "slider",
                        "min": 0,
                        "max": len(stops) - 1,
                        "default": -1,
                    }
                )
        most = max((len(self.steps.blocks(step)) for step in self.steps.all), default=1)
        if most > 1:
            stops = list(range(min(most, 24)))
            texts = ["the line's own", *(f"{at} before it" for at in stops[1:])]
            found.append(
                {
                    **CONTROL,
                    "name": "block",
                    "label": "Value in view",
                    "stops": stops,
                    "texts": texts,
                    "kind": "slider",
                    "min": 0,
                    "max": stops[-1],
                    "default": 0,
                }
            )
        return found, {control["name"]: control["default"] for control in found}

    def reply(self, change) -> None:
        """One request of the view, one answer."""
        request = change["new"]
        values = {**self.spec["start"], **(request.get("values") or {})}
        chosen = {
            name: None if values.get(name, -1) in (-1, None) else int(values[name])
            for name in ("row", "column")
        }
        look = Look(int(values.get("block") or 0), **chosen, width=NARROW if request.get("narrow") else WIDE)
        told = page.answer(self.steps, look, values)
        self.answer = told | {"view": request.get("view", ""), "revision": request.get("revision", 0)}

    def _ipython_display_(self) -> None:
        """Show two outputs, the live view, and a saved step that the view hides while it lives."""
        display(self.live(), raw=True)
        display({"text/html": self.still(), "text/plain": ""}, raw=True)

    def _repr_mimebundle_(self, **kwargs):
        return {**self.live(**kwargs), "text/html": self.still()}, {}

    def live(self, **kwargs) -> dict:
        bundle = super()._repr_mimebundle_(**kwargs)
        return dict(bundle[0] if isinstance(bundle, tuple) else bundle or {})

    def still(self) -> str:
        return f"<style>{page.view('css')}</style>{page.still(self.steps, self.spec['saved'])}"


def show(what) -> Stepper:
    """The stepper of a recording, of a watch that kept one, or of a file that --save wrote."""
    recording = what if isinstance(what, Recording) else getattr(what, "recording", None)
    if isinstance(what, str | Path):
        _, recording = load(what)
    if recording is None:
        raise ValueError(
            "show needs a recording, got none. watch(program=0) keeps the recording of program 0"
        )
    return Stepper(recording)


class Words(argparse.ArgumentParser):
    """A parser for a magic's line. A wrong word is the cell's error and doesn't end Python."""

    def error(self, message: str):
        raise UsageError(f"%%tilescope: {message}")


def parser() -> argparse.ArgumentParser:
    made = Words("%%tilescope", add_help=False)
    made.add_argument("-h", "--help", action="store_true", help="show this")
    made.add_argument("--program", type=command.program_ids)
    made.add_argument("--kernel", default="")
    made.add_argument("--launch", type=int)
    for name, what in ON_REQUEST.items():
        made.add_argument(f"--{name.replace('_', '-')}", action="store_true", help=what)
    made.add_argument("--seconds", type=float, help="of processor time that a launch may take")
    made.add_argument("--lines", action="store_true")
    made.add_argument("--save")
    made.add_argument("--step", action="store_true")
    made.add_argument("--texts", action="store_true")
    return made


def checked_cell(shell, line: str, cell: str) -> None:
    """Check a cell's launches: `%%tilescope [--step] [--program P] [--texts] [--nan] [--lines] [--save
    FILE]`.

    A finding opens the stepper at its program, and --step opens it in any case. --texts adds the Triton IR
    and the PTX.
    """
    asked = parser().parse_args(shlex.split(line))
    if asked.help:
        print(parser().format_help())
        return
    stepping = Stepping(Wanted(asked.program, asked.kernel, asked.launch), texts=asked.texts)
    wanted = {name: getattr(asked, name) for name in ("seconds", *ON_REQUEST)}
    with watch(stepping, **wanted) as seen:
        shell.run_cell(cell)
    if asked.lines:
        print(command.table(seen))
    print(command.summary(seen))
    if asked.save:
        save(asked.save, command.as_dict(seen), seen.recording)
    if seen.recording is not None and (asked.step or seen.recording.findings):
        display(Stepper(seen.recording))
    elif asked.step or asked.program is not None:
        print("tilescope: no launch has the requested program")


def load_ipython_extension(shell) -> None:
    shell.register_magic_function(partial(checked_cell, shell), "cell", "tilescope")
