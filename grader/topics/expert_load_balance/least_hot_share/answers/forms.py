"""List right answers to *least hot share* in other forms."""



FORMS = {
        "halved again and again": "def least_hot_share(top_k, experts, devices, slowdown):\n    per = experts // devices\n    def slow(h):\n        return (h + (per - 1) * (top_k - h) / (experts - 1)) * devices / top_k\n    if slow(1.0) < slowdown - 1e-12:\n        return float('inf')\n    low, high = 0.0, 1.0\n    for _ in range(200):\n        mid = (low + high) / 2\n        low, high = (mid, high) if slow(mid) < slowdown else (low, mid)\n    return high",
    }
