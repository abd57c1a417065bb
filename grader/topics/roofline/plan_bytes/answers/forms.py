"""List right answers to *plan bytes* in other forms."""



FORMS = {
        "a list": "def plan_bytes(g, r, w, e):\n    return [2 * len(g) * r * w * e, sum(2 * (k - 1) * r * w * e for k in g)]",
        "an array": "def plan_bytes(g, r, w, e):\n    return np.array([len(g), sum(g) - len(g)]) * 2 * r * w * e",
    }
