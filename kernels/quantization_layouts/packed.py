"""Shuffle weights offline as the kernels read them, so that a lane's 16-byte load is already its part of an operand.

A brick is 16 rows by 32 columns of W. The lane 4 (row % 8) + (k / 2) % 4 owns the elements that a tensor core needs
in that lane's registers: rows r and r + 8, k's pairs 8 apart. Eight codes of one lane make a word of nibbles. A code
of more or fewer bits than four is cut into fields of 4, 2 and 1 bits, each with words of its own, and four words of a
lane are one vector. Vectors of a lane's neighbours follow each other, so a warp reads 512 bytes in a row. Nothing is
exchanged later.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch

from kernels.quantization_layouts import reference
from kernels.replays import Replays
from kernels.tensors import to_torch

BRICK_ROWS, LANES, WORDS = 16, 32, 4
ROW_STEP = 128  # N is padded to whole tiles of the tallest kernel
FIELDS = {2: (2,), 3: (2, 1), 4: (4,), 5: (4, 1)}  # bits of a code -> bits of its fields, lowest first
SPAN = {8: 32, 4: 64, 2: 128, 1: 256}  # bits of a field -> columns that one vector of each lane covers
TORCH = {"fp16": torch.float16, "bf16": torch.bfloat16}


@dataclass(frozen=True)
class Packed:
    """Hold W (experts, N, K) shuffled by `pack`. A dense layer is one expert."""

    words: tuple[torch.Tensor, ...]  # for each field int32 (experts, N / 16, K / span, 32 lanes, 4 words)
    scales: torch.Tensor  # 16 bits (experts, N / 16, K / group, 16)
    zeros: torch.Tensor | None  # uint8, in the scales' shape, or None for 8 in int4 and for a codebook
    book: torch.Tensor | None  # int32 (words, 32 lanes), the levels' low bytes, then the high ones
    bits: int
    group: int
    experts: int
    n: int
    k: int
    # fp32, where book is None, the common factor of all FP4 scales (1,), or int8's only scale per row (N,)
    whole: torch.Tensor | None = None

    @property
    def dtype(self) -> torch.dtype:
        return self.scales.dtype

    @property
    def device(self) -> torch.device:
        return self.scales.device

    @property
    def kind(self) -> str:
        if self.whole is not None:
            return "fp4" if self.bits == 4 else "int8"
        return "int4" if self.book is None else "book"

    @property
    def filled(self) -> int:
        """Return the bits that unpacking ORs its codes into. It is an argument, since two constants would make it two
        instructions."""
        if self.kind == "book":
            return 0x32103210  # the bytes of a word, in order, for four codes, and four more
        return 0x64006400 if self.dtype == torch.float16 else 0x43004300  # two times 1024, or two times 128

    @property
    def operands(self) -> tuple:
        """Return the arguments of a weight for every kernel, in this order. The scales fill in for missing tensors."""
        book = self.book if self.whole is None else self.whole
        zeros, book = (self.scales if part is None else part for part in (self.zeros, book))
        return self.words[0], self.words[-1], self.scales, zeros, book, self.filled

    @cached_property
    def parts(self) -> tuple[torch.Tensor, ...]:
        """Return its tensors, each once."""
        return *self.words, *(
            part for part in (self.scales, self.zeros, self.book, self.whole) if part is not None
        )

    @cached_property
    def replays(self) -> Replays:
        """Return calls of linear() with this weight."""
        return Replays()

    @cached_property
    def chosen(self) -> dict:
        """Return the kernels that run without a replay, by their keys."""
        return {}

    @cached_property
    def settled(self) -> dict:
        """Return the kernels that were the fastest when timed, by (rows of an expert, whether packed alone)."""
        return {}

    @property
    def expert_sizes(self) -> tuple[int, int, int]:
        """Elements of one expert's first words, last words and scales."""
        return self.words[0][0].numel(), self.words[-1][0].numel(), self.scales[0].numel()

    @property
    def constants(self) -> dict:
        """Return the constants for which every kernel is compiled."""
        return {
            "KIND": self.kind,
            "BITS": self.bits,
            "GROUP": self.group,
            "HAS_ZEROS": self.zeros is not None,
        }

    @property
    def bytes(self) -> int:
        """Return the bytes that a layer reads of its weight."""
        return sum(part.nbytes for part in self.parts)

    def cut(self, run: int, warps: int) -> tuple[int, int]:
        """Return the columns that a warp takes at a time, and warps, no longer than K has, no shorter than a vector
        covers."""
        least = max(self.group, *(SPAN[field] for field in FIELDS[self.bits]))
        run = max(run, least)
        while run > least and run * warps > self.k:
            run //= 2
        while warps > 1 and run * warps > max(self.k, run):
            warps //= 2
        return run, warps

    def to(self, device) -> "Packed":
        return self._each(lambda part: part.to(device))

    def copy(self) -> "Packed":
        """Return the same weight in memory of its own, like another layer's."""
        return self._each(torch.clone)

    def _each(self, change) -> "Packed":
        parts = {name: getattr(self, name) for name in ("scales", "zeros", "book", "whole")}
        changed = {name: part if part is None else change(part) for name, part in parts.items()}
        return replace(self, words=tuple(map(change, self.words)), **changed)


