"""The one widget class: it carries a request to answer() and the answer back, one message each way."""

from uuid import uuid4

import anywidget
import traitlets

from widgets import answer as answering
from widgets import static
from widgets.declare import Declaration


class Simulator(anywidget.AnyWidget):
    _esm = static.javascript()
    _css = static.css()
    spec = traitlets.Dict().tag(sync=True)
    answer = traitlets.Dict().tag(sync=True)
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
        first = answering.answer(declaration, **self._given)
        if "error" in first:
            raise ValueError(first["error"])
        super().__init__(spec=answering.spec(declaration, self._start, bool(predict)), answer=first)
        self.observe(self._reply, "request")

    def _reply(self, change) -> None:
        self.answer = answering.answer(self._declaration, change["new"], **self._given)

    @property
    def values(self) -> dict:
        """The inputs that the picture shows."""
        return dict(self.answer.get("values", self._start))

    @property
    def result(self):
        return self._declaration.run(**self.values)

    def _repr_mimebundle_(self, **kwargs):
        bundle = super()._repr_mimebundle_(**kwargs)
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
        return {**data, "text/html": self._saved()}, metadata

    def _saved(self) -> str:
        uid = f"tbt-{uuid4().hex[:8]}"
        if self.answer.get("locked"):
            return static.page(self._declaration, None, uid)
        result = self.result
        scenes = self._declaration.scenes(result, self._given["measured"])
        first = self._declaration.stepper.start(result) if self._declaration.stepper else 0
        return static.page(self._declaration, scenes[first], uid)
