"""List right answers to *attention bytes* in other forms."""



FORMS = {
        "an array": "def attention_bytes(n, h, d, e):\n    tiled = 4 * h * n * d * e\n    return np.array([tiled + 4 * h * n * n * e, tiled])",
    }