def pack(q: reference.Int4 | reference.KBit | list, device="cpu") -> Packed:
    """Shuffle one quantized weight, or a list of experts' alike in all but their codes and scales."""
    experts = q if isinstance(q, list) else [q]
    _check_experts(experts)
    one = experts[0]
    zeros = None
    if getattr(one, "zeros", None) is not None:
        zeros = torch.from_numpy(np.stack([e.zeros for e in experts])).to(device)
    return assemble(
        torch.from_numpy(np.stack([e.codes for e in experts])).to(device),
        to_torch(np.stack([e.scales for e in experts]), device),
        zeros,
        to_torch(one.codebook, device) if isinstance(one, reference.KBit) else None,
        one.bits,
        one.group,
    )


def assemble(codes, scales, zeros, levels, bits: int, group: int, whole=None) -> Packed:
    """Build the same from existing tensors: codes (experts, N, K), scales (experts, N, K / group)."""
    experts, n, k = codes.shape
    words = shuffle(codes, bits, pairs_adjacent=levels is not None)
    return Packed(
        words=tuple(words if whole is None else map(fp4_words, words)),
        scales=by_bricks(scales),
        zeros=None if zeros is None else by_bricks(zeros),
        book=None if levels is None else book_words(levels),
        bits=bits,
        group=group,
        experts=experts,
        n=n,
        k=k,
        whole=whole,
    )


def _check_experts(experts: list) -> None:
    if not experts:
        raise ValueError("q must be a quantized weight or a list of them, got an empty list; give one")
    for q in experts:
        if not isinstance(q, reference.Int4 | reference.KBit):
            raise ValueError(
                f"q must be an Int4 or a KBit, got {type(q).__name__}; quantize the weight first"
            )
        check_parts(q)
    for one, name in ((q, name) for q in experts[1:] for name in ("bits", "group")):
        if getattr(one, name) != getattr(experts[0], name) or type(one) is not type(experts[0]):
            raise ValueError(
                f"experts must be alike in {name}, got {getattr(one, name)}; quantize all in one way"
            )
    books = [q.codebook.tobytes() for q in experts if isinstance(q, reference.KBit)]
    shapes = {q.codes.shape for q in experts} | {experts[0].codes.shape}
    if len(set(books)) > 1 or len(shapes) > 1:
        raise ValueError(
            f"experts must be of one shape and codebook, got {sorted(shapes)}; pack others apart"
        )
    if len({getattr(q, "zeros", None) is None for q in experts}) > 1:
        raise ValueError("zeros must be there for all experts or none, got some; quantize all in one way")


