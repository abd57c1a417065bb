"""Attack a box to measure its level. Each attack tries one thing and reports whether the box held it back.

Runs inside the box, or outside to see that the attacks are live, as `python -I -B run.py NAME ...`. Its facts are a
JSON line on stdin. It prints a JSON line per attack: [name, held, observation]. A successful attack is undone
immediately, and the network is only ever this machine's loopback. Of our modules, it imports only inside.py.
"""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import on_limits  # noqa: E402
import on_the_kernel  # noqa: E402
import outward  # noqa: E402
from through import Through  # noqa: E402

MODULES = (outward, on_the_kernel, on_limits)


def run(attack, facts):
    try:
        attack(facts)
    except Through as through:
        return False, str(through)
    except (OSError, MemoryError) as error:
        return True, str(error) or type(error).__name__
    except Exception as error:
        return False, f"the attack itself broke: {error!r}"
    return True, "refused"


if __name__ == "__main__":
    given = json.loads(sys.stdin.readline())
    for name in sys.argv[1:]:
        attack = next(getattr(module, name) for module in MODULES if hasattr(module, name))
        print(json.dumps([name, *run(attack, given)]), flush=True)
