"""python -m tilescope.tests.lower_all FILE: write the texts of all test kernels, as this process lowers them, into a file."""

import json
import sys
import warnings

from tilescope.lowering import IN_PYTHON, text_of

from .kernels_for_tests import KERNELS, REFUSED
from .kernels_that_fold import FOLDED

ALL = KERNELS | REFUSED | FOLDED


def text(name: str, debug: bool = False) -> str:
    kernel, types, constants = ALL[name]
    return text_of(kernel, types, constants, debug=debug)


def main(file: str) -> None:
    warnings.simplefilter("ignore")
    rows = {f"{name}{' in debug' * debug}": text(name, debug) for name in ALL for debug in (False, True)}
    libraries = [m.__file__ for m in sys.modules.values() if "libtriton" in str(getattr(m, "__file__", ""))]
    with open(file, "w", encoding="utf-8") as out:
        json.dump({"in Python": IN_PYTHON, "libraries": libraries, "texts": rows}, out)


if __name__ == "__main__":
    main(sys.argv[1])
