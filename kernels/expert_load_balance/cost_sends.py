"""Count the rows that one rank's dispatch sends: once per (token, expert) pair, once per rank, or once per node."""

from collections.abc import Sequence
from dataclasses import dataclass

from kernels import require

WAYS = ("pair", "rank", "node")


@dataclass(frozen=True)
class Send:
    """Hold one row that travels. `over` is "network" between nodes and "nvlink" within one."""

    token: int
    source: int
    target: int
    over: str
    experts: tuple[int, ...]  # those served on the target's rank, none if the row is only passed on


def sends(
    topk_ids: Sequence[Sequence[int]], experts_per_rank: int, ranks_per_node: int, way: str, home: int = 0
) -> list[Send]:
    """Return every row that travels when rank `home` dispatches its tokens. topk_ids[t] lists the experts of token t.

    "node" is two-level dispatch. A row crosses the network once per node, to the rank with the sender's index in its
    node, and that rank passes the row on over NVLink to the other ranks of the node.
    """
    require.one_of(WAYS, way=way)
    require.count(experts_per_rank=experts_per_rank, ranks_per_node=ranks_per_node)
    found = []
    for token, experts in enumerate(topk_ids):
        by_rank = {}
        for expert in experts:
            by_rank.setdefault(expert // experts_per_rank, []).append(expert)
        entered = set()
        for rank, here in by_rank.items():
            if rank == home:
                continue
            node = rank // ranks_per_node
            source, over = home, "nvlink" if node == home // ranks_per_node else "network"
            if way == "node" and over == "network":
                gate = node * ranks_per_node + home % ranks_per_node
                if node not in entered:
                    entered.add(node)
                    found.append(Send(token, home, gate, "network", tuple(by_rank.get(gate, ()))))
                if rank == gate:
                    continue
                source, over = gate, "nvlink"
            each = [(expert,) for expert in here] if way == "pair" else [tuple(here)]
            found += [Send(token, source, rank, over, served) for served in each]
    return found


def places_hit(places: int, top_k: int) -> float:
    """Return how many of equally likely ranks (or nodes) `top_k` independent experts are on, on average."""
    require.count(places=places, top_k=top_k)
    return places * (1 - (1 - 1 / places) ** top_k)


@dataclass(frozen=True)
class Copied:
    """Hold the seconds of a hot expert's surplus pairs on its own rank, and with copies of its weights."""

    kept_s: float
    sent_s: float  # all copies, over the link of the rank that has the weights
    share_s: float  # the pairs of one rank after the copies

    @property
    def copied_s(self) -> float:
        return self.sent_s + self.share_s


def copied(
    pairs: float,
    rate_flop_s: float,
    link_byte_s: float,
    hidden: int,
    intermediate: int,
    weight_bytes: float = 2.0,
    helpers: int = 1,
) -> Copied:
    """Return the times with and without copies of an expert on `helpers` more ranks, made for one step."""
    require.positive(rate_flop_s=rate_flop_s, link_byte_s=link_byte_s, weight_bytes=weight_bytes)
    require.not_negative(pairs=pairs)
    require.count(hidden=hidden, intermediate=intermediate, helpers=helpers)
    weights = 3 * hidden * intermediate
    kept = pairs * 2 * weights / rate_flop_s
    return Copied(kept, helpers * weights * weight_bytes / link_byte_s, kept / (helpers + 1))


def break_even_pairs(
    rate_flop_s: float, link_byte_s: float, weight_bytes: float = 2.0, helpers: int = 1
) -> float:
    """Return the surplus (token, expert) pairs of a hot expert from which on copying its weights in this step pays.

    The copies cost helpers * 3 * hidden * intermediate * weight_bytes over the sender's link. They leave the busy rank
    1 / (helpers + 1) of the surplus, an even share, and a pair takes 6 * hidden * intermediate FLOP. Both sizes drop out.
    """
    require.positive(rate_flop_s=rate_flop_s, link_byte_s=link_byte_s, weight_bytes=weight_bytes)
    require.count(helpers=helpers)
    copied_s = helpers * 3 * weight_bytes / link_byte_s
    saved_s_a_pair = 6 / rate_flop_s * helpers / (helpers + 1)
    return copied_s / saved_s_a_pair
