"""List the cases on which the layer is tested and timed. Each odd case gives a reason."""

from dataclasses import dataclass

import numpy as np

from kernels.moe_routing.rules import DEEPSEEK_V3, MIXTRAL, QWEN3, Rule
from kernels.tensors import DTYPES


@dataclass(frozen=True)
class Case:
    """One call of the layer. `leaning` adds to some experts' scores, and the more it adds, the more tokens they draw."""

    tokens: int
    experts: int  # that the router chooses from
    rule: Rule
    hidden: int = 40
    intermediate: int = 24
    shared: int = 0
    dtype: str = "bf16"
    leaning: float = 0.0
    model: str = ""
    quick: bool = False
    why: str = ""
    biased: bool = False  # a bias moves the choice

    @property
    def slots(self) -> int:
        return self.rule.top_k + self.shared

    @property
    def name(self) -> str:
        shared = f" + {self.shared}" if self.shared else ""
        who = self.model or f"{self.experts}{shared} experts"
        return f"{who} top-{self.rule.top_k} T = {self.tokens}"


GROUPED = Rule(3, "sigmoid", renormalise=True, groups=4, groups_kept=2, scale=2.5)
CORRECT = (
    Case(1, 6, MIXTRAL, why="one token: no order, and down combines"),
    Case(1, 8, GROUPED, shared=1, biased=True, why="one token with a shared expert and a bias"),
    Case(2, 4, Rule(1), why="one expert a token"),
    Case(5, 6, MIXTRAL, hidden=136, intermediate=72, why="a last step of K that is not full"),
    Case(
        3, 20, Rule(3), hidden=776, intermediate=8, why="the router's columns in parts, the last one shorter"
    ),
    Case(16, 5, Rule(5, "softmax of all"), dtype="fp16", why="every token picks every expert"),
    Case(17, 12, GROUPED, shared=1, biased=True, why="one token beyond a block"),
    Case(40, 64, Rule(2), why="more experts than most tokens reach: many have none"),
    Case(
        33, 4, Rule(2, "softmax of all", renormalise=True), leaning=40.0, why="all tokens on the same experts"
    ),
    Case(70, 3, Rule(2), shared=2, hidden=72, why="two shared experts, and tiles of 64 that are not full"),
    Case(150, 2, Rule(2), hidden=32, intermediate=136, why="tiles of 128, the last of an expert not full"),
    Case(
        20, 16, GROUPED, shared=1, biased=True, why="as many experts as columns: groups are reduced in one go"
    ),
)


def arrays(case: Case, seed: int = 0) -> dict:
    """Return x, router, gate_up, down in the case's dtype, and the bias in fp32 or None."""
    rng = np.random.default_rng([seed, case.tokens, case.experts])
    dtype, count = DTYPES[case.dtype], case.experts + case.shared
    drawn = {
        "x": rng.standard_normal((case.tokens, case.hidden)),
        "router": rng.standard_normal((case.experts, case.hidden)) / case.hidden**0.5,
        "gate_up": rng.standard_normal((count, 2 * case.intermediate, case.hidden)) / case.hidden**0.5,
        "down": rng.standard_normal((count, case.hidden, case.intermediate)) / case.intermediate**0.5,
    }
    if case.leaning:  # the first number of every token is 1, and the first experts like it
        drawn["x"][:, 0] = 1.0
        drawn["router"][: case.rule.top_k, 0] = case.leaning
    drawn = {name: array.astype(dtype) for name, array in drawn.items()}
    bias = rng.uniform(-0.3, 0.3, case.experts).astype(np.float32) if case.biased else None
    return drawn | {"bias": bias}


def _model(name: str, experts: int, rule: Rule, hidden: int, intermediate: int, tokens, shared: int = 0):
    for count in tokens:
        yield Case(
            count,
            experts,
            rule,
            hidden,
            intermediate,
            shared,
            model=name,
            quick=count == tokens[1],
            biased=rule.scores == "sigmoid",
        )


MODELS = {
    "Mixtral": (8, MIXTRAL, 4096, 14336),
    "Qwen3-like": (128, QWEN3, 2048, 768),
    "DeepSeek-like": (256, DEEPSEEK_V3, 7168, 2048),
}
TIMED = (
    *_model("Mixtral", *MODELS["Mixtral"], (16, 256, 4096)),
    *_model("Qwen3-like", *MODELS["Qwen3-like"], (1, 256, 4096)),
    *_model("DeepSeek-like", *MODELS["DeepSeek-like"], (16, 256, 4096), shared=1),
)
