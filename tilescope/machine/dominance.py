"""Order the blocks of a region so that each follows the blocks that lead to it on every way."""

from collections.abc import Iterator

from .tree import BadIR, Block


def walked(blocks: list[Block]) -> Iterator[tuple[bool, Block]]:
    """Walk a tree. Yield (True, block) on entering a block, (False, block) after all the blocks it dominates."""
    if len(blocks) == 1:
        yield from ((True, blocks[0]), (False, blocks[0]))
        return
    masks = _dominators(_predecessors(blocks))
    below = [[] for _ in blocks]
    number_of = {mask: number for number, mask in enumerate(masks)}
    for number in range(1, len(blocks)):
        below[number_of[masks[number] ^ 1 << number]].append(number)
    waiting = [(True, 0)]
    while waiting:
        entered, number = waiting.pop()
        yield entered, blocks[number]
        if entered:
            waiting.append((False, number))
            waiting += [(True, one) for one in reversed(below[number])]


def _predecessors(blocks: list[Block]) -> list[set[int]]:
    place = {block.label: number for number, block in enumerate(blocks)}
    before = [set() for _ in blocks]
    for number, block in enumerate(blocks):
        for label in block.ops[-1].successors if block.ops else []:
            before[place[label]].add(number)
    return before


def _dominators(before: list[set[int]]) -> list[int]:
    """Return a bit set for each block, of itself and its dominators."""
    masks: list[int] = [1] + [0] * (len(before) - 1)  # 0 until it is reached
    changed = True
    while changed:
        changed = False
        for number in range(1, len(before)):
            known = [masks[one] for one in before[number] if masks[one]]
            if not known:
                continue
            mask = known[0]
            for other in known[1:]:
                mask &= other
            mask |= 1 << number
            changed |= mask != masks[number]
            masks[number] = mask
    if not all(masks):
        raise BadIR("a block must be reached from the start of its function")
    return masks
