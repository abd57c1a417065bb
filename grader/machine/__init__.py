"""The machine: interprets the Triton IR of an answer in numpy, the whole grid at once, and counts what it moves."""
