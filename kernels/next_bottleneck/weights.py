"""Hold a model's weights, layer by layer, in a form that belongs to no kernel: 16-bit tensors and 4-bit codes."""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

import torch

from kernels.next_bottleneck.shapes import Shape
from kernels.require import must

MIDDLE = 8  # the code of zero


@dataclass(frozen=True)
class Codes:
    """Hold matrices in 4 bits, w = (code - 8) * scale, two codes in a byte, the even column in its low half."""

    packed: torch.Tensor  # uint8 (experts, N, K / 2)
    scales: torch.Tensor  # 16 bits (experts, N, K / group)

    def __post_init__(self):
        must(self.packed.dtype == torch.uint8, "packed", "uint8", self.packed.dtype, "two codes make a byte")
        alike = self.packed.shape[:2] == self.scales.shape[:2] and self.packed.ndim == self.scales.ndim == 3
        must(
            alike,
            "scales",
            f"(experts, N, groups) for packed {tuple(self.packed.shape)}",
            tuple(self.scales.shape),
            "a row of scales for each row of codes",
        )
        groups = self.scales.shape[2]
        whole = groups > 0 and 2 * self.packed.shape[2] % groups == 0
        must(whole, "scales", "a divisor of K along a row", groups, "groups are of one size")

    @property
    def shape(self) -> tuple[int, int, int]:
        """(experts, N, K)."""
        return *self.packed.shape[:2], 2 * self.packed.shape[2]

    @property
    def group(self) -> int:
        return self.shape[2] // self.scales.shape[2]

    @property
    def nbytes(self) -> int:
        return self.packed.nbytes + self.scales.nbytes

    def codes(self) -> torch.Tensor:
        """Return uint8 (experts, N, K)."""
        return torch.stack([self.packed & 15, self.packed >> 4], dim=-1).flatten(-2)

    def dense(self) -> torch.Tensor:
        """Return the numbers in the scales' dtype, (experts, N, K)."""
        values = (self.codes().float() - MIDDLE).unflatten(-1, (-1, self.group))
        return (values * self.scales.float()[..., None]).flatten(-2).to(self.scales.dtype)

    def to(self, device) -> "Codes":
        return Codes(self.packed.to(device), self.scales.to(device))


def quantize(weight: torch.Tensor, group: int) -> Codes:
    """Return (experts, N, K) in 4 bits. Each group's largest magnitude becomes 7 steps."""
    must(weight.ndim == 3, "weight", "3-d: experts, N, K", f"{weight.ndim}-d", "add an axis for one expert")
    whole = weight.shape[2] % group == 0 and group % 2 == 0
    must(whole, "group", f"an even divisor of K = {weight.shape[2]}", group, "pick another")
    parts = weight.float().unflatten(-1, (-1, group))
    scales = (parts.abs().amax(-1) / 7).clamp_min(1e-6).to(weight.dtype)
    codes = (parts / scales.float()[..., None]).round().clamp(-8, 7) + MIDDLE
    codes = codes.to(torch.uint8).flatten(-2)
    return Codes(codes[..., ::2] | codes[..., 1::2] << 4, scales)


@dataclass(frozen=True)
class Layer:
    input_norm: torch.Tensor  # (H,)
    qkv: torch.Tensor | Codes  # (W, H)
    q_norm: torch.Tensor  # (D,)
    k_norm: torch.Tensor  # (D,)
    out: torch.Tensor | Codes  # (H, O)
    post_norm: torch.Tensor  # (H,)
    router: torch.Tensor  # (E, H)
    gate_up: Codes  # (E, 2 * intermediate, H), the rows of gate, then those of up
    down: Codes  # (E, H, intermediate)

    def to(self, device) -> "Layer":
        return replace(self, **{f.name: getattr(self, f.name).to(device) for f in fields(self)})


