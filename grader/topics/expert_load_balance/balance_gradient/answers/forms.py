"""List right answers to *balance gradient* in other forms."""



FORMS = {
        "by differences of probabilities": "def balance_gradient(x, router, topk_ids):\n    n, e = len(x), router.shape[1]\n    l = x @ router\n    p = np.exp(l - l.max(1, keepdims=True))\n    p /= p.sum(1, keepdims=True)\n    f = np.array([(topk_ids == i).mean() for i in range(e)])\n    g = sum(np.outer(row, (np.diag(q) - np.outer(q, q)) @ f) for row, q in zip(x, p))\n    return (p * f).sum() * e / n, g * e / n",
    }
