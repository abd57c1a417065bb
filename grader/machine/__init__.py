"""Interpret the Triton IR of an answer in numpy, the whole grid together, and count what it moves."""
