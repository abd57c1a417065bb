"""Compile the topic's kernels as they are launched, for GPUs that are not here; prints facts as JSON."""

import json
from functools import partial
from unittest import mock

import torch

from kernels.moe_routing import cases, experts_hopper, experts_hopper_turns
from kernels.moe_routing.arguments import Experts
from kernels.moe_routing.chosen import layer_of_chosen
from kernels.moe_routing.cost_traffic import most_tiles
from kernels.moe_routing.experts import GATED, down, gate_up
from kernels.moe_routing.layer import layer
from kernels.moe_routing.routed import Routed
from kernels.tests.compiled import Found, facts_of, kernels

HIDDEN, INTERMEDIATE, COUNT = 2048, 768, 128
ROOM = {
    80: 163 * 1024,
    89: 99 * 1024,
}  # shared memory that a program may have, where it is less than Hopper's
LAYERS = (
    ("Qwen3-like", 1),
    ("Qwen3-like", 16),
    ("Qwen3-like", 1100),
    ("DeepSeek-like", 1),
    ("DeepSeek-like", 100),
    ("DeepSeek-like", 4096),
)
TILES = {90: tuple(GATED), 80: (16, 128), 89: (128,), 100: (128,)}


def empty(*shape, dtype=torch.bfloat16):
    return torch.empty(*shape, dtype=dtype)


def weights(count: int, shared: int) -> Experts:
    """One matrix stands for all of them."""
    with mock.patch.object(Experts, "__post_init__"):
        gate_up, down = empty(1, 2 * INTERMEDIATE, HIDDEN), empty(1, HIDDEN, INTERMEDIATE)
        return Experts(gate_up.expand(count, -1, -1), down.expand(count, -1, -1), shared)


def layers(found):
    """Every kernel that a layer launches, from one token to many."""
    for model, tokens in (pair for pair in LAYERS if found.wants("{} {}".format(*pair))):
        count, rule, _, _ = cases.MODELS[model]
        shared = int(rule.scores == "sigmoid")
        bias = empty(count, dtype=torch.float32) if shared else None
        call = partial(
            layer, empty(tokens, HIDDEN), empty(count, HIDDEN), weights(count + shared, shared), rule
        )
        for kernel in kernels(partial(call, bias=bias), 90):
            found[f"{model} {tokens} {kernel.metadata.name} 90"] = facts_of(kernel)


def elsewhere(found):
    """The layer of rows that were routed elsewhere, one pair each."""
    topk_ids = torch.zeros(100, 1, dtype=torch.int32)
    call = partial(layer_of_chosen, empty(100, HIDDEN), topk_ids, weights(33, 0))
    if found.wants("routed elsewhere 100"):
        for kernel in kernels(call, 90):
            found[f"routed elsewhere 100 {kernel.metadata.name} 90"] = facts_of(kernel)


def ordered(tokens: int, slots: int, tile: int) -> Routed:
    """Tables of the right shapes that hold nothing."""
    tiles = most_tiles(tokens, slots, COUNT, tile)
    sizes = (COUNT + 1, tiles * tile, (1, tokens, slots), tiles, tiles)
    tables = (empty(size, dtype=torch.int32) for size in sizes)
    return Routed(empty(tokens, slots, dtype=torch.int32), empty(tokens, slots), tile, *tables)


def grouped(found):
    """The experts' products by generation and tile; and by the copy engine."""
    experts, x = weights(COUNT, 0), empty(64, HIDDEN)
    for target, tiles in TILES.items():
        for tile in tiles:
            order = ordered(64, 8, tile)
            h = empty(order.tiles * tile, INTERMEDIATE)
            room = ROOM.get(target, 227 * 1024)
            with mock.patch("kernels.moe_routing.experts.shared_memory", return_value=room):
                call = partial(gate_up, x, experts.gate_up, order, 8)
                found.add(f"gate_up {tile} {target}", call, target)
                if target == 90:
                    found.add(f"down {tile} {target}", partial(down, h, experts.down, order), target)


def hopper(found):
    up, back = empty(2, 2 * INTERMEDIATE, HIDDEN), empty(2, HIDDEN, INTERMEDIATE)
    for tile in experts_hopper.CONFIGS:
        order = ordered(64, 8, tile)
        rows, h = (empty(order.tiles * tile, width) for width in (HIDDEN, INTERMEDIATE))
        for form, way in (("hopper", experts_hopper), ("turns", experts_hopper_turns)):
            first = partial(way.launch, rows, up, order, h, True, 132)
            found.add(f"{form} gate_up {tile} 90", first, 90)
            second = partial(way.launch, h, back, order, rows, False, 132)
            found.add(f"{form} down {tile} 90", second, 90)


def main():
    found = Found()
    layers(found)
    elsewhere(found)
    grouped(found)
    hopper(found)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
