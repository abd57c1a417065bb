"""Draw the inputs of *repack* and state its layout."""

import numpy as np

from kernels.quantization_layouts import checkpoints, cost


def repack(qweight, g_idx):
    """Return (order, words): columns by group, and one word per lane of each 16 x 16 tile, as the kernels read them."""
    codes = checkpoints.codes_of(np.ascontiguousarray(qweight.T), checkpoints.GPTQ_ORDER)
    order = np.argsort(g_idx, kind="stable")
    n, k = codes.shape
    words = np.zeros((n // 16, k // 16, 32), np.uint32)
    tiles = codes[:, order].reshape(n // 16, 16, k // 16, 16).astype(np.uint32)
    for lane in range(32):
        for i in range(8):
            row, column = cost.fragment_element(lane, i)
            words[:, :, lane] |= tiles[:, row, :, column] << np.uint32(4 * cost.nibble_of(i))
    return order, words


def checkpoint(rng, n, k, group, scattered=True):
    """Draw qweight and g_idx. Groups are scattered over K as act-order leaves them, or follow each other."""
    g_idx = np.arange(k) // group
    words = rng.integers(0, 2**32, (k // 8, n), np.uint32)
    return words, rng.permutation(g_idx) if scattered else g_idx
