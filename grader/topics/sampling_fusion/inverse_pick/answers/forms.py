"""List right answers to *inverse pick* in other forms."""



FORMS = {
        "by a loop": "def inverse_pick(w, u):\n    before, last, aim = 0.0, 0, u * sum(w)\n    for i, one in enumerate(w):\n        if one > 0 and before <= aim:\n            last = i\n        before += one\n    return last",
    }
