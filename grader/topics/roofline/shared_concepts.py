"""Share draws among numpy questions of roofline."""

import numpy as np

from grader.questions.draws import log_uniform

LESSON = "course/00_roofline/c_roofline.ipynb"


H200 = (989e12, 4.8e12)


def machine(rng: np.random.Generator) -> tuple[float, float]:
    return log_uniform(rng, 1e13, 5e15), log_uniform(rng, 3e11, 1e13)
