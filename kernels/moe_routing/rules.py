"""Describe how a router's scores become experts and weights, as data. The published rules differ in a few switches."""

from dataclasses import dataclass

from kernels import require

SCORES = ("softmax of all", "softmax of chosen", "sigmoid")


@dataclass(frozen=True)
class Rule:
    """Choose the k best experts of a token and their weights.

    "softmax of all" weighs with a softmax over every expert, taken before the choice. "softmax of chosen" takes the
    softmax over the k chosen experts. "sigmoid" weighs each score by itself. A bias, if given, moves the choice alone,
    never the weights. With groups, only experts of the best `groups_kept` groups can be chosen. A group is worth the sum of
    its two best. Among equals the lower index comes first, for groups as for experts.
    """

    top_k: int
    scores: str = "softmax of chosen"
    renormalise: bool = False  # divide a token's weights by their sum
    groups: int = 1
    groups_kept: int = 1
    scale: float = 1.0  # of the weights, last of all

    def __post_init__(self):
        require.count(top_k=self.top_k, groups=self.groups, groups_kept=self.groups_kept)
        require.one_of(SCORES, scores=self.scores)
        require.positive(scale=self.scale)
        require.at_most(
            self.groups, "no more groups can be kept than there are", groups_kept=self.groups_kept
        )

    def check(self, experts: int) -> None:
        """Refuse a number of experts that the rule cannot choose from."""
        require.count(experts=experts)
        if experts % self.groups:
            raise ValueError(
                f"groups must be a divisor of the {experts} experts, got {self.groups}; groups are of one size"
            )
        open_experts = experts // self.groups * self.groups_kept
        require.at_most(open_experts, "a token picks different experts of the groups kept", top_k=self.top_k)


MIXTRAL = Rule(2)
QWEN3 = Rule(8, "softmax of all", renormalise=True)
DEEPSEEK_V3 = Rule(8, "sigmoid", renormalise=True, groups=8, groups_kept=4, scale=2.5)
