"""Turn a request of the view into its answer. The function is pure, so notebooks and static pages share one module.

request {view, revision, values, guess, narrow, axes}  ->  answer {view, revision, values, frames | error, ...}
"""

import math
from contextlib import nullcontext
from dataclasses import asdict, is_dataclass
from operator import attrgetter

from widgets import static
from widgets.charts import holding
from widgets.controls import InputError
from widgets.declare import Declaration
from widgets.scene import NARROW, WIDE, Scene


def spec(declaration: Declaration, values: dict | None = None, locked: bool = False) -> dict:
    """Return everything that the view needs once, before any picture."""
    start = declaration.inputs(values)
    prediction = declaration.prediction
    return {
        "id": declaration.id,
        "title": declaration.title,
        "question": declaration.question,
        "controls": [asdict(control) for control in declaration.controls],
        "presets": [[label, declaration.inputs(some)] for label, some in declaration.presets.items()],
        "start": start,
        "noun": declaration.stepper.noun if declaration.stepper else "",
        "prediction": {"question": prediction.question, "unit": prediction.unit} if locked else None,
        "source": declaration.source,
        "defs": static.defs(),
    }


def answer(
    declaration: Declaration,
    request: dict | None = None,
    measured: dict | None = None,
    start: dict | None = None,
    locked: bool = False,
) -> dict:
    """Return everything that the view shows for these values. A wrong value becomes a sentence, never a traceback.

    With `locked`, nothing of the result leaves before the request carries a guess.
    """
    request = request or {}
    echo = {"view": request.get("view", ""), "revision": request.get("revision", 0)}
    values = request.get("values") or start or {}
    width = NARROW if request.get("narrow") else WIDE
    try:
        verdict = _verdict(declaration, start, request.get("guess")) if locked else None
        if locked and verdict is None:
            return {**echo, "values": declaration.inputs(start), "locked": True}
        values = declaration.inputs(values)
        result = declaration.run(**values)
        check_measured(declaration, measured)
        ends = _ends(declaration, request.get("axes"), width)
        with holding(ends) if ends else nullcontext():
            frames = _plain(declaration.scenes(result, measured, width))
        first = declaration.stepper.start(result) if declaration.stepper else 0
        told = {"frames": deltas(frames), "first": first, "verdict": verdict, "held": bool(ends)}
        return {**echo, "values": values, **told}
    except ValueError as problem:
        return {**echo, "error": str(problem), "control": getattr(problem, "control", "")}


def _ends(declaration: Declaration, values: dict | None, width: int) -> dict[str, float]:
    """Return where the axes ended when a hand took its knob. They stay there until it lets go."""
    ends: dict[str, float] = {}
    if values:
        with holding(ends):
            declaration.scenes(declaration.run(**declaration.inputs(values)), width=width)
    return ends


def _verdict(declaration: Declaration, start: dict | None, guess) -> dict | None:
    if guess is None:
        return None
    if isinstance(guess, bool) or not isinstance(guess, int | float) or not math.isfinite(guess):
        raise InputError(f"your prediction must be a number, got {guess!r}; type one")
    asked = declaration.prediction
    truth = attrgetter(asked.answer)(declaration.run(**declaration.inputs(start)))
    off = abs(guess - truth) / abs(truth) if truth else abs(guess - truth)
    return {
        "near": off <= asked.tolerance,
        "guess": asked.show(guess),
        "truth": asked.show(truth),
        "unit": asked.unit,
        "within": f"{100 * asked.tolerance:g}%",
    }


def check_measured(declaration: Declaration, measured: dict | None) -> None:
    """Report a measurement that the scene could not show, instead of dropping it in silence."""
    if not measured:
        return
    if not declaration.measures:
        raise InputError(
            f"measured must be left out, got {measured!r}; {declaration.id} shows no measurement"
        )
    known = ", ".join(declaration.measures)
    if not any(key in declaration.measures for key in measured):
        raise InputError(f"measured must hold one of {known}, got {sorted(measured)}; rename its keys")
    for key in declaration.measures:
        value = measured.get(key, 1)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
            raise InputError(f"measured[{key!r}] must be a positive number, got {value!r}; leave it out")


def _plain(scenes: list[Scene]) -> list[dict]:
    """Return values as JSON can hold them. A table that all steps share is written once."""
    tables = {id(scene.table): scene.table for scene in scenes}
    written = {
        key: {"header": table.header(), "rows": table.shown(), "raw": table.copied()}
        for key, table in tables.items()
    }
    return [_plain_scene(scene, written[id(scene.table)]) for scene in scenes]


def _plain_scene(scene: Scene, table: dict) -> dict:
    return {
        "w": scene.width,
        "h": scene.height,
        "summary": scene.summary,
        "takeaway": scene.takeaway,
        "caption": scene.caption,
        "warning": scene.warning,
        "figures": [[f.label, f.text, f.role] for f in scene.figures],
        "terms": [f.term for f in scene.figures],
        "formula": [list(pair) for pair in scene.formula],
        "beside": list(scene.beside),
        "legend": [list(pair) for pair in scene.legend],
        "table": table,
        "marks": scene.marks,
    }


def deltas(frames: list[dict]) -> list[dict]:
    """Return the first frame whole, then only the changes of each, so that a long stepper stays a small message.

    Steps that share a mark should share the very same one, because then it costs nothing to compare.
    """
    out, before, marks = [], {}, {}
    for frame in frames:
        change = {
            key: value
            for key, value in frame.items()
            if key != "marks" and (old := before.get(key)) is not value and old != value
        }
        now = {mark["id"]: mark for mark in frame["marks"]}
        change["marks"] = [
            _changed(old, mark)
            for id, mark in now.items()
            if (old := marks.get(id)) is not mark and old != mark
        ]
        ids, was = list(now), list(marks)
        change["gone"] = [id for id in was if id not in now] if ids != was else []
        if ids != was:
            change |= _order(ids, was, now, marks)
        out.append(change)
        before, marks = frame, now
    return out


def _order(ids: list[str], was: list[str], now: dict, before: dict) -> dict:
    """Return the positions of new marks, unless they come after all others, or of all marks if others moved."""
    stay = [id for id in was if id in now]
    if [id for id in ids if id in before] != stay:
        return {"order": ids}
    into = [place for place, id in enumerate(ids) if id not in before]
    return {"into": into} if into and into[0] < len(stay) else {}


def _changed(old: dict | None, new: dict) -> dict:
    if old is None:
        return new
    if old.keys() == new.keys():
        return {"id": new["id"], **{k: value for k, value in new.items() if old[k] != value}}
    return {"id": new["id"], **{k: new.get(k) for k in {*old, *new} if old.get(k) != new.get(k)}}


def plain_result(result) -> dict:
    """Return a result in types that JSON has."""
    if not is_dataclass(result):
        raise TypeError(f"run must return a frozen dataclass, got {type(result).__name__}; declare one")
    return asdict(result)
