"""The releases of Triton that tilescope runs with."""

import os

from tilescope.front_end import stand_in

OLDEST = (3, 6)


def hold_triton() -> None:
    """Raise ImportError with one clear line if Triton is missing or too old.
    Install our builder if its library is missing."""
    stand_in.where_needed()
    import triton

    found = tuple(int(part) for part in triton.__version__.split(".")[:2])
    if found < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise ImportError(
            f"Triton must be {oldest} or newer, got {triton.__version__}. Run pip install -U triton"
        )


def hindrance() -> str:
    """Return why no kernel can be checked in this environment, or an empty text."""
    try:
        hold_triton()
    except ValueError as error:  # of TILESCOPE_FRONT_END
        return str(error)
    except ImportError as error:
        way = "Where pip has no such wheel, run python -m tilescope.python_of_triton"
        return f"tilescope needs Triton in this environment ({error}). {way}"
    if os.environ.get("TRITON_INTERPRET", "0") not in ("", "0"):
        return "with TRITON_INTERPRET set, Triton compiles nothing that could be checked. Unset it"
    return ""
