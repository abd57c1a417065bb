"""Take a request of the view as JSON and return its answer as JSON, inside the page."""

import json

from widgets.answer import answer
from widgets.registry import find


def reply(name: str, request: str, given: str) -> str:
    """Answer a request. `given` holds the keywords start, locked and measured that the page gave the simulator."""
    return json.dumps(answer(find(name), json.loads(request), **json.loads(given)))
