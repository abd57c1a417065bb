"""Prove that the grader keeps its word: exploits, wrong answers, right ones, and a class with hostile hand-ins.

python -m grader suites [exploits|zoo|honest|class|front-ends] [--all] [--json]
"""
