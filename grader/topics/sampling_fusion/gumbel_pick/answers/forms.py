"""List right answers to *gumbel pick* in other forms."""



FORMS = {
        "a numpy integer": "def gumbel_pick(x, t, u):\n    return np.argmax(x / t - np.log(-np.log(u)))",
        "by a loop": "import math\n\n\ndef gumbel_pick(x, t, u):\n    return max(range(len(x)), key=lambda i: x[i] / t - math.log(-math.log(u[i])))",
    }
