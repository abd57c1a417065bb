"""Find which part of an output each wave of programs writes. That tells what a wave must read at any size."""

import numpy as np

from .storage import Paged, Storage

MOST_TURNS = 1 << 24  # number for all programs, where later ones count with the last


def in_turns(tensor: Storage) -> np.ndarray:
    """Return a number for each element's writer: first what every program writes in its first turn, then in
    its second. A program that walks over tiles makes a wave no longer than a program with a single tile."""
    if tensor.turn is None:
        return tensor.writer
    count = int(tensor.writer.max()) + 1
    turn = np.minimum(tensor.turn, max(1, MOST_TURNS // count) - 1)
    return np.where(tensor.writer >= 0, turn * count + tensor.writer, -1)


def indices_by_wave(tensor: Storage, wave: int) -> list[int]:
    """For each axis, how many of its indices a wave of writing programs reaches, summed over all waves. Of a tensor larger
    than memory one wave runs."""
    if not (tensor.writer >= 0).any():
        return [0] * len(tensor.shape)
    if isinstance(tensor, Paged):
        element = tensor.numbered(np.flatnonzero(tensor.writer >= 0))
        return [np.unique(index).size for index in np.unravel_index(element, tensor.shape)]
    order = in_turns(tensor)
    who = order[order >= 0]
    writes = np.zeros(int(who.max()) + 2, bool)  # one more for -1, which means unwritten
    writes[who] = True
    wave_of = np.cumsum(writes) - 1  # programs that write nothing make no wave longer
    wave_of = np.where(writes, wave_of // wave, -1).astype(np.int32)
    waves = int(wave_of.max()) + 1
    steps = tuple(stride * order.itemsize for stride in tensor.strides)
    writer = np.lib.stride_tricks.as_strided(order, tensor.shape, steps)
    reached = [np.zeros((waves + 1, size), bool) for size in tensor.shape]
    for first, part in enumerate(
        writer
    ):  # a slice at a time, because indices of all elements together would take gigabytes
        here = wave_of[part]
        reached[0][here, first] = True
        for axis, size in enumerate(part.shape):
            along = np.arange(size).reshape([-1 if one == axis else 1 for one in range(part.ndim)])
            reached[axis + 1][here, along] = True
    return [int(np.count_nonzero(one[:waves])) for one in reached]
