"""A decode loop of a fixed batch: eagerly, or as one CUDA graph that is replayed for every token.

A graph fixes addresses and shapes. So tokens and lengths are tensors that the step itself moves on, the table has all its
columns from the start, and pages are given out before they are needed.
"""

from dataclasses import dataclass, field

import torch

from kernels import require
from kernels.next_bottleneck.step import Step
from kernels.require import must

WARM = 3  # calls before a capture: kernels compile, and workspaces are made


@dataclass
class Loop:
    """Decode sequences 0 .. batch - 1 of the step's cache. `tokens` holds each sequence's next token."""

    step: Step
    tokens: torch.Tensor  # int32 (batch,)
    lens: torch.Tensor = field(init=False)  # int32 (batch,): keys once the token is in
    table: torch.Tensor = field(init=False)
    graph: object = None

    def __post_init__(self):
        cache, batch = self.step.cache, len(self.tokens)
        must(batch <= cache.sequences, "tokens", f"at most {cache.sequences}", batch, "make a larger cache")
        held = cache.lens[:batch]
        must(min(held) > 0, "sequences", "with a prompt", f"lengths {held}", "read one into each first")
        self.lens = torch.tensor(held, dtype=torch.int32, device=self.tokens.device) + 1
        self.table = cache.table[:batch].contiguous()

    def once(self) -> None:
        """Take each sequence's token, and replace it by the next one."""
        said = self.step.sample(self.step.logits(self.tokens, self.lens, self.table), self.lens)
        self.tokens.copy_(said)
        self.lens.add_(1)

    def capture(self) -> None:
        """Record one step as a graph, without advancing the sequences."""
        must(self.tokens.is_cuda, "tokens", "on a GPU", self.tokens.device, "without one, run eagerly")
        before = self.tokens.clone(), self.lens.clone()
        self._grow(1)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM):
                self.once()
                self._put(before)
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.once()
        self.graph = graph
        self._put(before)
        for sequence in range(len(self.tokens)):
            self.step.cache.lens[sequence] -= 1  # the warm-up's token belongs to no sequence

    def _put(self, state) -> None:
        self.tokens.copy_(state[0])
        self.lens.copy_(state[1])

    def _grow(self, count: int) -> None:
        for sequence in range(len(self.tokens)):
            self.step.cache.grow(sequence, count)
        self.table.copy_(self.step.cache.table[: len(self.tokens)])

    def run(self, count: int) -> torch.Tensor:
        """Return int32 (batch, count): the next tokens of every sequence."""
        require.count(count=count)
        self._grow(count)
        said = []
        for _ in range(count):
            if self.graph is None:
                self.once()
            else:
                self.graph.replay()
            said.append(self.tokens.clone())
        return torch.stack(said, dim=1)
