"""Find the story links of a text, and what would keep one from setting its simulator, for the tests of lessons and labs."""

import re
from urllib.parse import parse_qsl

from widgets.declare import Declaration
from widgets.registry import find

LINK = re.compile(r"\]\(#set/([\w.]+)(?:\?([^)\s]*))?\)")


def links(text: str) -> list[tuple[str, dict[str, str]]]:
    """Return (simulator, inputs) of every link of the form [words](#set/tile_walk?m=1&step=2)."""
    return [
        (found[1], dict(parse_qsl(found[2] or "", keep_blank_values=True))) for found in LINK.finditer(text)
    ]


def wrong(name: str, asked: dict[str, str]) -> str:
    """Say why this link would not do its work, or return ''."""
    try:
        simulator = find(name)
        values = {
            key: _value(simulator, key, words) for key, words in asked.items() if key not in ("reset", "step")
        }
        frames = simulator.scenes(simulator.run(**simulator.inputs(values)))
    except ValueError as problem:
        return str(problem)
    step = asked.get("step", "0")
    if not step.isdigit() or int(step) >= len(frames):
        return f"step must be from 0 to {len(frames) - 1}, got {step!r}; count the steps of that state"
    return ""


def _value(simulator: Declaration, name: str, words: str):
    """Return the value in the view's form, as a number, true or false, or one of the options."""
    control = next((one for one in simulator.controls if one.name == name), None)
    if control is None:
        return words
    if control.kind == "toggle":
        return {"true": True, "false": False}.get(words, words)
    if control.kind == "select":
        return next((stop for stop in control.stops if str(stop) == words), words)
    try:
        return float(words) if "." in words or not control.whole else int(words)
    except ValueError:
        return words