@dataclass(frozen=True)
class Weights:
    shape: Shape
    embedding: torch.Tensor  # (V, H)
    layers: tuple[Layer, ...]
    norm: torch.Tensor  # (H,)
    head: torch.Tensor  # (V, H)

    def __post_init__(self):
        s = self.shape
        must(len(self.layers) == s.layers, "layers", f"{s.layers} in number", len(self.layers), "load all")
        for name, value, wanted in self.named():
            got = tuple(value.shape)
            got = got[1:] if isinstance(value, Codes) and got[0] == 1 and len(wanted) == 2 else got
            must(got == wanted, name, str(wanted), got, "is the checkpoint of another model?")

    def named(self) -> Iterator[tuple[str, torch.Tensor | Codes, tuple[int, ...]]]:
        """Yield (name, weight, the shape that it must have)."""
        s = self.shape
        yield "embedding", self.embedding, (s.vocabulary, s.hidden)
        yield "norm", self.norm, (s.hidden,)
        yield "head", self.head, (s.vocabulary, s.hidden)
        wanted = {
            "input_norm": (s.hidden,),
            "qkv": (s.qkv_width, s.hidden),
            "q_norm": (s.head_dim,),
            "k_norm": (s.head_dim,),
            "out": (s.hidden, s.q_width),
            "post_norm": (s.hidden,),
            "router": (s.experts, s.hidden),
            "gate_up": (s.experts, 2 * s.intermediate, s.hidden),
            "down": (s.experts, s.hidden, s.intermediate),
        }
        for i, layer in enumerate(self.layers):
            for name, shape in wanted.items():
                yield f"layers[{i}].{name}", getattr(layer, name), shape

    @property
    def dtype(self) -> torch.dtype:
        return self.embedding.dtype

    @property
    def device(self) -> torch.device:
        return self.embedding.device

    @property
    def nbytes(self) -> int:
        """Return all bytes, a tied head counted once."""
        tied = self.head.data_ptr() == self.embedding.data_ptr()
        return sum(value.nbytes for name, value, _ in self.named() if not (tied and name == "head"))

    def to(self, device) -> "Weights":
        embedding = self.embedding.to(device)
        tied = self.head.data_ptr() == self.embedding.data_ptr()
        return Weights(
            self.shape,
            embedding,
            tuple(layer.to(device) for layer in self.layers),
            self.norm.to(device),
            embedding if tied else self.head.to(device),
        )


def drawn(shape: Shape, *, dtype=torch.bfloat16, device="cpu", seed: int = 0) -> Weights:
    """Return weights of a shape drawn at random on the device: real sizes, and answers that mean nothing.

    Tokens weigh more than what layers add to them, as in trained models. With all alike, one near tie of a router
    that a rounding turns would change every layer after it, and the logits by half.
    """
    rng = torch.Generator(device).manual_seed(seed)

    def normal(*size, scale):
        return torch.randn(*size, device=device, dtype=dtype, generator=rng).mul_(scale)

    def coded(experts, n, k):
        codes = torch.randint(256, (experts, n, k // 2), device=device, dtype=torch.uint8, generator=rng)
        spread = 0.8 + 0.4 * torch.rand(experts, n, k // shape.group, device=device, generator=rng)
        return Codes(codes, (spread * k**-0.5 / 4.6).to(dtype))  # 4.6 is the deviation of 16 equal codes

    def near_one(size):
        return (1 + 0.1 * torch.randn(size, device=device, generator=rng)).to(dtype)

    layers = tuple(
        Layer(
            input_norm=near_one(shape.hidden),
            qkv=normal(shape.qkv_width, shape.hidden, scale=shape.hidden**-0.5),
            q_norm=near_one(shape.head_dim),
            k_norm=near_one(shape.head_dim),
            out=normal(shape.hidden, shape.q_width, scale=shape.q_width**-0.5),
            post_norm=near_one(shape.hidden),
            router=normal(shape.experts, shape.hidden, scale=shape.hidden**-0.5),
            gate_up=coded(shape.experts, 2 * shape.intermediate, shape.hidden),
            down=coded(shape.experts, shape.hidden, shape.intermediate),
        )
        for _ in range(shape.layers)
    )
    embedding = normal(shape.vocabulary, shape.hidden, scale=4.0)
    head = embedding if shape.tied else normal(shape.vocabulary, shape.hidden, scale=shape.hidden**-0.5)
    return Weights(shape, embedding, layers, near_one(shape.hidden), head)
