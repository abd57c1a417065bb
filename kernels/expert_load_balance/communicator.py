"""Run the two exchanges of an expert-parallel layer over torch.distributed: counts first, then rows by those counts.

Bytes are counted as they are handed over, without those that a rank sends to itself, which cross no link.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist


@dataclass
class Arriving:
    """Hold rows on their way. On a GPU `wait` lets the current stream wait, not the host."""

    rows: torch.Tensor
    work: object
    sent: torch.Tensor  # kept until it has been read

    def wait(self) -> torch.Tensor:
        self.work.wait()
        self.sent = None
        return self.rows


class Communicator:
    """Exchange rows at one rank's end. `sent_bytes` and `received_bytes` grow with each exchange of rows."""

    def __init__(self, group=None):
        self.group = group
        self.rank, self.ranks = dist.get_rank(group), dist.get_world_size(group)
        self.sent_bytes = self.received_bytes = 0

    def exchange_counts(self, counts: torch.Tensor) -> tuple[list, list]:
        """Send `counts` (ranks, ...) to each rank, and return the sent counts and those of each rank, as nested lists.

        The splits of an all-to-all are numbers of the host, so the host waits for the GPU here, once a layer.
        """
        counts = counts.contiguous()
        got = torch.empty_like(counts)
        dist.all_to_all_single(got, counts, group=self.group)
        sent, came = torch.stack([counts, got]).tolist()
        return sent, came

    def send_rows(self, rows: torch.Tensor, send: Sequence[int], receive: Sequence[int]) -> Arriving:
        """Send the first send[0] rows to rank 0, the next to rank 1, ... receive[r] rows come from rank r, in this order."""
        if len(send) != self.ranks or len(receive) != self.ranks or sum(send) != len(rows):
            raise ValueError(
                f"send and receive must be a count for each of {self.ranks} ranks and all {len(rows)} rows, "
                f"got {list(send)} and {list(receive)}; count every row once"
            )
        came = rows.new_empty(sum(receive), *rows.shape[1:])
        row_bytes = rows[0].nbytes if len(rows) else came[0].nbytes if len(came) else 0
        self.sent_bytes += (sum(send) - send[self.rank]) * row_bytes
        self.received_bytes += (sum(receive) - receive[self.rank]) * row_bytes
        source = rows.contiguous()
        work = dist.all_to_all_single(
            came.view(torch.uint8), source.view(torch.uint8), list(receive), list(send), self.group, True
        )  # as bytes, because not every backend knows every dtype
        return Arriving(came, work, source)
