"""The proofs that hold the grader to its word: exploits, wrong answers, honest ones, and a class with hostile hand-ins.

python -m grader suites [exploits|zoo|honest|class|front-ends] [--all] [--json]
"""
