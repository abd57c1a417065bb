"""List right answers to *pack words* in other forms."""



FORMS = {
        "by a loop": "def pack_words(c):\n    out = np.zeros((len(c), c.shape[1] // 8), np.uint32)\n    for j in range(8):\n        out |= c[:, j::8].astype(np.uint32) << np.uint32(4 * j)\n    return out",
        "whole numbers": "def pack_words(c):\n    return [[sum(int(v) << 4 * j for j, v in enumerate(r[i : i + 8])) for i in range(0, len(r), 8)] for r in c]",
        "bytes, then a view": "def pack_words(c):\n    return np.ascontiguousarray(c[:, ::2] | c[:, 1::2] << 4).view('<u4')",
    }
