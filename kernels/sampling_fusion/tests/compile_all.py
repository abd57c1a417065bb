"""Compile the topic's kernels as they are launched, for GPUs that are not here; prints facts as JSON."""

import json

import torch

from kernels.sampling_fusion import fused, plan, speculative
from kernels.sampling_fusion.cases import EVERYTHING
from kernels.sampling_fusion.requests import Requests, pack_bits
from kernels.sampling_fusion.state import State
from kernels.tests.compiled import Found, facts_of, kernels

V = 128256


def state(**ask) -> State:
    return State.of(Requests.of(2, V, **ask), "cpu")


ALL_TABLES = EVERYTHING | {
    "outputs": [[1, 2]] * 2,
    "banned": [[3]] * 2,
    "allowed": pack_bits(torch.ones(2, V, dtype=torch.bool)),
}
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


def parts(call, capability: int) -> dict:
    """Facts of each launch: one that reads and finishes, or one of each."""
    made = [facts_of(kernel) for kernel in kernels(call, capability)]
    return dict(zip(("both",) if len(made) == 1 else ("read", "finish"), made, strict=True))


def main():
    found = Found()
    states = {name: state(**ask) for name, (ask, _) in ASKED.items()}
    fp32, bf16 = torch.empty(2, V), torch.empty(2, V, dtype=torch.bfloat16)

    def compile(title, name, logits, config, target=90):
        if not found.wants(f"{title} {target}"):
            return
        more = ASKED[name][1]
        made = parts(lambda: fused.sample(logits, states[name], config=config, **more), target)
        found.update({f"{title} {target} {part}": facts for part, facts in made.items()})

    few, some, many = plan.FEW, plan.SOME, plan.MANY
    for name in ASKED:
        compile(f"{name}, many", name, fp32, many)
    for rows, config in (("few", few), ("some", some)):
        for name in ("usual", "nucleus"):
            compile(f"{name}, {rows}", name, fp32, config)
    for rows, config in (("few", few), ("some", some), ("many", many)):
        compile(f"usual bf16, {rows}", "usual", bf16, config)
    compile("plain, its own few", "plain", fp32, plan.config_for(1, "plain"))
    for dtype, logits in (("fp32", fp32), ("bf16", bf16)):
        compile(f"everything {dtype}, its own", "everything", logits, plan.config_for(1, "ruled"))
    for target in (80, 100):
        compile("usual, many", "usual", fp32, many, target)
    p, seed, position = (
        torch.empty(1, 5, V),
        torch.zeros(1, dtype=torch.int64),
        torch.zeros(1, dtype=torch.int32),
    )
    draft = torch.zeros(1, 4, dtype=torch.int32)
    found.add("verify 90", lambda: speculative.verify(draft, p, p[:, :4].contiguous(), seed, position), 90)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
