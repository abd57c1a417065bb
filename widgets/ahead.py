"""Answer the views of one widget, and compute ahead the step that a view's next key may ask for.

A request may name a state as `values`, a step to compute ahead as `ahead` ({turn, key, values}), or both of them.
"""

import json
from functools import lru_cache

from widgets.answer import answer
from widgets.declare import Declaration

KEPT = 6  # pictures, the one on show, two steps to each side, and one more


class Answers:
    """Keep the last few pictures, so that an answer computed ahead is not computed again when its key comes."""

    def __init__(self, declaration: Declaration, **given):
        @lru_cache(maxsize=KEPT)
        def picture(asked: str) -> dict:
            return answer(declaration, json.loads(asked), **given)

        self._picture = picture

    def to(self, request: dict) -> dict[str, dict]:
        """Return `answer`, `ahead` or both, as requested. `ahead` has the key under which the view files it."""
        out, step = {}, request.get("ahead")
        if "values" in request or not step:
            out["answer"] = self._answer(request, request.get("values"))
        if step:
            filed = {"turn": step.get("turn", 0), "key": step.get("key", "")}
            out["ahead"] = {**self._answer(request, step.get("values")), **filed}
        return out

    def _answer(self, request: dict, values: dict | None) -> dict:
        asked = {"values": values, "guess": request.get("guess"), "narrow": bool(request.get("narrow"))}
        asked["axes"] = request.get("axes")
        echo = {"view": request.get("view", ""), "revision": request.get("revision", 0)}
        return {**self._picture(json.dumps(asked)), **echo}
