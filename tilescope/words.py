"""Numbers in words."""

import numpy as np


def number_in_words(one) -> str:
    kind = np.asarray(one).dtype.kind
    if kind == "b":
        return "yes" if one else "no"
    return str(int(one)) if kind in "iu" else f"{float(one):.5g}"
