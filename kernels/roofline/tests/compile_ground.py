"""Compile lesson 00's kernel for bytes on order, for a GPU that is not here; prints its loads as JSON."""

import json
import re

import torch

from kernels.roofline import ground
from kernels.tests.compiled import kernels


def main():
    x, out = torch.empty(1024), torch.empty(2)
    (kernel,) = kernels(lambda: ground.stream[(2,)](x, out, 1024, BLOCK=ground.TILE), 90)
    print(json.dumps(re.findall(r"ld\.global\.(\w+(?:\.\w+)?)", kernel.asm["ptx"])))


if __name__ == "__main__":
    main()