def check_parts(q) -> None:
    """Check that parts read from a file fit together."""
    if q.codes.ndim != 2 or q.codes.dtype != np.uint8:
        raise ValueError(
            f"codes must be uint8 (N, K), got {q.codes.dtype} {q.codes.shape}; unpack them first"
        )
    n, k = q.codes.shape
    if q.group not in reference.GROUPS or k % q.group:
        raise ValueError(
            f"group must be one of {', '.join(map(str, reference.GROUPS))} and divide K = {k}, got {q.group}; "
            "quantize with another, or pad K"
        )
    wanted = (n, k // q.group)
    for name in ("scales", "zeros"):
        part = getattr(q, name, None)
        if part is not None and part.shape != wanted:
            raise ValueError(f"{name} must be {wanted} for these codes, got {part.shape}; one for each group")
    if not np.isfinite(q.scales.astype(np.float32)).all():
        raise ValueError("scales must be finite, got NaN or infinity; repair the checkpoint")
    if q.codes.size and int(q.codes.max()) >> q.bits:
        raise ValueError(f"codes must be below {2**q.bits}, got {q.codes.max()}; these have more bits")


def shuffle(codes: torch.Tensor, bits: int, pairs_adjacent: bool):
    """Return the words of each field, from codes uint8 (experts, N, K).

    A codebook looks up four neighbouring nibbles at a time, so the two codes of a pair are neighbours. int4 turns two
    nibbles at one position of a word's halves into two numbers together, so they are 16 bits apart.
    """
    for at, field in fields(bits):
        span = SPAN[field]
        part = padded(codes, span) >> at & 2**field - 1
        e, n, k = part.shape
        # (e, brick, row / 8, row % 8, vector, k / 32 of the span, k / 16, k / 8, pair, k % 2)
        part = part.view(e, n // 16, 2, 8, k // span, span // 32, 2, 2, 4, 2)
        lanes = part.permute(
            0, 1, 4, 3, 8, 5, 6, 2, 7, 9
        )  # .., lane, word, nibble, which is (row / 8, k / 8, k % 2)
        if not pairs_adjacent:
            lanes = lanes.movedim(9, 7)
        nibbles = lanes.reshape(e, n // 16, k // span, LANES, WORDS, 4 // field, 8)
        word = torch.zeros(nibbles.shape[:-2], dtype=torch.int32, device=codes.device)
        for i in range(4 // field):
            for j in range(8):
                word |= nibbles[..., i, j].to(torch.int32) << (4 * j + field * i)
        yield word


def int8_words(numbers: torch.Tensor) -> torch.Tensor:
    """Shuffle int8 (experts, N, K). A lane's word has one row of a brick's 16 x 16 half, two pairs of columns 8 apart.

    Bytes of a pair are 16 bits apart, as int4's nibbles are, and a lane's next word has the row eight further down.
    """
    part = padded(numbers, SPAN[8])
    e, n, k = part.shape
    part = part.view(
        e, n // 16, 2, 8, k // 32, 2, 2, 4, 2
    )  # row / 8, row % 8, vector, k / 16, k / 8, pair, k % 2
    lanes = part.permute(0, 1, 4, 3, 7, 5, 2, 8, 6).reshape(e, n // 16, k // 32, LANES, WORDS, 4)
    return lanes.view(torch.int32).squeeze(-1)


def fp4_words(words: torch.Tensor) -> torch.Tensor:
    """Spread the eight E2M1 codes of each word so that most need one shift to become bf16.

    A code's sign belongs into bit 15 of a half, its other bits into 8 to 6, at the low end of bf16's exponent. Three of
    a half's four codes keep that distance and differ by a shift of 3. The fourth fills the holes.
    """
    found = torch.zeros_like(words)
    for half in (0, 16):
        for i, at in enumerate(FP4_BITS):
            for bit, place in enumerate(at):
                found |= (words >> (half + 4 * i + bit) & 1) << (half + place)
    return found


# Where each bit of a half's four codes goes, from the lowest.
FP4_BITS = ((6, 7, 8, 15), (3, 4, 5, 12), (0, 1, 2, 9), (11, 13, 14, 10))


def fields(bits: int):
    """(position in the code, bits) of each field."""
    at = 0
    for field in FIELDS[bits]:
        yield at, field
        at += field


def padded(x: torch.Tensor, span: int) -> torch.Tensor:
    """Pad rows to whole tiles, and columns to a multiple of the span."""
    return torch.nn.functional.pad(x, (0, -x.shape[2] % span, 0, -x.shape[1] % ROW_STEP))


def by_bricks(of_groups: torch.Tensor) -> torch.Tensor:
    """Turn (experts, N, groups) into (experts, N / 16, groups, 16), so that sixteen rows' scales are one stretch."""
    whole = torch.nn.functional.pad(of_groups, (0, 0, 0, -of_groups.shape[1] % ROW_STEP))
    e, n, groups = whole.shape
    return whole.view(e, n // BRICK_ROWS, BRICK_ROWS, groups).transpose(2, 3).contiguous()


def gated_rows(of_rows: torch.Tensor) -> torch.Tensor:
    """Put sixteen of gate's rows before the same sixteen of up's: (experts, 2 N, ..) with all of gate's first."""
    e, rows, columns = of_rows.shape
    if rows % (2 * BRICK_ROWS):
        raise ValueError(
            f"gate and up must be of a multiple of {BRICK_ROWS} rows each, got {rows / 2:g}; pad them with zeros"
        )
    return of_rows.view(e, 2, -1, BRICK_ROWS, columns).transpose(1, 2).reshape(e, rows, columns)


def book_words(levels: torch.Tensor) -> torch.Tensor:
    """Return levels of 16 bits as bytes to choose from, the low ones first, four a word, (words, lanes), alike for
    all."""
    each = levels.view(torch.uint8).view(-1, 2)
    words = torch.cat((each[:, 0], each[:, 1])).contiguous().view(torch.int32)
    return words[:, None].expand(-1, LANES).contiguous()
