"""Run in the page: take a request of the view as JSON and return its answer as JSON."""

import json

from widgets.answer import answer
from widgets.registry import find


def reply(name: str, request: str, given: str) -> str:
    """Answer a request. `given` holds what the page gave the simulator when it was built: start, locked, measured."""
    return json.dumps(answer(find(name), json.loads(request), **json.loads(given)))
