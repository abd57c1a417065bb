"""List right answers to *to planes* in other forms."""



FORMS = {
        "by numpy's packing of bits": "def to_planes(c, bits):\n    return np.stack([np.packbits(c >> b & 1, axis=1, bitorder='little').view('<u4') for b in range(bits)])",
        "a product": "def to_planes(c, bits):\n    each = c.reshape(len(c), -1, 32).astype(np.int64)\n    return np.moveaxis((each[..., None] >> np.arange(bits) & 1).transpose(0, 1, 3, 2) @ 2 ** np.arange(32), -1, 0)",
    }
