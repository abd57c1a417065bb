"""Compile the topic's kernels as they are launched, for GPUs that are not here; prints facts as JSON."""

import json

import torch

from kernels.sampling_fusion import fused, speculative
from kernels.sampling_fusion.cases import EVERYTHING
from kernels.sampling_fusion.requests import Requests, pack_bits
from kernels.sampling_fusion.state import State
from kernels.tests.compiled import facts

V = 128256
LIKE_H200 = 132


def state(**ask) -> State:
    return State.of(Requests.of(2, V, **ask), "cpu")


ALL_TABLES = EVERYTHING | {
    "outputs": [[1, 2]] * 2, "banned": [[3]] * 2, "allowed": pack_bits(torch.ones(2, V, dtype=torch.bool)),
}  # fmt: skip
ASKED = {
    "usual": ({"top_k": 50, "top_p": 0.9}, {}),
    "everything": (ALL_TABLES, {"top": 20}),
    "greedy": ({"temperature": 0.0}, {}),
    "plain": ({}, {}),
    "nucleus": ({"top_p": 0.9}, {"logprobs": True}),
    "mixed": ({"top_k": [50, 0], "top_p": 0.9}, {}),
    "inverse": ({"top_k": 50, "top_p": 0.9}, {"draw": "inverse"}),
    "k = 1024": ({"top_k": 1024}, {}),
}


def main():
    fused.multiprocessors = lambda device: LIKE_H200
    found = {}
    states = {name: state(**ask) for name, (ask, _) in ASKED.items()}
    logits = torch.empty(2, V)
    for name, (_, more) in ASKED.items():
        call = lambda s=states[name], more=more: fused.sample(logits, s, **more)  # noqa: E731
        found[f"{name} 90"] = facts(call, 90)
    found["usual bf16 90"] = facts(lambda: fused.sample(logits.bfloat16(), states["usual"]), 90)
    for target in (80, 100):
        found[f"usual {target}"] = facts(lambda: fused.sample(logits, states["usual"]), target)
    p, seed, position = (
        torch.empty(1, 5, V),
        torch.zeros(1, dtype=torch.int64),
        torch.zeros(1, dtype=torch.int32),
    )
    draft = torch.zeros(1, 4, dtype=torch.int32)
    found["verify 90"] = facts(lambda: speculative.verify(draft, p, p[:, :4], seed, position), 90)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
