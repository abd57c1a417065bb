"""List right answers to *roof* in other forms."""



FORMS = {
        "a list": "def roof(i, p, b):\n    return [p, 'compute'] if i * b >= p else [i * b, 'memory']",
        "a numpy number": "def roof(i, p, b):\n    return np.minimum(p, i * b), ('memory', 'compute')[int(i * b >= p)]",
    }
