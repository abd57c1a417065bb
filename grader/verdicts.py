"""Name the verdicts of an answer or one part, and their exit codes. Imports nothing of ours."""

PASS, FAIL, REFUSED, INCONCLUSIVE = "PASS", "FAIL", "REFUSED", "INCONCLUSIVE"
OPEN = (
    "OPEN"  # all that can be judged here passes, and the rest waits for a system that has Triton's compiler
)
EXIT = {PASS: 0, FAIL: 1, INCONCLUSIVE: 3, OPEN: 3, REFUSED: 4}
WRONG_USAGE = 64
