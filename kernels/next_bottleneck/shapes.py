"""List sizes of the transformers that the decode step runs, one that speaks on a laptop, and one that people serve."""

from dataclasses import dataclass

from kernels import require


@dataclass(frozen=True)
class Shape:
    """A Qwen3-MoE-style transformer. Sizes count elements, and the cache's page counts tokens."""

    hidden: int
    layers: int
    q_heads: int
    kv_heads: int
    head_dim: int
    experts: int
    top_k: int
    intermediate: int  # of each expert
    vocabulary: int
    theta: float = 1e6  # the rotary base
    eps: float = 1e-6
    tied: bool = False  # the head is the embedding
    page: int = 16
    group: int = 32  # weights that share a scale, where they have 4 bits

    def __post_init__(self):
        names = "hidden layers q_heads kv_heads head_dim experts top_k intermediate vocabulary page group"
        require.count(**{name: getattr(self, name) for name in names.split()})
        require.positive(theta=self.theta, eps=self.eps)
        require.at_most(self.experts, "a token picks different experts", top_k=self.top_k)
        for whole, part in (
            ("q_heads", "kv_heads"),
            ("head_dim", None),
            ("hidden", "group"),
            ("intermediate", "group"),
        ):
            step = 2 if part is None else getattr(self, part)
            require.must(
                getattr(self, whole) % step == 0,
                whole,
                f"a multiple of {part or 'two'}, {step}",
                getattr(self, whole),
                "change one of them",
            )

    @property
    def q_width(self) -> int:
        return self.q_heads * self.head_dim

    @property
    def kv_width(self) -> int:
        return self.kv_heads * self.head_dim

    @property
    def qkv_width(self) -> int:
        return self.q_width + 2 * self.kv_width


SPEAKING = Shape(
    hidden=256,
    layers=4,
    q_heads=4,
    kv_heads=2,
    head_dim=64,
    experts=8,
    top_k=2,
    intermediate=128,
    vocabulary=2048,
    theta=1e4,
    tied=True,
)
QWEN3_30B_A3B = Shape(
    hidden=2048,
    layers=48,
    q_heads=32,
    kv_heads=4,
    head_dim=128,
    experts=128,
    top_k=8,
    intermediate=768,
    vocabulary=151936,
    page=64,
    group=128,
)
