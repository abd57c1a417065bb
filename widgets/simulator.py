"""Define the one widget class. It carries a request to its answers and their reply back, one message each way."""

import json
from uuid import uuid4

import anywidget
import traitlets
from IPython.display import display

from widgets import answer as answering
from widgets import static
from widgets.ahead import Answers
from widgets.declare import Declaration
from widgets.scene import NARROW, WIDE


def _as_text(value: dict, widget=None) -> str:
    """Send one string, since ipywidgets walks through anything else value by value."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


class Simulator(anywidget.AnyWidget):
    _esm = static.javascript()
    _css = static.css()
    spec = traitlets.Dict().tag(sync=True)
    answer = traitlets.Dict().tag(sync=True, to_json=_as_text)
    ahead = traitlets.Dict().tag(sync=True, to_json=_as_text)
    request = traitlets.Dict().tag(sync=True, echo_update=False)

    def __init__(self, declaration: Declaration, measured=None, predict=False, inputs=None):
        if predict and not declaration.prediction:
            raise ValueError(
                f"predict must be False for {declaration.id}, got True; it declares no prediction"
            )
        self._declaration = declaration
        self._start = declaration.inputs(inputs)
        self._given = {"measured": measured, "start": self._start, "locked": bool(predict)}
        answering.check_measured(declaration, measured)
        self._answers = Answers(declaration, **self._given)
        first = answering.answer(declaration, **self._given)
        if "error" in first:
            raise ValueError(first["error"])
        told = answering.spec(declaration, self._start, bool(predict))
        super().__init__(spec={**told, "saved": f"tbt-{uuid4().hex[:8]}"}, answer=first)
        self.observe(self._reply, "request")

    def _reply(self, change) -> None:
        with self.hold_sync():
            for name, told in self._answers.to(change["new"]).items():
                setattr(self, name, told)

    @property
    def values(self) -> dict:
        """Return the inputs that the picture shows."""
        return dict(self.answer.get("values", self._start))

    @property
    def result(self):
        return self._declaration.run(**self.values)

    def _ipython_display_(self) -> None:
        """Show two outputs, the live view and a saved picture that the view hides while it lives."""
        display(self._live(), raw=True)
        display({"text/html": self._saved(), "text/plain": ""}, raw=True)

    def _repr_mimebundle_(self, **kwargs):
        return {**self._live(**kwargs), "text/html": self._saved()}, {}

    def _live(self, **kwargs) -> dict:
        bundle = super()._repr_mimebundle_(**kwargs)
        return dict(bundle[0] if isinstance(bundle, tuple) else bundle or {})

    def _saved(self) -> str:
        """Return the view of a reopened or exported notebook, in which no Python answers any more."""
        uid = self.spec["saved"]
        if self.answer.get("locked"):
            return static.page(self._declaration, None, uid, stands_in=True)
        result = self.result
        first = self._declaration.stepper.start(result) if self._declaration.stepper else 0
        wide, narrow = (
            self._declaration.scenes(result, self._given["measured"], width)[first]
            for width in (WIDE, NARROW)
        )
        return static.page(self._declaration, wide, uid, stands_in=True, narrow=narrow)
