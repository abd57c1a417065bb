"""A paged cache of keys and values, and which pages each sequence has."""

import torch

from kernels import require
from kernels.next_bottleneck.shapes import Shape
from kernels.require import must


class PagedCache:
    """Hold `sequences` of at most `most` tokens each, in `pages` pages shared by all.

    Page 0 belongs to no sequence. Rows that only pad a batch write to page 0.
    """

    def __init__(self, shape: Shape, *, sequences: int, most: int, pages: int = 0, dtype, device="cpu"):
        require.count(sequences=sequences, most=most)
        self.shape, self.most = shape, most
        self.columns = -(-most // shape.page)
        pages = pages or sequences * self.columns
        require.count(pages=pages)
        size = (pages + 1, shape.kv_heads, shape.page, shape.head_dim)
        self.keys, self.values = (
            tuple(torch.zeros(size, dtype=dtype, device=device) for _ in range(shape.layers))
            for _ in range(2)
        )
        self.table = torch.zeros(sequences, self.columns, dtype=torch.int32, device=device)
        self.lens = [0] * sequences
        self.owned: list[list[int]] = [[] for _ in range(sequences)]
        self.free = list(range(pages, 0, -1))

    @property
    def sequences(self) -> int:
        return len(self.lens)

    def grow(self, sequence: int, tokens: int) -> None:
        """Give a sequence the pages for this many more tokens. If there are too few, refuse and change nothing."""
        must(
            0 <= sequence < self.sequences,
            "sequence",
            f"from 0 to {self.sequences - 1}",
            sequence,
            "make a larger cache",
        )
        length = self.lens[sequence] + tokens
        must(length <= self.most, "length", f"at most {self.most}", length, "make the cache for longer ones")
        owned = self.owned[sequence]
        wanted = -(-length // self.shape.page) - len(owned)
        must(
            wanted <= len(self.free),
            "pages",
            f"at most the {len(self.free)} that are free",
            wanted,
            "release a sequence",
        )
        if wanted > 0:
            new = [self.free.pop() for _ in range(wanted)]
            at = torch.tensor(new, dtype=torch.int32, device=self.table.device)
            self.table[sequence, len(owned) : len(owned) + wanted] = at
            owned += new
        self.lens[sequence] = length

    def release(self, sequence: int) -> None:
        """Take a sequence's pages back. Their content stays until the next write."""
        self.free += reversed(self.owned[sequence])
        self.owned[sequence] = []
        self.lens[sequence] = 0
        self.table[sequence] = 0
