"""List the mistakes of *gumbel pick*, a row each."""

import numpy as np

from grader.questions import Mistake
from grader.topics.sampling_fusion.gumbel_pick.cases import gumbel_pick
from grader.topics.sampling_fusion.shared_mistakes import known_temperature

MISTAKES = (
    Mistake(
        "the sum itself",
        "this is the largest sum itself: return its index, np.argmax, not np.max",
        cell="def gumbel_pick(x, t, u):\n    return float(np.max(x / t - np.log(-np.log(u))))",
    ),
    Mistake(
        "noise scaled",
        "the temperature has no effect here: divide the logits by it before you add the noise",
        cell="def gumbel_pick(x, t, u):\n    return int(np.argmax((x - np.log(-np.log(u))) / t))",
    ),
    Mistake(
        "sign",
        "the sign of the noise is reversed",
        cell="def gumbel_pick(x, t, u):\n    return int(np.argmax(x / t + np.log(-np.log(u))))",
    ),
    Mistake(
        "one logarithm",
        "Gumbel noise takes the logarithm twice: -log(-log(u))",
        cell="def gumbel_pick(x, t, u):\n    return int(np.argmax(x / t - np.log(u)))",
    ),
    Mistake(
        "base two",
        "use natural logarithms",
        cell="def gumbel_pick(x, t, u):\n    return int(np.argmax(x / t - np.log2(-np.log2(u))))",
    ),
    Mistake(
        "no noise",
        "the noise is missing: this is the largest logit",
        cell="def gumbel_pick(x, t, u):\n    return int(np.argmax(x))",
    ),
    Mistake(
        "a race of powers",
        "-log(u) / exp(x / T) is just as good a race, but np.exp overflows from 710 on and all of these tokens arrive at time 0: use logit / T + noise",
        cell="def gumbel_pick(x, t, u):\n    return int(np.argmin(-np.log(u) / np.exp(x / t)))",
    ),
    Mistake(
        "the maximum starts at 0",
        "all sums may be below 0: start the maximum at minus infinity or with the first sum",
        cell="def gumbel_pick(x, t, u):\n    best, token = 0.0, 0\n    for i, s in enumerate(x / t - np.log(-np.log(u))):\n        if s > best:\n            best, token = s, i\n    return token",
    ),
    Mistake(
        "another noise",
        "-log(-log(1 - u)) is just as fair, but it draws other tokens",
        cell="def gumbel_pick(x, t, u):\n    return int(np.argmax(x / t - np.log(-np.log(1 - u))))",
    ),
)


SHORTCUTS = {
    "temperature from a table": lambda x, t, u: gumbel_pick(x, known_temperature(t), u),
    "u clipped": lambda x, t, u: gumbel_pick(x, t, np.clip(u, 1e-3, 1 - 1e-3)),
    "u in fp32": lambda x, t, u: gumbel_pick(x, t, np.asarray(u, np.float32)),
}
