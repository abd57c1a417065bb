"""A class of students, honest and hostile, in a course of its own; what became of it is compared by grader/proofs/classes.py."""
