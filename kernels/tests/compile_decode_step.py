"""Compile every kernel of a decode step at Qwen3-30B-A3B's shapes, for a Hopper that is not here; prints facts as JSON.

Launches overlap as they would there. Of each the facts say whether it may begin early, and the order in which it waits
for the launch before ("wait") and lets the next one begin ("launch").
"""

import json
import re
import sys
from dataclasses import replace

import torch

from kernels import decode_step, overlap
from kernels.next_bottleneck.cache import PagedCache
from kernels.next_bottleneck.shapes import QWEN3_30B_A3B
from kernels.next_bottleneck.step import Step
from kernels.next_bottleneck.weights import drawn
from kernels.tests.compiled import ALL, facts_of, kernels

ONE = replace(QWEN3_30B_A3B, layers=1, experts=9, vocabulary=4096)  # sizes that kernels are compiled for stay


def main():
    overlap.can_overlap = lambda device: True  # before a kernel's module is imported
    weights = drawn(ONE)
    found = {}
    for batch in (1, 16, 64) if ALL in sys.argv else (16,):
        cache = PagedCache(ONE, sequences=batch, most=128, dtype=weights.dtype)
        step = Step(weights, cache, decode_step.fillings())
        tokens, lens = torch.zeros(batch, dtype=torch.int32), torch.ones(batch, dtype=torch.int32)

        def call(step=step, tokens=tokens, lens=lens, cache=cache):
            step.sample(step.logits(tokens, lens, cache.table), lens)

        for place, kernel in enumerate(kernels(call, 90)):
            found[f"{batch} {place} {kernel.metadata.name}"] = facts_of(kernel) | {
                "early": kernel.metadata.launch_pdl,
                "order": re.findall(r"griddepcontrol\.(wait|launch)", kernel.asm["ptx"]),
            }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
