"""What most graders do: run the answer here, compare here, time here, and believe the last line printed.

It stands here to show that each exploit is alive: what passes here must not pass the real one.
    python -m grader.proofs.tests.naive QUESTION ANSWER.py     (in an empty folder; run twice, the second run counts)
"""

import functools
import json
import sys
import time

import numpy as np

from grader import questions

RTOL = ATOL = 1e-2
LONGEST_S = 1.5


def same(got, want) -> bool:
    if isinstance(want, tuple | list):
        return all(same(g, w) for g, w in zip(got, want, strict=False))
    if bool(np.all(got == want)):
        return True
    got, want = np.broadcast_arrays(got, want)
    some = np.linspace(0, want.size - 1, min(want.size, 50)).astype(int)  # who would look at them all?
    return bool(np.allclose(got.flat[some], want.flat[some], rtol=RTOL, atol=ATOL, equal_nan=True))


def numpy_passes(question, source: str) -> bool:
    space = {"np": np}
    exec(source, space)
    for call in question.public:
        space[question.entry](*call.args)  # warm up
        want = question.reference(*call.args)
        started = time.perf_counter()
        got = space[question.entry](*call.args)
        took = time.perf_counter() - started
        if not same(got, want) or took > LONGEST_S:
            return False
    return True


if __name__ == "__main__":
    asked, answer = questions.find(sys.argv[1]), open(sys.argv[2]).read()
    if asked.kind == "kernel":
        from grader.proofs.tests.naive_kernel import kernel_passes as passes
    elif asked.kind == "ranks":
        from grader.proofs.tests.naive_ranks import ranks_pass

        passes = functools.partial(ranks_pass, same=same)
    else:
        passes = numpy_passes
    verdict = "PASS" if passes(asked, answer) else "FAIL"
    with open("results.json", "w") as file:
        json.dump(verdict, file)
    print(verdict)
