"""List right answers to *product intensity* in other forms."""



FORMS = {
        "by the sum of quotients": "def product_intensity(m, n, k, e):\n    return 2 / e / (1 / n + 1 / m + 1 / k)",
        "a numpy number": "def product_intensity(m, n, k, e):\n    return np.float64(2 * m * n * k) / np.sum([m * k, k * n, m * n]) / e",
    }
