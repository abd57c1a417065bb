"""List right answers to *time terms* in other forms."""



FORMS = {
        "a list": "def time_terms(f, d, l, p, b, e):\n    t = [d / b, f / p / e, l]\n    return [*t[:2], max(t[:2]) + l, ['memory', 'compute', 'overhead'][t.index(max(t))]]",
        "an argmax": "def time_terms(f, d, l, p, b, e):\n    t = np.array([d / b, f / (p * e), l])\n    return t[0], t[1], t[:2].max() + l, ('memory', 'compute', 'overhead')[t.argmax()]",
    }
