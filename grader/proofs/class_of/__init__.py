"""Simulate a class of students, honest and hostile, in a course of its own. grader/proofs/classes.py compares the
results."""
