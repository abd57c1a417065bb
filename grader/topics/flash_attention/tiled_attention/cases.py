"""Draw the inputs of *tiled attention* and limit their cost."""

from kernels.flash_attention import reference_tiles


def tiled_states(q, k, v, block):
    return reference_tiles.tiled_states(q, k, v, block)


def heads(rng, length, keys, d, spread=1.0):
    return tuple(
        s * rng.standard_normal(shape)
        for s, shape in ((spread, (length, d)), (spread, (keys, d)), (1.0, (keys, d)))
    )


def far_below(rng, length, keys, d):
    """Draw scores near -500, whose weights vanish next to a maximum of 0."""
    q, k, v = heads(rng, length, keys, d, 0.5)
    return 30.0 + q, -30.0 * 500 / (900 * d**0.5) - k, v
