"""List right answers to *bias rounds* in other forms."""



FORMS = {
        "sorted lists": "def bias_rounds(scores, top_k, rate, rounds):\n    bias, seen = [0.0] * scores.shape[1], []\n    for _ in range(rounds):\n        loads = [0] * len(bias)\n        for row in scores:\n            for e in sorted(range(len(bias)), key=lambda e: (-(row[e] + bias[e]), e))[:top_k]:\n                loads[e] += 1\n        mean = sum(loads) / len(loads)\n        bias = [b + rate * ((l < mean) - (l > mean)) for b, l in zip(bias, loads)]\n        seen.append(loads)\n    return bias, seen",
    }
