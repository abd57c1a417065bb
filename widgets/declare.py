"""Declare a simulator. Each file widgets/<slug>/<name>.py has one `SIMULATOR = Declaration(...)`."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from widgets import units
from widgets.controls import Control, InputError
from widgets.scene import WIDE, Scene


@dataclass(frozen=True)
class Prediction:
    """Ask for a number to commit before the picture opens, about the state in which the simulator opens."""

    question: str
    answer: str  # the field of the result that holds it, 'busiest.load_tokens'
    unit: str = ""
    tolerance: float = 0.1  # relative, so that a guess this near counts as right
    show: Callable[[float], str] = units.number


@dataclass(frozen=True)
class Stepper:
    """Show a picture with steps. frames(result, measured=None) gives one Scene each, all sent together."""

    noun: str  # 'tile', 'round', 'token'
    frames: Callable[..., list[Scene]]  # frames(result, measured=None, width=WIDE)
    start: Callable[[Any], int] = lambda result: 0  # the step to open at, one that tells the story


@dataclass(frozen=True)
class Declaration:
    title: str
    question: str
    controls: tuple[Control, ...]
    presets: dict[str, dict]  # label -> inputs, where a missing one takes its default
    run: Callable  # run(**inputs) -> frozen dataclass of plain numbers, units in their names
    scene: Callable[..., Scene] | None = (
        None  # scene(result, measured=None, width=WIDE), unless it has a stepper
    )
    stepper: Stepper | None = None
    prediction: Prediction | None = None
    measures: dict[str, str] = field(default_factory=dict)  # keys of `measured` that it shows -> meaning
    source: str = ""  # the titles its facts come from
    slug: str = ""  # both set from its path, widgets/<slug>/<name>.py
    name: str = ""

    @property
    def id(self) -> str:
        return f"{self.slug}.{self.name}"

    def inputs(self, values: dict | None = None) -> dict:
        """Return every input by name, checked. An input that isn't given takes its default."""
        values = values or {}
        known = {control.name: control for control in self.controls}
        if unknown := [name for name in values if name not in known]:
            raise InputError(
                f"input must be one of {', '.join(known)}, got {unknown[0]!r}; pick one of these"
            )
        return {name: control.check(values.get(name, control.default)) for name, control in known.items()}

    def scenes(self, result, measured: dict | None = None, width: int = WIDE) -> list[Scene]:
        """Return one scene, or one for each step, laid out for a column (WIDE) or a phone (NARROW)."""
        draw = self.stepper.frames if self.stepper else self.scene
        drawn = draw(result, measured, width=width)
        return drawn if self.stepper else [drawn]
