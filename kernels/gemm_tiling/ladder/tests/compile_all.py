"""Compile every rung as it is launched, for an H100 or H200 that is not here; prints facts as JSON."""

import json

import torch

from kernels.gemm_tiling.ladder.rungs import RUNGS
from kernels.tests.compiled import facts


def main():
    a, b, out = (torch.empty(1024, 1024, dtype=torch.bfloat16) for _ in range(3))
    found = {}
    for rung in RUNGS:
        found[rung.name] = facts(lambda rung=rung: rung.run(a, b, out), 90)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
