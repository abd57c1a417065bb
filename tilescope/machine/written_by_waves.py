"""Which part of an output each wave of programs writes: what a wave must read follows from it, however large the sizes."""

import numpy as np

from .storage import Storage


def indices_by_wave(tensor: Storage, wave: int) -> list[int]:
    """For each axis, how many of its indices a wave of writing programs reaches, summed over all waves."""
    who = tensor.writer[tensor.writer >= 0]
    if not who.size:
        return [0] * len(tensor.shape)
    writes = np.zeros(int(who.max()) + 2, bool)  # one more: nobody, who is -1
    writes[who] = True
    wave_of = np.cumsum(writes) - 1  # programs that write nothing make no wave longer
    wave_of = np.where(writes, wave_of // wave, -1).astype(np.int32)
    waves = int(wave_of.max()) + 1
    steps = tuple(stride * tensor.writer.itemsize for stride in tensor.strides)
    writer = np.lib.stride_tricks.as_strided(tensor.writer, tensor.shape, steps)
    reached = [np.zeros((waves + 1, size), bool) for size in tensor.shape]
    for first, part in enumerate(
        writer
    ):  # a slice at a time: indices of all elements at once would take gigabytes
        here = wave_of[part]
        reached[0][here, first] = True
        for axis, size in enumerate(part.shape):
            along = np.arange(size).reshape([-1 if one == axis else 1 for one in range(part.ndim)])
            reached[axis + 1][here, along] = True
    return [int(np.count_nonzero(one[:waves])) for one in reached]
