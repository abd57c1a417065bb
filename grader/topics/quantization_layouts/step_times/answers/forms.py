"""List right answers to *step times* in other forms."""



FORMS = {
        "a list": "def step_times(m, weights, bits, unpack_s, tile_rows, peak, bandwidth):\n    a = 2 * m / peak\n    return [weights * max(2 / bandwidth, a), weights * max(bits / (8 * bandwidth), a + unpack_s * -(-m // tile_rows))]",
        "an array": "def step_times(m, weights, bits, unpack_s, tile_rows, peak, bandwidth):\n    tiles = (m + tile_rows - 1) // tile_rows\n    stream = np.array([16, bits]) * weights / 8 / bandwidth\n    return np.maximum(stream, 2 * m * weights / peak + np.array([0, unpack_s * weights * tiles]))",
    }
