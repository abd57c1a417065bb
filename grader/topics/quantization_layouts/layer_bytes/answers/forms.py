"""List right answers to *layer bytes* in other forms."""



FORMS = {
        "in bits": "def layer_bytes(m, n, k, bits, group, zero_bits):\n    return (n * (k * bits + -(-k // group) * (16 + zero_bits)) + 16 * m * (k + n)) / 8",
        "a numpy number": "def layer_bytes(m, n, k, b, g, z):\n    return np.sum([n * k * b / 8, n * np.ceil(k / g) * (2 + z / 8), 2 * m * k, 2 * m * n])",
    }
