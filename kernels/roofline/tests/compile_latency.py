"""Compile the pointer chases for a GPU that is not here; prints each one's loads as JSON."""

import json
import re

import torch

from kernels.roofline import latency
from kernels.tests.compiled import kernels


def main():
    x, found = torch.zeros(32, dtype=torch.int32), {}
    for name, _, _, cache in latency.LEVELS:
        (found[name],) = kernels(
            lambda cache=cache: latency.chase[(1,)](x, x, 64, CACHE=cache, num_warps=1), 90
        )
    (found["shared memory"],) = kernels(lambda: latency.chase_shared[(1,)](x, 64, num_warps=1), 90)
    loads = r"ld\.(?:volatile\.)?(shared|global\.\w+)"
    print(json.dumps({name: re.findall(loads, kernel.asm["ptx"]) for name, kernel in found.items()}))


if __name__ == "__main__":
    main()
