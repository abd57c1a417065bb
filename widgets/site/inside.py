"""What runs in the page: a request of the view as JSON in, its answer as JSON out."""

import json

from widgets.answer import answer
from widgets.registry import find


def reply(name: str, request: str, given: str) -> str:
    """`given` holds what the page gave the simulator when it was built: start, locked, measured."""
    return json.dumps(answer(find(name), json.loads(request), **json.loads(given)))
