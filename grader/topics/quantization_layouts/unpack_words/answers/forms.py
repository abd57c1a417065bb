"""List right answers to *unpack words* in other forms."""



FORMS = {
        "by strides": "def unpack_words(w):\n    out = np.empty((len(w), 8 * w.shape[1]), np.uint8)\n    for j in range(8):\n        out[:, j::8] = w >> np.uint32(4 * j) & np.uint32(15)\n    return out",
        "bytes of a view": "def unpack_words(w):\n    b = w.view(np.uint8)\n    return np.stack((b & 15, b >> 4), -1).reshape(len(w), -1)",
        "modulo": "def unpack_words(w):\n    return np.repeat(w.astype(np.int64), 8, 1) // np.tile(16 ** np.arange(8), w.shape[1]) % 16",
    }
