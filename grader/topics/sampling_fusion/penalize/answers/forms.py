"""List right answers to *penalize* in other forms."""



FORMS = {
        "a Counter": "from collections import Counter\n\n\ndef penalize(x, output, r, f, p):\n    y = list(x)\n    for token, times in Counter(output).items():\n        y[token] = (y[token] / r if y[token] > 0 else y[token] * r) - f * times - p\n    return np.array(y)",
        "a list": "def penalize(x, output, r, f, p):\n    return [float((v / r if v > 0 else v * r) - f * output.count(i) - p) if i in output else float(v) for i, v in enumerate(x)]",
        "a tuple": "def penalize(x, output, r, f, p):\n    return tuple((v / r if v > 0 else v * r) - f * output.count(i) - p if i in output else v for i, v in enumerate(x))",
    }
