"""Prove the grader's promises with exploits, wrong answers, right answers, and a class with hostile hand-ins.

python -m grader suites [exploits|zoo|honest|class|front-ends] [--all] [--json]
"""
