"""The run on two H200s as tests read it: a row by what was measured, and times over the even step's."""

import json
from pathlib import Path

from kernels.expert_load_balance import cases

RESULTS = Path(__file__).parents[1] / "results"
RUN = json.loads((RESULTS / "h200_x2.json").read_text())
OF_ONE_GPU = sorted(path for path in RESULTS.glob("*.json") if "_x" not in path.stem)  # of the busiest device


TWO = cases.recorded(RUN)
row = TWO.found


def times(shape, skew, placement="contiguous", tokens=4096):
    """Of the even step, at equal work."""
    return row(shape, tokens, skew, placement)["us"] / row(shape, tokens)["us"]


def in_parts(of):
    """Time over that of the same layer whole, for each overlapped row."""
    return [r["us"] / row(r["shape"], r["tokens"])["us"] for r in RUN["rows"] if str(r["parts"]).endswith(of)]
